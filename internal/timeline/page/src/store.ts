// SPDX-License-Identifier: Apache-2.0
// The data of the archive, unpacked on demand.

import {
  readBarNotes, readBars, readInstances, readOperations, readTransfers, type BarNotes, type Bars, type Instance, type Operations, type Transfers,
} from "./blocks";
import { firstAfter, lastAtMost } from "./bounds";
import { Cache, type Entry } from "./cache";
import { Columns } from "./columns";
import { Curves } from "./curves";
import { readCharges, readSegments, readWaits, type Charges, type Segments, type TimedWaits } from "./segments";
import { emptyLevel, pyramid, type Level } from "./levels";
import type { Source } from "./source";

export interface Lane {
  index: number;
  row: number;
  depth: number;
  first: number;
  count: number;
  block: number;
  levels: Level[];
  sums: { region: number; count: number; time: number }[];
}

// Store returns bars and the objects that belong to them. Functions that begin with "peek" return loaded data, and
// otherwise request them: onLoad is called when they are loaded.
export class Store extends Cache {
  readonly curves: Curves;
  lanes: Lane[] = [];
  transferLevels = new Map<number, Level[]>(); // by row

  constructor(source: Source) {
    super(source);
    this.curves = new Curves(this);
  }

  // repeats reports whether a lane repeats what other rows show, so that summing up both would count it twice.
  repeats(lane: Lane): boolean {
    const kind = this.head.rows[lane.row]!.kind;
    return kind === "channel" || kind === "event";
  }

  async open(): Promise<void> {
    const c = new Columns(await this.raw(this.head.nodes));
    const [start, length, busy, region, wait, regions] = [c.next(), c.next(), c.next(), c.next(), c.next(), c.next()];
    const read = (things: number): Level[] => {
      const n = Math.ceil(things / this.head.leaf);
      const level: Level = emptyLevel(n);
      let at = 0;
      for (let i = 0; i < n; i++) {
        at += start.next();
        level.start[i] = at;
        level.end[i] = at + length.next();
        level.busy[i] = busy.next() / 255;
        level.region[i] = region.next();
        level.wait[i] = wait.next() / 255;
      }
      return pyramid(level);
    };
    this.head.rows.forEach((row, r) => {
      for (let i = row.lanes[0]; i < row.lanes[1]; i++) {
        const l = this.head.lanes[i]!;
        const levels = read(l.count);
        const sums = Array.from({ length: regions.next() }, () => ({ region: regions.next(), count: regions.next(), time: regions.next() }));
        this.lanes.push({ index: i, row: r, depth: i - row.lanes[0], first: l.first, count: l.count, block: l.block, levels, sums });
      }
    });
    this.head.rows.forEach((row, r) => {
      if (row.transfers.count > 0) this.transferLevels.set(r, read(row.transfers.count));
    });
    const { metrics } = this.head;
    if (metrics.series.length > 0) this.curves.open(await this.raw(metrics.nodes));
  }

  private barsEntry(lane: Lane, chunk: number): Entry<Bars> {
    const n = Math.min(this.head.chunk, lane.count - chunk * this.head.chunk);
    return this.load("b" + (lane.block + 2 * chunk), lane.block + 2 * chunk, n, (c) => readBars(c, n));
  }
  peekBars(lane: Lane, chunk: number): Bars | undefined {
    return this.barsEntry(lane, chunk).value;
  }
  bars(lane: Lane, chunk: number): Promise<Bars> {
    return this.barsEntry(lane, chunk).promise;
  }

  // ahead requests the data of lanes in a range of time at once, because blocks requested one after the other
  // come late. There should be few lanes.
  async ahead(lanes: Lane[], from: number, to: number, what: { notes?: boolean; operations?: boolean }): Promise<void> {
    const { chunk, leaf } = this.head;
    const all: Promise<unknown>[] = [];
    for (const lane of lanes) {
      const level = lane.levels[0]!;
      for (let k = Math.floor((firstAfter(level.end, from) * leaf) / chunk); k * chunk < lane.count && level.start[(k * chunk) / leaf]! <= to; k++) {
        all.push(this.bars(lane, k));
        if (what.notes) all.push(this.notes(lane, k));
        if (what.operations) all.push(this.operations(lane.row, lane.first + k * chunk));
      }
    }
    await Promise.all(all);
  }

  private notesEntry(lane: Lane, chunk: number): Entry<BarNotes> {
    const n = Math.min(this.head.chunk, lane.count - chunk * this.head.chunk);
    const block = lane.block + 2 * chunk + 1;
    return this.load("n" + block, block, 4 * n, (c) => readBarNotes(c, n));
  }
  peekNotes(lane: Lane, chunk: number): BarNotes | undefined {
    return this.notesEntry(lane, chunk).value;
  }
  notes(lane: Lane, chunk: number): Promise<BarNotes> {
    return this.notesEntry(lane, chunk).promise;
  }

  private transfersEntry(row: number, chunk: number): Entry<Transfers> {
    const s = this.head.rows[row]!.transfers;
    const n = Math.min(this.head.chunk, s.count - chunk * this.head.chunk);
    return this.load("t" + (s.block + chunk), s.block + chunk, 4 * n, (c) => readTransfers(c, n));
  }
  peekTransfers(row: number, chunk: number): Transfers | undefined {
    return this.transfersEntry(row, chunk).value;
  }
  transfers(row: number, chunk: number): Promise<Transfers> {
    return this.transfersEntry(row, chunk).promise;
  }

  private operationsEntry(row: number, chunk: number): Entry<Operations> {
    const s = this.head.rows[row]!.operations;
    return this.load("o" + (s.block + chunk), s.block + chunk, 4 * Math.min(this.head.chunk, s.count), readOperations);
  }

  // chunkOfOperations returns the block of a row with the operations of a bar; −1: it has none.
  private chunkOfOperations(row: number, bar: number): number {
    return lastAtMost(this.head.rows[row]!.firstOps ?? [], bar);
  }
  peekOperations(row: number, bar: number): Operations | undefined {
    const chunk = this.chunkOfOperations(row, bar);
    return chunk < 0 ? undefined : this.operationsEntry(row, chunk).value;
  }
  async operations(row: number, bar: number): Promise<Operations | undefined> {
    const chunk = this.chunkOfOperations(row, bar);
    return chunk < 0 ? undefined : this.operationsEntry(row, chunk).promise;
  }

  private instancesEntry(n: number): Entry<Instance[]> {
    const block = this.head.instances.block + Math.floor(n / this.head.chunk);
    return this.load("i" + block, block, 4 * Math.min(this.head.chunk, this.head.instances.count), readInstances);
  }
  peekInstance(n: number): Instance | undefined {
    return this.instancesEntry(n).value?.[n % this.head.chunk];
  }
  async instance(n: number): Promise<Instance> {
    return (await this.instancesEntry(n).promise)[n % this.head.chunk]!;
  }

  private segmentsEntry(chunk: number): Entry<Segments> {
    const { block, count, starts } = this.head.path!;
    const n = Math.min(this.head.chunk, count - chunk * this.head.chunk);
    return this.load("p" + (block + chunk), block + chunk, n, (c) => readSegments(c, n, starts[chunk]!));
  }
  peekSegments(chunk: number): Segments | undefined {
    return this.segmentsEntry(chunk).value;
  }
  segments(chunk: number): Promise<Segments> {
    return this.segmentsEntry(chunk).promise;
  }

  private waitsEntry(chunk: number): Entry<TimedWaits> {
    const { block, count } = this.head.waits!;
    const n = Math.min(this.head.chunk, count - chunk * this.head.chunk);
    return this.load("w" + (block + chunk), block + chunk, 2 * n, (c) => readWaits(c, n));
  }
  peekWaits(chunk: number): TimedWaits | undefined {
    return this.waitsEntry(chunk).value;
  }
  waits(chunk: number): Promise<TimedWaits> {
    return this.waitsEntry(chunk).promise;
  }

  charges(chunk: number): Promise<Charges> {
    const { block, count } = this.head.charges!;
    const n = Math.min(this.head.chunk, count - chunk * this.head.chunk);
    return this.load("c" + (block + chunk), block + chunk, 4 * n, (c) => readCharges(c, n)).promise;
  }

  // laneOf returns the lane of a bar.
  laneOf(bar: number): Lane {
    let lo = 0;
    let hi = this.lanes.length - 1;
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1;
      if (this.lanes[mid]!.first <= bar) lo = mid;
      else hi = mid - 1;
    }
    return this.lanes[lo]!;
  }

  // peekBar returns what is needed to draw a bar.
  peekBar(bar: number): { lane: Lane; start: number; length: number; region: number; wait: number } | undefined {
    const lane = this.laneOf(bar);
    const at = bar - lane.first;
    const bars = this.peekBars(lane, Math.floor(at / this.head.chunk));
    if (!bars) return undefined;
    const i = at % this.head.chunk;
    return { lane, start: bars.start[i]!, length: bars.length[i]!, region: bars.region[i]!, wait: bars.wait[i]! };
  }

  async bar(bar: number): Promise<{ lane: Lane; start: number; length: number; region: number; wait: number }> {
    const lane = this.laneOf(bar);
    await this.bars(lane, Math.floor((bar - lane.first) / this.head.chunk));
    return this.peekBar(bar)!;
  }
}
