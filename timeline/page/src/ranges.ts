// SPDX-License-Identifier: Apache-2.0
// A range of time that is chosen, and its statistics.

import { firstAfter, lowerBound } from "./bounds";
import type { Panel } from "./panel";
import { addBars, type Range, type RangeSums } from "./rangesums";
import type { State } from "./state";
import type { Lane } from "./store";

// Bars, and rows that have them, of which there are statistics without being asked for: each row's lie in blocks of their own.
const mostShown = 500_000;
const mostRows = 2048;

export class Ranges {
  private asked = 0;

  constructor(
    private readonly state: State,
    private readonly panel: Panel,
  ) {}

  set(range: Range | undefined): void {
    const { state } = this;
    state.range = range && { from: Math.max(0, Math.min(range.from, range.to)), to: Math.min(state.store.head.duration, Math.max(range.from, range.to)) };
    if (state.range && state.range.to <= state.range.from) state.range = undefined;
    state.onChange();
    if (!state.range) {
      this.asked++;
      this.panel.range.none();
      this.onNone();
    }
  }

  onNone: () => void = () => {};

  // sum works out the statistics of the range: of the row that is chosen and what it holds, or of all.
  async sum(): Promise<RangeSums | undefined> {
    const { range } = this.state;
    if (!range) return undefined;
    this.panel.show("range");
    return this.of(range);
  }

  // shown works out the statistics of what is shown, where that is not too much.
  async shown(range: Range): Promise<void> {
    const { store } = this.state;
    const { leaf } = store.head;
    const entries = store.lanes.map((l) => Math.max(0, lowerBound(l.levels[0]!.start, range.to) - firstAfter(l.levels[0]!.end, range.from)));
    if (leaf * entries.reduce((n, e) => n + e, 0) > mostShown || entries.filter((e) => e > 0).length > mostRows) {
      this.asked++;
      this.panel.range.none();
    } else await this.of(range);
  }

  private async of(range: Range): Promise<RangeSums | undefined> {
    const { store, focus, rows } = this.state;
    const table = this.panel.range;
    const ask = ++this.asked;
    const inside = (row: number): boolean => row >= 0 && (row === focus || inside(store.head.rows[row]!.parent));
    const lanes = store.lanes.filter((l) => (focus < 0 || inside(l.row)) && (l.row === focus || !store.repeats(l)));
    const sums: RangeSums = { ...range, scope: focus >= 0 ? `on ${store.head.rows[focus]!.name}` : "on all rows", count: 0, waited: 0, regions: new Map(), metrics: [] };
    try {
      let shown = performance.now();
      for (const [n, lane] of lanes.entries()) {
        await this.lane(lane, sums);
        if (ask !== this.asked) return undefined;
        if (performance.now() - shown > 100) {
          shown = performance.now();
          table.underWay(n / lanes.length);
        }
      }
      for (const item of rows.items) {
        const curve = store.curves.of(item.row);
        if (!curve || (focus >= 0 && !inside(item.row))) continue;
        sums.metrics.push({ curve, sums: await store.curves.sums(curve, range.from, range.to) });
        if (ask !== this.asked) return undefined;
      }
      table.show(sums, range === this.state.range);
    } catch (e) {
      this.state.fail(e);
    }
    return sums;
  }

  private async lane(lane: Lane, sums: RangeSums): Promise<void> {
    const { store } = this.state;
    const { chunk, leaf } = store.head;
    const level = lane.levels[0]!;
    const begin = firstAfter(level.end, sums.from);
    for (let k = Math.floor((begin * leaf) / chunk); k * chunk < lane.count; k++) {
      if (level.start[(k * chunk) / leaf]! > sums.to) return;
      if (!addBars(sums, await store.bars(lane, k))) return;
    }
  }
}
