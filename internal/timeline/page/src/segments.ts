// SPDX-License-Identifier: Apache-2.0
// Decoding of the critical path, of the waits sorted by time, and of their causes, which ../../steps.go,
// ../../waited.go and ../../charges.go write.

import type { Columns } from "./columns";

// Segments are consecutive parts of the path.
export interface Segments {
  start: Float64Array;
  length: Float64Array;
  rank: Int32Array; // −1: of no rank
  what: Uint16Array; // index into the head's list
}

export function readSegments(c: Columns, n: number, begin: number): Segments {
  const [length, rank, what] = [c.next(), c.next(), c.next()];
  const s: Segments = { start: new Float64Array(n), length: new Float64Array(n), rank: new Int32Array(n), what: new Uint16Array(n) };
  let at = begin;
  let r = 0;
  for (let i = 0; i < n; i++) {
    s.start[i] = at;
    const l = length.next();
    s.length[i] = l;
    at += l;
    r += rank.signed();
    s.rank[i] = r - 1;
    s.what[i] = what.next();
  }
  return s;
}

// Charges are the operations with waiting, in the order of their first arrivals.
export interface Charges {
  start: Float64Array;
  first: Uint32Array; // by operation, plus one: index into rank, kind and ns
  rank: Int32Array; // −1: all further ranks
  kind: Uint8Array; // index into the head's list
  ns: Float64Array;
}

export function readCharges(c: Columns, n: number): Charges {
  const [start, , count, rank, kind, ns] = [c.next(), c.next(), c.next(), c.next(), c.next(), c.next()];
  const out: Charges = { start: new Float64Array(n), first: new Uint32Array(n + 1), rank: new Int32Array(0), kind: new Uint8Array(0), ns: new Float64Array(0) };
  let at = 0;
  for (let i = 0; i < n; i++) {
    at += start.next();
    out.start[i] = at;
    out.first[i + 1] = out.first[i]! + count.next();
  }
  const all = out.first[n]!;
  out.rank = new Int32Array(all);
  out.kind = new Uint8Array(all);
  out.ns = new Float64Array(all);
  for (let i = 0; i < all; i++) {
    out.rank[i] = rank.next() - 1;
    out.kind[i] = kind.next();
    out.ns[i] = ns.next();
  }
  return out;
}

// TimedWaits are waits in the order of their operations' begins.
export interface TimedWaits {
  start: Float64Array; // begin of the operation on its first member
  begin: Float64Array; // of the wait
  length: Float64Array;
  rank: Int32Array; // −1: unknown
  by: Int32Array; // that was waited for; −1: unknown
  first: Uint8Array; // 1: in the first operation of a communicator
  comm: Uint32Array;
  fn: Uint16Array;
}

export function readWaits(c: Columns, n: number): TimedWaits {
  const [start, length, rank, by, first, comm, fn, after] = [c.next(), c.next(), c.next(), c.next(), c.next(), c.next(), c.next(), c.next()];
  const w: TimedWaits = {
    start: new Float64Array(n), begin: new Float64Array(n), length: new Float64Array(n), rank: new Int32Array(n), by: new Int32Array(n), first: new Uint8Array(n), comm: new Uint32Array(n), fn: new Uint16Array(n),
  };
  let at = 0;
  for (let i = 0; i < n; i++) {
    at += start.next();
    w.start[i] = at;
    w.length[i] = length.next();
    w.rank[i] = rank.next() - 1;
    w.by[i] = by.next() - 1;
    w.first[i] = first.next();
    w.comm[i] = comm.next();
    w.fn[i] = fn.next();
    w.begin[i] = at + after.next();
  }
  return w;
}
