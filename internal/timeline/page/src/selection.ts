// SPDX-License-Identifier: Apache-2.0
// The selection of bars and curves.

import { firstAfter, lastAtMost } from "./bounds";
import type { Curve } from "./curves";
import { tell } from "./dom";
import { familyOf } from "./family";
import * as f from "./format";
import type { Panel } from "./panel";
import type { State } from "./state";

// Going is how a selected bar comes into view: not at all, by scrolling, or as a jump from which one can go back.
export type Going = "stay" | "pan" | "jump";

export class Selection {
  private asked = 0; // number of the last request, the only one that counts

  constructor(private readonly state: State, private readonly panel: Panel) {}

  // select selects a bar and shows its details.
  async select(bar: number, go: Going): Promise<void> {
    const { state, panel } = this;
    const { store } = state;
    const ask = ++this.asked;
    try {
      const b = await store.bar(bar);
      const family = await familyOf(store, bar);
      if (ask !== this.asked) return;
      if (go === "jump") state.onJump();
      state.selected = family;
      if (go !== "stay") this.show(b.lane.row, b.start, b.length, go);
      // The bars at the ends of its lines are needed at once.
      await Promise.all([...family.parents, ...family.children.slice(0, 400), ...family.instances.flatMap((i) => i.parts.map((p) => p.bar)).slice(0, 256)].map((n) => store.bar(n)));
      if (ask !== this.asked) return;
      state.onChange();
      panel.reveal();
      const { regions, rows } = store.head;
      tell(`${regions[b.region]!.name} on ${rows[b.lane.row]!.name}, at ${f.time(b.start)}, ${f.time(b.length)} long${b.wait > 0 ? `, waited ${f.time(b.wait)}` : ""}`);
      await panel.details.bar(bar, family);
    } catch (e) {
      state.fail(e);
    }
  }

  // show brings a bar into view. After a jump it is wide enough to be visible; from a neighbor the zoom stays.
  private show(row: number, start: number, length: number, go: Going): void {
    const { state } = this;
    const { view } = state;
    state.reveal(row);
    const x = view.x(start);
    const end = view.x(start + length);
    if (x >= 0 && end <= view.width && (end - x >= 3 || go === "pan")) return;
    if (go === "pan") {
      const span = view.to - view.from;
      const from = length > span ? start - 0.05 * span : start + length / 2 - span / 2;
      return view.set(from, from + span);
    }
    const span = Math.min(view.to - view.from, Math.max(length * 12, 1000));
    view.set(start + length / 2 - span / 2, start + length / 2 + span / 2);
  }

  // curve selects a curve and shows its details, and its value at a time.
  async curve(curve: Curve, time?: number): Promise<void> {
    const { state, panel } = this;
    const ask = ++this.asked;
    try {
      const { curves, head } = state.store;
      const reading = time === undefined ? undefined : await curves.reading(curve, time);
      const whole = await curves.sums(curve, 0, head.duration);
      if (ask !== this.asked) return;
      state.selected = undefined;
      state.focusRow(curve.row);
      panel.reveal();
      panel.details.curve(curve, reading, whole);
    } catch (e) {
      state.fail(e);
    }
  }

  clear(): void {
    this.asked++;
    this.state.selected = undefined;
    this.state.focus = -1;
  }

  // neighbor selects the next bar of the lane or, without a selection, the first one in the picture.
  async neighbor(step: number): Promise<void> {
    const bar = this.state.selected?.bar;
    if (bar === undefined) return this.first();
    const lane = this.state.store.laneOf(bar);
    const to = bar + step;
    if (to >= lane.first && to < lane.first + lane.count) await this.select(to, "pan");
  }

  // first selects the first visible bar on the chosen row, or on the first row with any.
  private async first(): Promise<void> {
    const { store, rows, view, focus } = this.state;
    const { head } = store;
    const chosen = head.rows[focus];
    const row = chosen && chosen.lanes[1] > chosen.lanes[0] ? focus : rows.items.find((i) => i.lanes.length > 0)?.row;
    const lane = row === undefined ? undefined : store.lanes[head.rows[row]!.lanes[0]];
    if (!lane) return;
    const n = Math.min(firstAfter(lane.levels[0]!.end, view.from), lane.levels[0]!.start.length - 1);
    const at = n * head.leaf;
    const bars = await store.bars(lane, Math.floor(at / head.chunk)).promise;
    let i = at % head.chunk;
    while (i + 1 < bars.start.length && bars.start[i]! + bars.length[i]! < view.from) i++;
    await this.select(lane.first + at - (at % head.chunk) + i, "pan");
  }

  // at selects the bar that begins at a time on a communicator rank of a row.
  async at(row: number, time: number): Promise<void> {
    const { store } = this.state;
    const { head } = store;
    try {
      for (const lane of store.lanes) {
        if (head.rows[lane.row]!.operations.count === 0 || !store.around(lane.row).includes(row)) continue;
        const n = lastAtMost(lane.levels[0]!.start, time);
        if (n < 0) continue;
        const chunk = Math.floor((n * head.leaf) / head.chunk);
        const bars = await store.bars(lane, chunk).promise;
        const i = bars.start.indexOf(time);
        if (i < 0) continue;
        this.state.reveal(lane.row); // with many ranks it is rarely visible already
        return await this.select(lane.first + chunk * head.chunk + i, "stay");
      }
    } catch (e) {
      this.state.fail(e);
    }
  }

  // kin selects the cause of the selected bar, or its first effect.
  kin(up: boolean): void {
    const { selected } = this.state;
    const to = up ? selected?.parents[0] : selected?.children[0];
    if (to !== undefined) void this.select(to, "jump");
  }
}
