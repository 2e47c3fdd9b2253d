// SPDX-License-Identifier: Apache-2.0
// The legend of the colors.

import { byId, el, swatch } from "./dom";
import * as f from "./format";
import type { Host } from "./host";

// showLegend shows the colors and how much of each there is, while no bar is selected.
export function showLegend(host: Host): void {
  const head = host.store.head;
  const colors = host.colors();
  const sums = head.categories.map(() => ({ count: 0, time: 0 }));
  for (const lane of host.store.lanes) {
    if (host.store.repeats(lane)) continue;
    for (const s of lane.sums) {
      const sum = sums[head.regions[s.region]!.category]!;
      sum.count += s.count;
      sum.time += s.time;
    }
  }
  const entries = head.categories.map((name, i) => ({ name, i, ...sums[i]! })).filter((e) => e.count > 0);
  const legend = entries.map((e) =>
    el(
      "button",
      { class: "legend", type: "button", "aria-pressed": String(host.highlighted() === e.i), title: "Highlight these", onclick: () => host.highlight(e.i) },
      swatch(colors.category[e.i]!), e.name, el("span", { class: "sub" }, `${f.count(e.count)} · ${f.time(e.time)}`),
    ),
  );
  const section = byId("details");
  section.classList.add("empty");
  section.replaceChildren(
    el("p", { class: "hint" }, "Click a bar to see all that is known about it. Drag on the ruler, or drag with Shift, for statistics of a range. Press ? for all keys."),
    el("h3", null, "Regions"),
    ...(legend.length > 0 ? legend : [el("p", { class: "sub" }, "The archive has no regions.")]),
    el("h3", null, "Marks"),
    mark(colors.wait, "waiting for another rank"),
    mark(colors.collective, "members of one collective"),
    mark(colors.message, "message, sender to receiver"),
    mark(colors.transfer, "transfer over the network"),
    mark(colors.parent, "call to what it caused"),
    ...(head.path ? [mark(colors.path, "critical path (V)")] : []),
    ...(host.store.curves.all.length > 0 ? [mark("var(--metric)", "metric; pale: least to greatest of a pixel")] : []),
  );
}

function mark(color: string, text: string): HTMLElement {
  return el("div", { class: "legend" }, swatch(color), text);
}
