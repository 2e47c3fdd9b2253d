// SPDX-License-Identifier: Apache-2.0
// The report's verdict on what made the ranks wait: its sentence, and each culprit with the evidence. If files of the
// archive are damaged or missing, that comes first, because the page is then incomplete.

import { byId, el } from "./dom";
import * as f from "./format";
import type { Culprit } from "./head";
import type { Host } from "./host";

export function fillVerdict(host: Host): void {
  const { verdict, problems } = host.store.head;
  const section = byId("verdict");
  section.hidden = verdict.text === "" && problems.length === 0;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more, see About)` : "";
  const damage = problems.length > 0 ? [el("p", { class: "damage alarm", role: "alert" }, `Not all of the archive is shown: ${problems[0]}${more}`)] : [];
  section.replaceChildren(...damage, el("p", { class: verdict.culprits.length > 0 ? "answer found" : "answer" }, verdict.text), ...verdict.culprits.map((c) => row(host, c)));
}

function row(host: Host, c: Culprit): HTMLElement {
  const rank = host.store.head.ranks[c.rank];
  const name = rank?.name ?? `Rank ${c.rank}`;
  const figures = [
    f.cause(c.kind),
    c.share > 0 && `${f.percent(c.share, 1)} of all waiting`,
    c.time_share > 0 && `${f.percent(c.time_share, 1)} of the run`,
    c.pattern !== "" && c.pattern,
    `confidence ${c.confidence > 0.999 ? "> 99.9 %" : f.percent(c.confidence, 1)}`,
  ].filter((s) => s !== false);
  return el(
    "button",
    {
      class: "culprit", type: "button", title: c.late > 0 ? `Go to where it cost the most: ${f.time(c.late)} late` : "Show its row",
      onclick: () => {
        if (c.late > 0) host.go(c.at - 3 * c.late, c.at + 2 * c.late);
        if (rank && rank.row >= 0) host.focus(rank.row);
      },
    },
    el("b", null, name), el("span", { class: "figures" }, figures.join(" · ")), !host.store.head.verdict.text.includes(c.evidence) && el("span", { class: "sub" }, c.evidence),
  );
}
