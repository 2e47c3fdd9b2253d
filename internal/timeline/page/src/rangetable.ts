// SPDX-License-Identifier: Apache-2.0
// The statistics of a range of time.

import { byId, definitions, el, swatch, table } from "./dom";
import * as f from "./format";
import type { Head } from "./head";
import type { Host } from "./host";
import type { RangeSums } from "./rangesums";

export class RangeTable {
  private readonly head: Head;

  constructor(private readonly host: Host) {
    this.head = host.store.head;
    this.none("No range is selected.");
  }

  // none is shown while there are no sums; all computes them.
  none(why: string, all?: () => void): void {
    byId("range").replaceChildren(
      el("p", { class: "sub" }, `${why} `, all ? el("button", { class: "sentence", onclick: all }, "add up all of them") : "", all ? "." : ""),
      el("p", { class: "hint" }, "To select a range, drag on the ruler, or hold Shift and drag in the picture; on a touch screen, press and hold, then drag."),
    );
  }

  underWay(share: number): void {
    byId("range").replaceChildren(el("p", { class: "sub" }, `Reading… ${Math.round(100 * share)} %`));
  }

  // show shows the sums of a selected range, or of the visible time.
  show(r: RangeSums, selected: boolean): void {
    const colors = this.host.state.colors;
    const span = r.to - r.from;
    const rows = [...r.regions.entries()].sort((a, b) => b[1].time - a[1].time);
    byId("range").replaceChildren(
      el("h2", null, `${f.time(span)} ${selected ? "selected" : "shown"}`),
      el("p", { class: "sub" }, `${f.exact(r.from)} to ${f.exact(r.to)}, ${r.scope}`),
      definitions([["regions", f.count(r.count)], ["waiting", f.time(r.waited)]]),
      ...(selected ? [el("button", { class: "link", onclick: () => this.host.state.jump(r.from, r.to) }, "Zoom to the range")] : []),
      ...(rows.length === 0
        ? [el("p", { class: "hint" }, "Nothing happened in this range.")]
        : [
            el("h3", null, "By region"),
            table(
              "", ["region", "count", "time", "mean", "max"],
              rows.map(([region, s]) => [[swatch(colors.css[region]!), this.head.regions[region]!.name], f.count(s.count), f.time(s.time), f.time(s.whole / s.count), f.time(s.max)]),
            ),
            el("p", { class: "sub" }, "Time counts only what lies in the range; mean and max are those of whole regions that overlap it. The time of a nested region also counts in the region around it."),
          ]),
      ...this.metricSums(r.metrics),
    );
  }

  private metricSums(all: RangeSums["metrics"]): HTMLElement[] {
    if (all.length === 0) return [];
    const { curves } = this.host.store;
    const rows = all.map(({ curve, sums }) => {
      const row = this.head.rows[curve.row]!;
      const texts = sums.min <= sums.max ? [curves.write(curve, sums.min), curves.mean(curve, sums), curves.write(curve, sums.max)] : ["–", "–", "–"];
      return [[row.name, el("span", { class: "sub" }, this.head.rows[row.parent]?.name ?? "")], ...texts];
    });
    return [el("h3", null, "By metric"), table("metrics", ["metric", "min", "mean", "max"], rows), el("p", { class: "sub" }, "Only metrics that are shown; means are over time.")];
  }
}
