// SPDX-License-Identifier: Apache-2.0
// The data of the archive, unpacked as they are needed.

import { Columns, Notes } from "./columns";
import type { Head } from "./head";
import { Curves } from "./metrics";
import type { Source } from "./source";

// Level sums up a lane: each entry stands for bars that follow each other. Of the lowest level each is of
// head.leaf bars, of the others of fan entries of the one below.
export interface Level {
  start: Float64Array;
  end: Float64Array;
  busy: Float32Array; // share of the time
  wait: Float32Array; // share of the busy time
  region: Uint32Array;
}

export const fan = 8;

export interface Bars {
  start: Float64Array;
  length: Float64Array;
  region: Uint32Array;
  wait: Float64Array;
}

export interface Wait {
  kind: number;
  rank: number;
  first: boolean;
}

export interface BarNotes {
  parent: Float64Array; // bar, −1
  kids: Uint32Array; // by bar of the block and one more: index into kid
  kid: Float64Array;
  waits: Map<number, Wait>; // by place in the block
  attributes: Notes;
}

export interface Transfers {
  start: Float64Array;
  length: Float64Array; // −1: not known
  row: Int32Array; // −1: not known
  bytes: Float64Array;
  parent: Float64Array;
  attributes: Notes;
}

export interface Operations {
  bar: Float64Array;
  instance: Uint32Array;
  sent: Float64Array;
  received: Float64Array;
  root: Float64Array; // −1: none
  attributes: Notes;
}

export interface Instance {
  message: boolean;
  unlike: boolean;
  comm: number;
  fn: number;
  ordinal: number;
  expected: number;
  parts: { rank: number; bar: number }[];
}

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

// atOnce is how many blocks are unpacked at the same time.
const atOnce = 4;

interface Entry<T> {
  value?: T;
  promise: Promise<T>;
  used: number;
  size: number;
}

// Store unpacks blocks. Functions that begin with "peek" give what is there, and else ask for it: onLoad is called
// when it has come.
export class Store {
  readonly head: Head;
  readonly curves: Curves;
  lanes: Lane[] = [];
  transferLevels = new Map<number, Level[]>(); // by row
  onLoad: () => void = () => {};
  onError: (e: unknown) => void = () => {};
  loading = 0;
  budget = 8_000_000; // of bars that are unpacked at the same time, beyond those in the picture
  private readonly cache = new Map<string, Entry<unknown>>();
  held = 0; // bars, or as much as
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private tick = 0;

  constructor(private readonly source: Source) {
    this.head = source.head;
    this.curves = new Curves(this);
  }

  // repeats tells whether a lane shows parts of what the rows of ranks show, so that adding both up would count it twice.
  repeats(lane: Lane): boolean {
    return this.head.rows[lane.row]!.kind === "channel";
  }

  async open(): Promise<void> {
    const c = new Columns(await this.source.block(this.head.nodes));
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
    if (metrics.series.length > 0) this.curves.open(await this.source.block(metrics.nodes));
  }

  load<T>(key: string, block: number, size: number, make: (c: Columns) => T): Entry<T> {
    let e = this.cache.get(key) as Entry<T> | undefined;
    if (!e) {
      this.loading++;
      const entry: Entry<T> = {
        used: 0,
        size,
        promise: this.turn(() => this.source.block(block)).then((bytes) => {
          entry.value = make(new Columns(bytes));
          this.loading--;
          this.onLoad();
          return entry.value;
        }),
      };
      entry.promise.catch((err) => {
        this.loading--;
        this.onError(err);
      });
      e = entry;
      this.cache.set(key, e as Entry<unknown>);
      this.held += size;
    }
    e.used = this.tick;
    return e;
  }

  // turn lets few blocks be unpacked at the same time, those that were asked for last first: what has been passed by
  // can wait, and pictures come in between.
  private turn(what: () => Promise<Uint8Array>): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.waiting.push(() => {
        this.running++;
        what()
          .then(resolve, reject)
          .finally(() => {
            this.running--;
            this.waiting.pop()?.();
          });
      });
      if (this.running < atOnce) this.waiting.pop()!();
    });
  }

  // frame tells that a picture begins: what the ones before it did not need may go.
  frame(): void {
    this.tick++;
    if (this.held <= this.budget) return;
    const old = [...this.cache].filter(([, e]) => e.value !== undefined && e.used < this.tick - 1).sort((a, b) => a[1].used - b[1].used);
    for (const [key, e] of old) {
      if (this.held <= this.budget * 0.8) break;
      this.cache.delete(key);
      this.held -= e.size;
    }
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

  peekTransfers(row: number, chunk: number): Transfers | undefined {
    const s = this.head.rows[row]!.transfers;
    const n = Math.min(this.head.chunk, s.count - chunk * this.head.chunk);
    return this.load("t" + (s.block + chunk), s.block + chunk, 4 * n, (c) => readTransfers(c, n)).value;
  }

  private operationsEntry(row: number, chunk: number): Entry<Operations> {
    const s = this.head.rows[row]!.operations;
    return this.load("o" + (s.block + chunk), s.block + chunk, 4 * Math.min(this.head.chunk, s.count), readOperations);
  }

  // chunkOfOperations is the block of a row that has the operations of a bar, −1: it has none.
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

  // laneOf is the lane of a bar.
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

  // peekBar is what is drawn of a bar.
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

function emptyLevel(n: number): Level {
  return { start: new Float64Array(n), end: new Float64Array(n), busy: new Float32Array(n), wait: new Float32Array(n), region: new Uint32Array(n) };
}

// pyramid sums levels up until one entry is left.
function pyramid(lowest: Level): Level[] {
  const all = [lowest];
  for (let below = lowest; below.start.length > 1; ) {
    const n = Math.ceil(below.start.length / fan);
    const level = emptyLevel(n);
    const times = new Map<number, number>();
    for (let i = 0; i < n; i++) {
      const from = i * fan;
      const to = Math.min(from + fan, below.start.length);
      let end = 0;
      let busy = 0;
      let waiting = 0;
      times.clear();
      for (let j = from; j < to; j++) {
        end = Math.max(end, below.end[j]!);
        const time = (below.end[j]! - below.start[j]!) * below.busy[j]!;
        busy += time;
        waiting += time * below.wait[j]!;
        const r = below.region[j]!;
        times.set(r, (times.get(r) ?? 0) + time + 1);
      }
      let most = -1;
      for (const [r, time] of times) {
        if (time > most) {
          most = time;
          level.region[i] = r;
        }
      }
      const start = below.start[from]!;
      level.start[i] = start;
      level.end[i] = end;
      level.busy[i] = end > start ? Math.min(1, busy / (end - start)) : 1;
      level.wait[i] = busy > 0 ? waiting / busy : 0;
    }
    all.push(level);
    below = level;
  }
  return all;
}

function readBars(c: Columns, n: number): Bars {
  const [start, length, region, wait] = [c.next(), c.next(), c.next(), c.next()];
  const b: Bars = { start: new Float64Array(n), length: new Float64Array(n), region: new Uint32Array(n), wait: new Float64Array(n) };
  let at = 0;
  for (let i = 0; i < n; i++) {
    at += start.next();
    b.start[i] = at;
    const l = length.next();
    b.length[i] = l;
    at += l;
    b.region[i] = region.next();
    b.wait[i] = wait.next();
  }
  return b;
}

function readBarNotes(c: Columns, n: number): BarNotes {
  const [parent, kids, kid, waits] = [c.next(), c.next(), c.next(), c.next()];
  const b: BarNotes = { parent: new Float64Array(n), kids: new Uint32Array(n + 1), kid: new Float64Array(0), waits: new Map(), attributes: new Notes(c) };
  let at = 0;
  for (let i = 0; i < n; i++) {
    at += parent.signed();
    b.parent[i] = at - 1;
    b.kids[i + 1] = b.kids[i]! + kids.next();
  }
  b.kid = new Float64Array(b.kids[n]!);
  at = 0;
  for (let i = 0; i < b.kid.length; i++) {
    at += kid.signed();
    b.kid[i] = at;
  }
  while (waits.more) b.waits.set(waits.next(), { kind: waits.next(), rank: waits.next(), first: waits.next() === 1 });
  return b;
}

function readTransfers(c: Columns, n: number): Transfers {
  const [start, length, row, bytes, parent] = [c.next(), c.next(), c.next(), c.next(), c.next()];
  const t: Transfers = {
    start: new Float64Array(n), length: new Float64Array(n), row: new Int32Array(n), bytes: new Float64Array(n), parent: new Float64Array(n), attributes: new Notes(c),
  };
  let at = 0;
  let up = 0;
  for (let i = 0; i < n; i++) {
    at += start.next();
    t.start[i] = at;
    t.length[i] = length.next() - 1;
    t.row[i] = row.next() - 1;
    t.bytes[i] = bytes.next();
    up += parent.signed();
    t.parent[i] = up - 1;
  }
  return t;
}

function readOperations(c: Columns): Operations {
  const [bar, instance, sent, received, root] = [c.next(), c.next(), c.next(), c.next(), c.next()];
  const all: number[][] = [];
  let at = 0;
  let number = 0;
  while (bar.more) {
    at += bar.next();
    number += instance.signed();
    all.push([at, number, sent.next(), received.next(), root.next() - 1]);
  }
  return {
    bar: Float64Array.from(all, (o) => o[0]!),
    instance: Uint32Array.from(all, (o) => o[1]!),
    sent: Float64Array.from(all, (o) => o[2]!),
    received: Float64Array.from(all, (o) => o[3]!),
    root: Float64Array.from(all, (o) => o[4]!),
    attributes: new Notes(c),
  };
}

function readInstances(c: Columns): Instance[] {
  const [kind, comm, fn, ordinal, expected, parts, ranks, bar] = [c.next(), c.next(), c.next(), c.next(), c.next(), c.next(), c.next(), c.next()];
  const all: Instance[] = [];
  const before: number[] = [];
  let at = 0;
  while (kind.more) {
    const k = kind.next();
    at += ordinal.signed();
    const one: Instance = { message: (k & 1) !== 0, unlike: (k & 2) !== 0, comm: comm.next(), fn: fn.next(), ordinal: at, expected: expected.next(), parts: [] };
    const n = parts.next();
    for (let i = 0; i < n; i++) {
      before[i] = (before[i] ?? 0) + bar.signed();
      one.parts.push({ rank: ranks.next(), bar: before[i]! });
    }
    all.push(one);
  }
  return all;
}

// lastAtMost is the index of the last entry of an ascending list that is not greater than v, −1: none.
export function lastAtMost(list: ArrayLike<number>, v: number): number {
  let lo = -1;
  let hi = list.length - 1;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (list[mid]! <= v) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}
