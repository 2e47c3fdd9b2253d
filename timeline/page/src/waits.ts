// SPDX-License-Identifier: Apache-2.0
// Who waited for whom, by rank.

import { byId, el, swatch } from "./dom";
import * as f from "./format";
import type { Host } from "./host";

export function fillWaits(host: Host): void {
  const head = host.store.head;
  const ranks = head.ranks;
  const most = Math.max(1, ...ranks.map((r) => Math.max(r.waited, r.caused)));
  const section = byId("waits");
  if (!ranks.some((r) => r.waited > 0 || r.caused > 0)) {
    const why = head.totals.collectives > 0 ? "No rank waited for another." : "Nothing could be compared: waits need operations whose times two ranks have from their GPUs or networks.";
    section.replaceChildren(el("p", { class: "hint" }, why));
    return;
  }
  const culprit = ranks.reduce((a, b) => (b.caused > a.caused ? b : a));
  const total = ranks.reduce((n, r) => n + r.waited, 0);
  const shown = ranks.length > 64 ? [...ranks].sort((a, b) => b.caused + b.waited - a.caused - a.waited).slice(0, 64) : ranks;
  section.replaceChildren(
    el("h2", null, `Others waited ${f.time(culprit.caused)} for ${culprit.name}`),
    el("p", { class: "sub" }, `${f.percent(culprit.caused, total)} of all waiting (${f.time(total)}), without the first collective of each communicator.`),
    el("p", null, swatch("var(--wait)"), "waited for others ", swatch("var(--caused)"), "wait caused"),
    ...shown.map((r) => {
      const meter = (kind: string, v: number) => {
        const m = el("span", { class: "meter " + kind });
        m.style.width = `${(100 * v) / most}%`;
        m.hidden = v === 0;
        return m;
      };
      return el(
        "button",
        {
          class: "wait-row", type: "button", title: r.worst > 0 ? `Go to the longest wait that it caused: ${f.time(r.worst)}` : "Show its row",
          onclick: () => {
            if (r.row >= 0) host.focus(r.row);
            if (r.worst > 0) host.go(r.worstAt - 3 * r.worst, r.worstAt + 2 * r.worst);
          },
        },
        el("span", { class: "numbers" }, `${f.time(r.waited)} · ${f.time(r.caused)}`), ranks.length > 1 ? `${r.name} ` : r.name, el("span", { class: "sub" }, r.host),
        meter("waited", r.waited), meter("caused", r.caused),
      );
    }),
    shown.length < ranks.length ? el("p", { class: "sub" }, `The ${shown.length} of ${ranks.length} ranks with the most waiting.`) : "",
  );
}
