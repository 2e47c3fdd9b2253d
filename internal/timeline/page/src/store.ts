// SPDX-License-Identifier: Apache-2.0
// The data of the archive, unpacked on demand.

import {
  readBarNotes, readBars, readCharges, readInstances, readOperations, readSegments, readTransfers, readWaits,
  type BarNotes, type Bars, type Charges, type Instance, type Operations, type Segments, type TimedWaits, type Transfers,
} from "./blocks";
import { firstAfter, lastAtMost, lowerBound } from "./bounds";
import { Cache, type Entry } from "./cache";
import { Columns } from "./columns";
import { Curves } from "./curves";
import type { Series } from "./head";
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

export interface Bar {
  lane: Lane;
  start: number;
  length: number;
  region: number;
  wait: number;
}

// Store returns bars and the objects that belong to them. What is not loaded yet is requested; onLoad is called when it
// is there. Pictures use the value of an entry, if there is one, and others wait for its promise.
export class Store extends Cache {
  readonly curves: Curves;
  lanes: Lane[] = [];
  private firsts: number[] = []; // of the lanes
  private readonly ranks: number[]; // by row
  transferLevels = new Map<number, Level[]>(); // by row

  constructor(source: Source) {
    super(source);
    this.curves = new Curves(this);
    const processes = new Map(this.head.ranks.map((r, i) => [r.row, i]));
    this.ranks = this.head.rows.map((_, row) => processes.get(this.around(row).find((r) => processes.has(r)) ?? -1) ?? -1);
  }

  // around lists a row and the groups around it.
  around(row: number): number[] {
    const all: number[] = [];
    for (let r = row; r >= 0; r = this.head.rows[r]!.parent) all.push(r);
    return all;
  }

  // rankOf returns the rank of the job that a row belongs to; −1: none.
  rankOf(row: number): number {
    return this.ranks[row] ?? -1;
  }

  // operationLanes lists the lanes with operations of ranks that can match a filter.
  operationLanes(filter?: { onRank(rank: number): boolean }): Lane[] {
    return this.lanes.filter((l) => this.head.rows[l.row]!.operations.count > 0 && (!filter || filter.onRank(this.rankOf(l.row))));
  }

  // countOperations estimates how many operations begin in a range, and on how many rows, for ranks that can match a
  // filter.
  countOperations(from: number, to: number, filter?: { onRank(rank: number): boolean }): { operations: number; rows: number } {
    const out = { operations: 0, rows: 0 };
    for (const lane of this.operationLanes(filter)) {
      const level = lane.levels[0]!;
      const n = Math.min(lane.count, this.head.leaf * (lowerBound(level.start, to) - Math.max(0, lowerBound(level.end, from))));
      out.operations += Math.max(0, n);
      if (n > 0) out.rows++;
    }
    return out;
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
      const level: Level = emptyLevel(Math.ceil(things / this.head.leaf));
      start.sums(level.start);
      region.fill(level.region);
      for (let i = 0; i < level.start.length; i++) {
        level.end[i] = level.start[i]! + length.next();
        level.busy[i] = busy.next() / 255;
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
    this.firsts = this.lanes.map((l) => l.first);
    this.head.rows.forEach((row, r) => {
      if (row.transfers.count > 0) this.transferLevels.set(r, read(row.transfers.count));
    });
    const { metrics } = this.head;
    if (metrics.series.length > 0) this.curves.open(await this.raw(metrics.nodes));
  }

  // block requests a block of a series of things: chunk k of them, each of which counts as weight bars.
  private block<T>(series: Series, k: number, weight: number, read: (c: Columns, n: number) => T): Entry<T> {
    const n = Math.min(this.head.chunk, series.count - k * this.head.chunk);
    return this.load(series.block + k, weight * n, (c) => read(c, n));
  }

  bars(lane: Lane, chunk: number): Entry<Bars> {
    return this.block({ block: lane.block + chunk, count: lane.count }, chunk, 1, readBars);
  }

  notes(lane: Lane, chunk: number): Entry<BarNotes> {
    return this.block({ block: lane.block + chunk + 1, count: lane.count }, chunk, 4, readBarNotes);
  }

  transfers(row: number, chunk: number): Entry<Transfers> {
    return this.block(this.head.rows[row]!.transfers, chunk, 4, readTransfers);
  }

  // operations are those in the block of a row in which those of a bar are; undefined: it has none.
  operations(row: number, bar: number): Entry<Operations> | undefined {
    const chunk = lastAtMost(this.head.rows[row]!.firstOps ?? [], bar);
    const { block, count } = this.head.rows[row]!.operations;
    return chunk < 0 ? undefined : this.load(block + chunk, 4 * Math.min(this.head.chunk, count), readOperations);
  }

  private instances(n: number): Entry<Instance[]> {
    return this.block(this.head.instances, Math.floor(n / this.head.chunk), 4, readInstances);
  }
  peekInstance(n: number): Instance | undefined {
    return this.instances(n).value?.[n % this.head.chunk];
  }
  async instance(n: number): Promise<Instance> {
    return (await this.instances(n).promise)[n % this.head.chunk]!;
  }

  segments(chunk: number): Entry<Segments> {
    const path = this.head.path!;
    return this.block(path, chunk, 1, (c, n) => readSegments(c, n, path.starts[chunk]!));
  }

  waits(chunk: number): Entry<TimedWaits> {
    return this.block(this.head.waits!, chunk, 2, readWaits);
  }

  charges(chunk: number): Entry<Charges> {
    return this.block(this.head.charges!, chunk, 4, readCharges);
  }

  // chunksIn lists the chunks of a lane whose bars may overlap a range of time.
  chunksIn(lane: Lane, from: number, to: number): number[] {
    const { chunk, leaf } = this.head;
    const level = lane.levels[0]!;
    const all: number[] = [];
    for (let k = Math.floor((firstAfter(level.end, from) * leaf) / chunk); k * chunk < lane.count && level.start[(k * chunk) / leaf]! <= to; k++) all.push(k);
    return all;
  }

  // ahead requests the data of lanes in a range of time at once, because blocks requested one after the other
  // come late. There should be few lanes.
  async ahead(lanes: Lane[], from: number, to: number, what: { notes?: boolean; operations?: boolean } = {}): Promise<void> {
    await Promise.all(
      lanes.flatMap((lane) =>
        this.chunksIn(lane, from, to).flatMap((k) => [
          this.bars(lane, k).promise, what.notes && this.notes(lane, k).promise, what.operations && this.operations(lane.row, lane.first + k * this.head.chunk)?.promise,
        ]),
      ),
    );
  }

  // laneOf returns the lane of a bar.
  laneOf(bar: number): Lane {
    return this.lanes[Math.max(0, lastAtMost(this.firsts, bar))]!;
  }

  // placeOf returns the lane of a bar, the chunk of it in which the bar is, and its place there.
  placeOf(bar: number): { lane: Lane; chunk: number; at: number } {
    const lane = this.laneOf(bar);
    return { lane, chunk: Math.floor((bar - lane.first) / this.head.chunk), at: (bar - lane.first) % this.head.chunk };
  }

  // peekBar returns what is needed to draw a bar.
  peekBar(bar: number): Bar | undefined {
    const { lane, chunk, at } = this.placeOf(bar);
    const bars = this.bars(lane, chunk).value;
    return bars && { lane, start: bars.start[at]!, length: bars.length[at]!, region: bars.region[at]!, wait: bars.wait[at]! };
  }

  async bar(bar: number): Promise<Bar> {
    const { lane, chunk } = this.placeOf(bar);
    await this.bars(lane, chunk).promise;
    return this.peekBar(bar)!;
  }
}
