// SPDX-License-Identifier: Apache-2.0
// Decoding the blocks of the archive that ../../blocks.go writes.

import { Columns, Notes } from "./columns";

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
  kids: Uint32Array; // by bar of the block, plus one: index into kid
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
  size: Float64Array; // bytes, as nccl-tests count them
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

export function readBars(c: Columns, n: number): Bars {
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

export function readBarNotes(c: Columns, n: number): BarNotes {
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

export function readTransfers(c: Columns, n: number): Transfers {
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

export function readOperations(c: Columns): Operations {
  const [bar, instance, sent, received, root, size] = [c.next(), c.next(), c.next(), c.next(), c.next(), c.next()];
  const all: number[][] = [];
  let at = 0;
  let number = 0;
  while (bar.more) {
    at += bar.next();
    number += instance.signed();
    all.push([at, number, sent.next(), received.next(), root.next() - 1, size.next()]);
  }
  return {
    bar: Float64Array.from(all, (o) => o[0]!),
    instance: Uint32Array.from(all, (o) => o[1]!),
    sent: Float64Array.from(all, (o) => o[2]!),
    received: Float64Array.from(all, (o) => o[3]!),
    root: Float64Array.from(all, (o) => o[4]!),
    size: Float64Array.from(all, (o) => o[5]!),
    attributes: new Notes(c),
  };
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
