// SPDX-License-Identifier: Apache-2.0
// The activity of ranks over time, in cells: a line of numbers for each rank. For long times the numbers come from sums
// over neighboring bars, as in the picture of the rows.

import { placesOf } from "./blocks";
import { firstAfter, lowerBound } from "./bounds";
import type { Curve } from "./curves";
import { fan } from "./levels";
import type { Points } from "./points";
import type { Lane, Store } from "./store";

export const measures = ["waiting", "operations", "bandwidth", "late"] as const;
export type Measure = (typeof measures)[number];

// Cells divide a time into columns of the same length.
export interface Cells {
  from: number;
  to: number;
  columns: number;
}

// If the visible time has at most fewBars bars, single bars are read.
const fewBars = 500_000;
const fewBlocks = 512; // read for one picture
const fewWaits = 3_000_000;
const mostLate = 100_000;
const atOnce = 32; // lanes

export class Heat {
  readonly lanes: Lane[][] = []; // of communicator ranks, by rank of the job
  readonly waiting: Lane[][] = []; // the same, and those of threads that wait in operations of another tool
  readonly curves: Curve[][] = []; // bus bandwidths, by rank
  coarse = 0; // entries whose bars are not unpacked yet
  private fine = false;

  constructor(readonly store: Store) {
    const { head } = store;
    head.ranks.forEach(() => (this.lanes.push([]), this.waiting.push([]), this.curves.push([])));
    for (const lane of store.lanes) {
      const row = head.rows[lane.row]!;
      const rank = store.rankOf(lane.row);
      if (rank < 0) continue;
      const own = row.kind === "rank" && lane.depth === 0;
      if (own) this.lanes[rank]!.push(lane);
      if (own || (row.kind !== "rank" && row.operations.count > 0)) this.waiting[rank]!.push(lane);
    }
    for (const curve of store.curves.all) {
      const rank = head.rows[curve.row]!.name === "NCCL busbw" ? store.rankOf(curve.row) : -1;
      if (rank >= 0) this.curves[rank]!.push(curve);
    }
  }

  // has reports whether there are data for a measure.
  has(measure: Measure): boolean {
    return (measure === "bandwidth" ? this.curves : this.of(measure)).some((l) => l.length > 0);
  }

  // of returns the lanes with the data of a measure.
  private of(measure: Measure): Lane[][] {
    return measure === "waiting" ? this.waiting : this.lanes;
  }

  // begin sets the ranks that are requested next.
  begin(ranks: number[]): void {
    this.coarse = 0;
    const { chunk } = this.store.head;
    const sum = (of: (lane: Lane) => number) => ranks.reduce((n, r) => n + this.waiting[r]!.reduce((m, l) => m + of(l), 0), 0);
    this.fine = sum((l) => Math.min(l.count, chunk)) <= fewBars && sum((l) => Math.min(1, l.count)) <= fewBlocks;
  }

  // waits returns the waiting of all ranks, one after the other, each as line does, but from the waits sorted by
  // time, which take few blocks; undefined: too many, or not loaded yet.
  waits(cells: Cells): Float32Array | undefined {
    const { waits, chunk, ranks } = this.store.head;
    const out = new Float32Array(ranks.length * cells.columns);
    if (!waits) return out;
    const from = firstAfter(waits.ends, cells.from);
    const to = lowerBound(waits.starts, cells.to);
    if ((to - from) * chunk > fewWaits) return undefined;
    const blocks = Array.from({ length: Math.max(0, to - from) }, (_, i) => this.store.waits(from + i).value);
    const missing = blocks.filter((b) => !b).length;
    this.coarse += missing;
    if (missing > 0) return undefined;
    const each = (cells.to - cells.from) / cells.columns;
    for (const w of blocks) {
      for (let i = 0; i < w!.start.length; i++) {
        const [s, length, rank] = [w!.begin[i]!, w!.length[i]!, w!.rank[i]!];
        if (rank < 0 || rank >= ranks.length || s + length < cells.from || s > cells.to) continue;
        add(cells, each, out, s, s + length, length / each, rank * cells.columns);
      }
    }
    return out;
  }

  // line sums up a rank over its communicators: shares of time waiting or in operations, or B/s, NaN for no
  // value.
  line(rank: number, measure: "waiting" | "operations" | "bandwidth", cells: Cells): Float64Array {
    const out = new Float64Array(cells.columns);
    const each = (cells.to - cells.from) / cells.columns;
    if (measure === "bandwidth") {
      const time = new Float64Array(cells.columns);
      for (const curve of this.curves[rank]!) this.curve(curve, cells, out, time);
      for (let i = 0; i < out.length; i++) out[i] = time[i]! > 0 ? out[i]! / time[i]! : NaN;
      return out;
    }
    for (const lane of this.of(measure)[rank]!) {
      const top = lane.levels.length - 1;
      if (lane.count > 0 && top >= 0) this.walk(lane, top, 0, lane.levels[top]!.start.length, measure === "waiting", cells, each, out);
    }
    for (let i = 0; i < out.length; i++) out[i]! /= each;
    return out;
  }

  private walk(lane: Lane, depth: number, begin: number, end: number, waiting: boolean, cells: Cells, each: number, out: Float64Array): void {
    const level = lane.levels[depth]!;
    for (let i = begin; i < end; i++) {
      const s = level.start[i]!;
      const e = level.end[i]!;
      if (s > cells.to) return;
      if (e < cells.from) continue;
      if (e - s <= each || (depth === 0 && !this.fine)) add(cells, each, out, s, e, (e - s) * level.busy[i]! * (waiting ? level.wait[i]! : 1));
      else if (depth > 0) this.walk(lane, depth - 1, i * fan, Math.min(i * fan + fan, lane.levels[depth - 1]!.start.length), waiting, cells, each, out);
      else if (!this.bars(lane, i, waiting, cells, each, out)) add(cells, each, out, s, e, (e - s) * level.busy[i]! * (waiting ? level.wait[i]! : 1));
    }
  }

  // bars adds the bars of an entry of the lowest level; false: they are not loaded yet.
  private bars(lane: Lane, entry: number, waiting: boolean, cells: Cells, each: number, out: Float64Array): boolean {
    const { leaf, chunk } = this.store.head;
    const first = entry * leaf;
    const bars = this.store.bars(lane, Math.floor(first / chunk)).value;
    if (!bars) {
      this.coarse++;
      return false;
    }
    const from = first % chunk;
    for (let i = from; i < Math.min(from + leaf, bars.start.length); i++) {
      const length = waiting ? Math.min(bars.wait[i]!, bars.length[i]!) : bars.length[i]!;
      if (length > 0) add(cells, each, out, bars.start[i]!, bars.start[i]! + length, length);
    }
    return true;
  }

  private curve(curve: Curve, cells: Cells, out: Float64Array, time: Float64Array): void {
    const each = (cells.to - cells.from) / cells.columns;
    let depth = 0;
    while (depth + 1 < curve.levels.length && meanLength(curve.levels[depth + 1]!.start) <= each) depth++;
    const level = curve.levels[depth]!;
    const of = level.of[curve.member]!;
    for (let i = Math.max(0, firstAfter(level.start, cells.from) - 1); i < of.area.length && level.start[i]! < cells.to; i++) {
      const [s, e] = [level.start[i]!, level.start[i + 1]!];
      const points = depth === 0 && e - s > each && this.fine ? this.store.curves.peek(curve, Math.floor((i * level.each) / this.store.head.chunk)) : undefined;
      if (points) {
        this.points(points, curve.member, i, level.each, cells, out, time);
        continue;
      }
      const known = e - s - of.missing[i]!;
      if (known <= 0) continue;
      add(cells, each, out, s, e, of.area[i]!);
      add(cells, each, time, s, e, known);
    }
  }

  private points({ time: at, of }: Points, member: number, entry: number, leaf: number, cells: Cells, out: Float64Array, time: Float64Array): void {
    const each = (cells.to - cells.from) / cells.columns;
    const { area } = of[member]!;
    const from = (entry * leaf) % this.store.head.chunk;
    for (let i = from; i < Math.min(from + leaf, area.length); i++) {
      if (Number.isNaN(area[i]!)) continue;
      add(cells, each, out, at[i]!, at[i + 1]!, area[i]!);
      add(cells, each, time, at[i]!, at[i + 1]!, at[i + 1]! - at[i]!);
    }
  }

  // exact computes a cell of a rank from its bars.
  async exact(rank: number, measure: "waiting" | "operations", from: number, to: number): Promise<number> {
    let sum = 0;
    for (const lane of this.of(measure)[rank]!) {
      for (const k of this.store.chunksIn(lane, from, to)) {
        const bars = await this.store.bars(lane, k).promise;
        for (let i = 0; i < bars.start.length && bars.start[i]! < to; i++) {
          const length = measure === "waiting" ? Math.min(bars.wait[i]!, bars.length[i]!) : bars.length[i]!;
          sum += Math.max(0, Math.min(bars.start[i]! + length, to) - Math.max(bars.start[i]!, from));
        }
      }
    }
    return sum;
  }

  // late returns for each rank and cell the greatest delay with which it began an operation after the operation's
  // first member; undefined: that would need too many bars.
  async late(cells: Cells, going: () => boolean): Promise<Float64Array[] | undefined> {
    const { store } = this;
    const { chunk } = store.head;
    if (store.countOperations(cells.from, cells.to).operations > mostLate) return undefined;
    const each = (cells.to - cells.from) / cells.columns;
    const first = new Map<number, { start: number; members: number }>(); // by operation
    const parts: { rank: number; start: number; instance: number }[] = [];
    let shown = performance.now();
    const all = this.lanes.flat();
    let n = 0;
    for (const [rank, lanes] of this.lanes.entries()) {
      for (const lane of lanes) {
        if (n % atOnce === 0) await store.ahead(all.slice(n, n + atOnce), cells.from, cells.to, { operations: true });
        n++;
        for (const k of store.chunksIn(lane, cells.from, cells.to)) {
          const bars = await store.bars(lane, k).promise;
          for (let i = 0; i < bars.start.length && bars.start[i]! <= cells.to; i++) {
            const start = bars.start[i]!;
            if (start + bars.length[i]! < cells.from) continue;
            const bar = lane.first + k * chunk + i;
            const entry = store.operations(lane.row, bar);
            if (!entry) continue;
            const o = entry.value ?? (await entry.promise);
            for (const j of placesOf(o, bar)) {
              const instance = o.instance[j]!;
              const known = first.get(instance);
              if (known) {
                known.start = Math.min(known.start, start);
                known.members++;
              } else first.set(instance, { start, members: 1 });
              if (start >= cells.from) parts.push({ rank, start, instance });
            }
          }
          if (performance.now() - shown > 40) {
            if (!going()) return undefined;
            await new Promise((done) => setTimeout(done, 0));
            shown = performance.now();
          }
        }
      }
    }
    // Members outside the picture may have been the first.
    for (const [n, known] of first) {
      const instance = store.peekInstance(n) ?? (await store.instance(n));
      if (instance.unlike || instance.parts.length <= known.members) continue;
      for (const p of instance.parts) known.start = Math.min(known.start, (await store.bar(p.bar)).start);
    }
    const out = this.lanes.map(() => new Float64Array(cells.columns));
    for (const p of parts) {
      const at = Math.min(cells.columns - 1, Math.floor((p.start - cells.from) / each));
      const line = out[p.rank]!;
      line[at] = Math.max(line[at]!, p.start - first.get(p.instance)!.start);
    }
    return out;
  }
}

function meanLength(start: Float64Array): number {
  return (start[start.length - 1]! - start[0]!) / Math.max(1, start.length - 1);
}

// add distributes an amount over the cells between two times.
function add(cells: Cells, each: number, out: Float64Array | Float32Array, s: number, e: number, amount: number, at = 0): void {
  if (amount === 0) return;
  const a = (s - cells.from) / each;
  const b = (e - cells.from) / each;
  const first = Math.floor(a);
  if (Math.floor(b) === first || b <= a) {
    if (first >= 0 && first < cells.columns) out[at + first]! += amount;
    return;
  }
  const share = amount / (b - a);
  for (let i = Math.max(0, first); i < Math.min(cells.columns, b); i++) out[at + i]! += share * (Math.min(i + 1, b) - Math.max(i, a));
}
