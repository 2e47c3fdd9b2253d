// SPDX-License-Identifier: Apache-2.0
// Decoding the blocks of the archive: ../../blocks.go writes them, and ../../steps.go, ../../waited.go and
// ../../charges.go the critical path, the waits sorted by time, and their causes. Columns are read in their order.

import { lowerBound } from "./bounds";
import { Notes, type Columns } from "./columns";

export type Bars = ReturnType<typeof readBars>;

export function readBars(c: Columns, n: number) {
  const [gap, length, region, wait] = [c.next(), c.next(), c.next(), c.next()];
  const b = { start: new Float64Array(n), length: length.fill(new Float64Array(n)), region: region.fill(new Uint32Array(n)), wait: wait.fill(new Float64Array(n)) };
  for (let i = 0, at = 0; i < n; i++) {
    b.start[i] = at += gap.next();
    at += b.length[i]!;
  }
  return b;
}

export interface Wait {
  kind: number;
  rank: number;
  first: boolean;
}

export type BarNotes = ReturnType<typeof readBarNotes>;

export function readBarNotes(c: Columns, n: number) {
  const parent = c.next().signedSums(new Float64Array(n), -1); // bar, −1
  const kids = new Uint32Array(n + 1); // by bar of the block, plus one: index into kid
  c.next().sums(kids.subarray(1));
  const kid = c.next().signedSums(new Float64Array(kids[n]!));
  const waits = new Map<number, Wait>(); // by place in the block
  for (const w = c.next(); w.more; ) waits.set(w.next(), { kind: w.next(), rank: w.next(), first: w.next() === 1 });
  return { parent, kids, kid, waits, attributes: new Notes(c) };
}

export type Transfers = ReturnType<typeof readTransfers>;

export function readTransfers(c: Columns, n: number) {
  return {
    start: c.next().sums(new Float64Array(n)),
    length: c.next().fill(new Float64Array(n), -1), // −1: unknown
    row: c.next().fill(new Int32Array(n), -1), // −1: unknown
    bytes: c.next().fill(new Float64Array(n)),
    parent: c.next().signedSums(new Float64Array(n), -1),
    attributes: new Notes(c),
  };
}

export type Operations = ReturnType<typeof readOperations>;

export function readOperations(c: Columns) {
  const bars: number[] = [];
  for (const bar = c.next(); bar.more; ) bars.push((bars.at(-1) ?? 0) + bar.next());
  const n = bars.length;
  return {
    bar: Float64Array.from(bars),
    instance: c.next().signedSums(new Uint32Array(n)),
    sent: c.next().fill(new Float64Array(n)),
    received: c.next().fill(new Float64Array(n)),
    root: c.next().fill(new Float64Array(n), -1), // −1: none
    size: c.next().fill(new Float64Array(n)), // bytes, as nccl-tests count them
    attributes: new Notes(c),
  };
}

// placesOf lists the places of a bar's operations in a block.
export function placesOf(o: Operations, bar: number): number[] {
  const places: number[] = [];
  for (let i = lowerBound(o.bar, bar); o.bar[i] === bar; i++) places.push(i);
  return places;
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

export function readInstances(c: Columns): Instance[] {
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

// Segments are consecutive parts of the critical path.
export type Segments = ReturnType<typeof readSegments>;

export function readSegments(c: Columns, n: number, begin: number) {
  const start = new Float64Array(n);
  const length = c.next().fill(new Float64Array(n));
  for (let i = 0, at = begin; i < n; at += length[i++]!) start[i] = at;
  // rank −1: of no rank; what: index into the head's list
  return { start, length, rank: c.next().signedSums(new Int32Array(n), -1), what: c.next().fill(new Uint16Array(n)) };
}

// Charges are the operations with waiting, in the order of their first arrivals.
export type Charges = ReturnType<typeof readCharges>;

export function readCharges(c: Columns, n: number) {
  const start = c.next().sums(new Float64Array(n));
  c.next(); // is for other readers
  const first = new Uint32Array(n + 1); // by operation, plus one: index into rank, kind and ns
  c.next().sums(first.subarray(1));
  const all = first[n]!;
  // rank −1: all further ranks; kind: index into the head's list
  return { start, first, rank: c.next().fill(new Int32Array(all), -1), kind: c.next().fill(new Uint8Array(all)), ns: c.next().fill(new Float64Array(all)) };
}

// TimedWaits are waits in the order of their operations' begins.
export type TimedWaits = ReturnType<typeof readWaits>;

export function readWaits(c: Columns, n: number) {
  const w = {
    start: c.next().sums(new Float64Array(n)), // begin of the operation on its first member
    length: c.next().fill(new Float64Array(n)),
    rank: c.next().fill(new Int32Array(n), -1), // −1: unknown
    by: c.next().fill(new Int32Array(n), -1), // that was waited for; −1: unknown
    first: c.next().fill(new Uint8Array(n)), // 1: in the first operation of a communicator
    comm: c.next().fill(new Uint32Array(n)),
    fn: c.next().fill(new Uint16Array(n)),
  };
  const after = c.next();
  return { ...w, begin: w.start.map((at) => at + after.next()) }; // begin of the wait
}
