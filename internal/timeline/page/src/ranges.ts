// SPDX-License-Identifier: Apache-2.0
// The selected range of time, and its statistics.

import { firstAfter, lowerBound } from "./bounds";
import { mostRows } from "./listing";
import * as f from "./format";
import type { Panel } from "./panel";
import { addLane, type Range, type RangeSums } from "./rangesums";
import type { State } from "./state";
import type { Lane } from "./store";

const mostShown = 500_000; // bars of which statistics are computed without confirmation
const atOnce = 32; // lanes requested at a time
const manyLanes = 256;

export class Ranges {
  private asked = 0;
  private last = ""; // range and row that are added up, or are being

  constructor(private readonly state: State, private readonly panel: Panel) {}

  set(range: Range | undefined): void {
    const { state } = this;
    state.range = range && { from: Math.max(0, Math.min(range.from, range.to)), to: Math.min(state.store.head.duration, Math.max(range.from, range.to)) };
    if (state.range && state.range.to <= state.range.from) state.range = undefined;
    state.onChange();
    if (!state.range) {
      this.asked++;
      this.last = "";
      this.panel.range.none("No range is selected.");
      this.onNone();
    }
  }

  // update follows the visible time and the selection.
  update(): void {
    const { range, view, store, focus } = this.state;
    if (range && this.last === keyOf(range, focus)) return;
    void this.orAsk(range ?? { from: Math.max(0, view.from), to: Math.min(view.to, store.head.duration) });
  }

  onNone: () => void = () => {};

  // sum computes the statistics of the range, for the chosen row or for all; undefined: it needs confirmation.
  async sum(): Promise<RangeSums | undefined> {
    const { range } = this.state;
    if (!range) return undefined;
    this.panel.show("range");
    return this.orAsk(range);
  }

  // orAsk computes the statistics of a range, or asks for confirmation if that would take long.
  private async orAsk(range: Range): Promise<RangeSums | undefined> {
    const { leaf } = this.state.store.head;
    const entries = this.lanes().map((l) => Math.max(0, lowerBound(l.levels[0]!.start, range.to) - firstAfter(l.levels[0]!.end, range.from)));
    const bars = leaf * entries.reduce((n, e) => n + e, 0);
    const rows = entries.filter((e) => e > 0).length;
    if (rows > mostRows || (bars > mostShown && range !== this.state.range)) {
      this.asked++;
      this.last = "";
      this.panel.range.none(`About ${f.plural(bars, "region", "regions")} on ${f.plural(rows, "row", "rows")} are ${range === this.state.range ? "in the range" : "shown"}: ${range === this.state.range ? "" : "zoom in, "}choose a row, or`, () => void this.of(range));
      return undefined;
    }
    return this.of(range);
  }

  // inside reports whether a row is the chosen row or below it.
  private inside(row: number): boolean {
    const { focus, store } = this.state;
    return store.around(row).includes(focus);
  }

  // lanes are the lanes of the chosen row and its children, or all lanes.
  private lanes(): Lane[] {
    const { focus, store } = this.state;
    return store.lanes.filter((l) => (focus < 0 || this.inside(l.row)) && (l.row === focus || !store.repeats(l)));
  }

  private async of(range: Range): Promise<RangeSums | undefined> {
    const { store, focus, rows } = this.state;
    const table = this.panel.range;
    const ask = ++this.asked;
    this.last = keyOf(range, focus);
    const lanes = this.lanes();
    const sums: RangeSums = { ...range, scope: focus >= 0 ? `on ${store.head.rows[focus]!.name}` : "on all rows", count: 0, waited: 0, regions: new Map(), metrics: [] };
    try {
      let shown = performance.now();
      for (const [n, lane] of lanes.entries()) {
        if (lanes.length > manyLanes && n % atOnce === 0) await store.ahead(lanes.slice(n, n + atOnce), range.from, range.to);
        await addLane(sums, store, lane);
        if (ask !== this.asked) return undefined;
        if (performance.now() - shown > 100) {
          shown = performance.now();
          table.underWay(n / lanes.length);
        }
      }
      for (const item of rows.items) {
        const curve = store.curves.of(item.row);
        if (!curve || (focus >= 0 && !this.inside(item.row))) continue;
        sums.metrics.push({ curve, sums: await store.curves.sums(curve, range.from, range.to) });
        if (ask !== this.asked) return undefined;
      }
      table.show(sums, range === this.state.range);
    } catch (e) {
      this.last = "";
      this.state.fail(e);
    }
    return sums;
  }
}

const keyOf = (range: Range, row: number) => `${range.from} ${range.to} ${row}`;
