// SPDX-License-Identifier: Apache-2.0
// Made-up archives, encoded as ../../format.go says: by other code than that which decodes them.

import type { Head, HeadMetric, HeadRow } from "../src/head";
import type { Source } from "../src/source";
import { Store } from "../src/store";

// Bytes is a column in the making.
export class Bytes {
  readonly bytes: number[] = [];
  private last = 0n;

  add(...values: (number | bigint)[]): this {
    for (const value of values) {
      let v = BigInt(value);
      for (; v >= 128n; v >>= 7n) this.bytes.push(Number(v & 127n) | 128);
      this.bytes.push(Number(v));
    }
    return this;
  }

  // difference adds values that do not fall, each as what it is above the one before.
  difference(...values: number[]): this {
    for (const v of values) {
      this.add(BigInt(v) - this.last);
      this.last = BigInt(v);
    }
    return this;
  }

  // signed adds values as differences in 64 bits that wrap.
  signed(...values: (number | bigint)[]): this {
    for (const v of values) {
      const d = BigInt.asIntN(64, BigInt(v) - this.last);
      this.add(BigInt.asUintN(64, (d << 1n) ^ (d >> 63n)));
      this.last = BigInt(v);
    }
    return this;
  }

  double(...values: number[]): this {
    for (const v of values) {
      const view = new DataView(new ArrayBuffer(8));
      view.setFloat64(0, v, true);
      for (let i = 0; i < 8; i++) this.bytes.push(view.getUint8(i));
    }
    return this;
  }
}

export function block(...columns: Bytes[]): Uint8Array {
  return Uint8Array.from(columns.flatMap((c) => [...new Bytes().add(c.bytes.length).bytes, ...c.bytes]));
}

export interface Bar {
  start: number;
  length: number;
  region?: number;
  wait?: number;
  parent?: number;
  kids?: number[];
  waited?: [kind: number, rank: number, first: number];
  notes?: [id: number, value: bigint][];
}

export interface Operation {
  bar: number;
  instance: number;
  sent: number;
  received: number;
  root: number;
  size?: number; // what is sent, if not given
}

export interface Instance {
  kind: number;
  comm: number;
  fn: number;
  ordinal: number;
  expected: number;
  parts: [rank: number, bar: number][];
}

export interface Transfer {
  start: number;
  length: number;
  row: number;
  bytes: number;
  parent: number;
}

export interface Row {
  name: string;
  kind: HeadRow["kind"];
  parent: number;
  lanes?: Bar[][];
  operations?: Operation[];
  transfers?: Transfer[];
}

export interface Series {
  times: number[];
  members: { row: number; values: (number | bigint)[]; timing: HeadMetric["timing"]; type: HeadMetric["type"]; unit?: string }[];
}

export interface Run {
  duration: number;
  chunk?: number;
  leaf?: number;
  categories?: string[];
  regions?: { name: string; category: number }[];
  rows: Row[];
  instances?: Instance[];
  series?: Series[];
  waits?: [since: number, length: number, rank: number, by: number, first: number, begin?: number][]; // on communicator 0, of function 0; begin: since
}

// groups cuts a list into pieces of n.
function groups<T>(list: readonly T[], n: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / n) }, (_, i) => list.slice(i * n, i * n + n));
}

function attributes(lists: [number, bigint][][]): Bytes[] {
  const shapes = new Map<string, { number: number; ids: number[]; values: Bytes[] }>();
  const of = new Bytes();
  for (const list of lists) {
    const key = list.map(([id]) => id).join(" ");
    const shape = shapes.get(key) ?? { number: shapes.size, ids: list.map(([id]) => id), values: list.map(() => new Bytes()) };
    shapes.set(key, shape);
    of.add(shape.number);
    list.forEach(([, value], i) => shape.values[i]!.signed(value));
  }
  const table = new Bytes();
  for (const s of shapes.values()) table.add(s.ids.length, ...s.ids);
  return [of, table, ...[...shapes.values()].flatMap((s) => s.values)];
}

function barBlocks(bars: Bar[]): Uint8Array[] {
  let end = 0;
  const start = new Bytes();
  for (const b of bars) {
    start.add(b.start - end);
    end = b.start + b.length;
  }
  const waits = new Bytes();
  bars.forEach((b, i) => b.waited && waits.add(i, ...b.waited));
  return [
    block(start, new Bytes().add(...bars.map((b) => b.length)), new Bytes().add(...bars.map((b) => b.region ?? 0)), new Bytes().add(...bars.map((b) => b.wait ?? 0))),
    block(
      new Bytes().signed(...bars.map((b) => (b.parent ?? -1) + 1)), new Bytes().add(...bars.map((b) => b.kids?.length ?? 0)),
      new Bytes().signed(...bars.flatMap((b) => b.kids ?? [])), waits, ...attributes(bars.map((b) => b.notes ?? [])),
    ),
  ];
}

// Nodes are the lowest level of detail: each sums up some bars or transfers.
class Nodes {
  readonly columns = [new Bytes(), new Bytes(), new Bytes(), new Bytes(), new Bytes(), new Bytes()] as const;

  add(list: { start: number; length: number; region?: number; wait?: number }[], leaf: number): void {
    const [start, length, busy, region, wait] = this.columns;
    let before = 0;
    for (const group of groups(list, leaf)) {
      const from = group[0]!.start;
      const to = Math.max(...group.map((b) => b.start + Math.max(0, b.length)));
      const time = group.reduce((n, b) => n + b.length, 0);
      start.add(from - before);
      before = from;
      length.add(to - from);
      busy.add(Math.round((255 * time) / Math.max(1, to - from)));
      region.add(group[0]!.region ?? 0);
      wait.add(Math.round((255 * group.reduce((n, b) => n + (b.wait ?? 0), 0)) / Math.max(1, time)));
    }
  }

  sums(bars: Bar[]): void {
    const sums = new Map<number, [number, number]>();
    for (const b of bars) {
      const [count, time] = sums.get(b.region ?? 0) ?? [0, 0];
      sums.set(b.region ?? 0, [count + 1, time + b.length]);
    }
    this.columns[5].add(sums.size, ...[...sums].flatMap(([region, [count, time]]) => [region, count, time]));
  }
}

// archive makes the data of a page.
export function archive(run: Run): Source {
  const chunk = run.chunk ?? 4;
  const leaf = run.leaf ?? 2;
  const blocks: Uint8Array[] = [];
  const lanes: Head["lanes"] = [];
  const nodes = new Nodes();
  let bars = 0;
  const rows = run.rows.map((row): HeadRow => {
    const from = lanes.length;
    for (const lane of row.lanes ?? []) {
      lanes.push({ first: bars, count: lane.length, block: blocks.length });
      for (const part of groups(lane, chunk)) blocks.push(...barBlocks(part));
      nodes.add(lane, leaf);
      nodes.sums(lane);
      bars += lane.length;
    }
    const operations = groups(row.operations ?? [], chunk);
    const out: HeadRow = {
      name: row.name, kind: row.kind, parent: row.parent, lanes: [from, lanes.length], firstOps: operations.map((o) => o[0]!.bar),
      operations: { block: blocks.length, count: row.operations?.length ?? 0 }, transfers: { block: 0, count: row.transfers?.length ?? 0 },
    };
    for (const o of operations) {
      blocks.push(
        block(
          new Bytes().difference(...o.map((x) => x.bar)), new Bytes().signed(...o.map((x) => x.instance)), new Bytes().add(...o.map((x) => x.sent)),
          new Bytes().add(...o.map((x) => x.received)), new Bytes().add(...o.map((x) => x.root + 1)), new Bytes().add(...o.map((x) => x.size ?? x.sent)), ...attributes(o.map(() => [])),
        ),
      );
    }
    out.transfers.block = blocks.length;
    for (const t of groups(row.transfers ?? [], chunk)) {
      blocks.push(
        block(
          new Bytes().difference(...t.map((x) => x.start)), new Bytes().add(...t.map((x) => x.length + 1)), new Bytes().add(...t.map((x) => x.row + 1)),
          new Bytes().add(...t.map((x) => x.bytes)), new Bytes().signed(...t.map((x) => x.parent + 1)), ...attributes(t.map(() => [])),
        ),
      );
    }
    return out;
  });
  for (const row of run.rows) if (row.transfers) nodes.add(row.transfers, leaf);
  const instances = { block: blocks.length, count: run.instances?.length ?? 0 };
  for (const part of groups(run.instances ?? [], chunk)) blocks.push(instanceBlock(part));
  const waits = { block: blocks.length, count: run.waits?.length ?? 0, starts: [] as number[], ends: [] as number[] };
  for (const part of groups(run.waits ?? [], chunk)) {
    waits.starts.push(part[0]![0]);
    waits.ends.push(Math.max(...waits.ends, ...part.map((w) => (w[5] ?? w[0]) + w[1])));
    const column = (of: (w: (typeof part)[0]) => number) => new Bytes().add(...part.map(of));
    blocks.push(block(new Bytes().difference(...part.map((w) => w[0])), column((w) => w[1]), column((w) => w[2] + 1), column((w) => w[3] + 1), column((w) => w[4]), column(() => 0), column(() => 0), column((w) => (w[5] ?? w[0]) - w[0])));
  }
  const series = (run.series ?? []).map((s) => {
    const first = blocks.length;
    const count = s.times.length - 1;
    for (let from = 0; from < count; from += chunk) {
      const to = Math.min(from + chunk, count) + 1;
      blocks.push(
        block(
          new Bytes().difference(...s.times.slice(from, to)),
          ...s.members.map((m) => (m.type === "DOUBLE" ? new Bytes().double(...m.values.slice(from, to).map(Number)) : new Bytes().signed(...m.values.slice(from, to).map((v) => BigInt.asUintN(64, BigInt(v)))))),
        ),
      );
    }
    const members = s.members.map((m): HeadMetric => ({ row: m.row, description: "", unit: m.unit ?? "", mode: "", timing: m.timing, type: m.type, factor: 1, divisor: 1 }));
    return { block: first, count, end: s.times[count]!, closed: false, members };
  });
  const metrics = { leaf, nodes: blocks.length, series };
  blocks.push(metricNodes(run.series ?? [], leaf));
  blocks.push(block(...nodes.columns));
  const head: Head = {
    version: 2, tool: "test", title: "made up", origin: "0", realtime: false, duration: run.duration, begin: 0, selection: "", chunk, leaf, categories: run.categories ?? ["NCCL collectives"],
    regions: run.regions ?? [{ name: "AllReduce", category: 0 }], attributes: [], texts: {}, rows, lanes, comms: [{ ref: 0, name: "world", members: [] }], functions: ["AllReduce", "Send"],
    waitKinds: [], ranks: [], markers: [], matrix: { transfers: [], nominal: [], remarks: [] }, facts: [], verdict: { text: "", stands_out: false, culprits: [] }, answer: { from: 0, to: 0, lines: [], windows: [], worst: [] },
    totals: { bars, operations: 0, transfers: 0, events: 0, hosts: 1, comms: 1, collectives: 0, waited: 0 }, problems: [], nodes: blocks.length - 1, instances, metrics,
    ...(waits.count > 0 ? { waits } : {}),
  };
  return {
    head,
    block: (n) => (blocks[n] ? Promise.resolve(blocks[n]) : Promise.reject(new Error(`there is no block ${n}`))),
  };
}

function instanceBlock(part: Instance[]): Uint8Array {
  const before: number[] = [];
  const bar = new Bytes();
  for (const one of part) {
    one.parts.forEach(([, b], i) => {
      const d = b - (before[i] ?? 0);
      bar.add(d < 0 ? -2 * d - 1 : 2 * d);
      before[i] = b;
    });
  }
  return block(
    new Bytes().add(...part.map((i) => i.kind)), new Bytes().add(...part.map((i) => i.comm)), new Bytes().add(...part.map((i) => i.fn)),
    new Bytes().signed(...part.map((i) => i.ordinal)), new Bytes().add(...part.map((i) => i.expected)), new Bytes().add(...part.map((i) => i.parts.length)),
    new Bytes().add(...part.flatMap((i) => i.parts.map(([rank]) => rank))), bar,
  );
}

function metricNodes(all: Series[], leaf: number): Uint8Array {
  const start = new Bytes();
  const numbers = new Bytes();
  const missing = new Bytes();
  for (const s of all) start.add(...groups(s.times.slice(0, -1), leaf).map((g, i, list) => g[0]! - (i > 0 ? list[i - 1]![0]! : 0)));
  for (const s of all) {
    for (const m of s.members) {
      for (const group of groups([...s.times.slice(0, -1).keys()], leaf)) {
        const shown = group.map((i) => {
          const length = s.times[i + 1]! - s.times[i]!;
          const [a, b] = [Number(m.values[i]!), Number(m.values[i + 1]!)];
          return m.timing === "rate" ? { v: ((b - a) * 1e9) / length, length } : { v: m.timing === "last" ? b : a, length };
        });
        numbers.double(Math.min(...shown.map((x) => x.v)), Math.max(...shown.map((x) => x.v)), shown.reduce((n, x) => n + x.v * x.length, 0));
        missing.add(0);
      }
    }
  }
  return block(start, numbers, missing);
}

// open makes a store of a run, with the nodes read.
export async function open(run: Run): Promise<Store> {
  const store = new Store(archive(run));
  await store.open();
  return store;
}

// twoRanks is a run of two ranks on a host: collectives in which rank 0 waits for rank 1, a call that causes one of them,
// a transfer, and a metric.
export const twoRanks: Run = {
  duration: 10_000,
  waits: [[100, 400, 0, 1, 1], [2000, 500, 0, 1, 0]],
  categories: ["NCCL collectives", "NCCL API"],
  regions: [
    { name: "AllReduce", category: 0 },
    { name: "ncclAllReduce", category: 1 },
    { name: "Send", category: 0 },
  ],
  rows: [
    { name: "node a", kind: "host", parent: -1 },
    { name: "Rank 0", kind: "process", parent: 0 },
    { name: "Thread 0", kind: "thread", parent: 1, lanes: [[{ start: 50, length: 20, region: 1, kids: [1] }]] },
    {
      name: "world rank 0", kind: "rank", parent: 1,
      lanes: [
        [
          { start: 100, length: 900, wait: 400, parent: 0, waited: [2, 1, 1], notes: [[3, 7n], [5, 1n << 63n]] },
          { start: 2000, length: 1000, wait: 500, waited: [2, 1, 0] },
          { start: 3000, length: 500, region: 2 },
          { start: 4000, length: 1000, notes: [[3, 9n], [5, 2n]] },
          { start: 6000, length: 1000 },
        ],
      ],
      operations: [
        { bar: 1, instance: 0, sent: 64, received: 32, root: -1 },
        { bar: 2, instance: 1, sent: 64, received: 32, root: 0 },
        { bar: 3, instance: 3, sent: 128, received: 0, root: -1 },
        { bar: 4, instance: 2, sent: 64, received: 32, root: -1 },
        { bar: 5, instance: 4, sent: 64, received: 32, root: -1 },
      ],
      transfers: [
        { start: 3100, length: 300, row: 5, bytes: 4096, parent: 3 },
        { start: 3200, length: -1, row: -1, bytes: 8192, parent: -1 },
        { start: 3300, length: 10, row: 5, bytes: 1, parent: 3 },
      ],
    },
    { name: "Rank 1", kind: "process", parent: 0 },
    {
      name: "world rank 1", kind: "rank", parent: 4,
      lanes: [
        [
          { start: 500, length: 500 },
          { start: 2500, length: 500 },
          { start: 3100, length: 700, region: 2 },
          { start: 4000, length: 1000 },
        ],
      ],
    },
    { name: "NCCL busbw", kind: "metric", parent: 1 },
    { name: "NCCL bytes", kind: "metric", parent: 1 },
  ],
  instances: [
    { kind: 0, comm: 0, fn: 0, ordinal: 0, expected: 2, parts: [[0, 1], [1, 6]] },
    { kind: 0, comm: 0, fn: 0, ordinal: 1, expected: 2, parts: [[0, 2], [1, 7]] },
    { kind: 0, comm: 0, fn: 0, ordinal: 2, expected: 2, parts: [[0, 4], [1, 9]] },
    { kind: 1, comm: 0, fn: 1, ordinal: 5, expected: 2, parts: [[0, 3], [1, 8]] },
    { kind: 2, comm: 0, fn: 0, ordinal: 3, expected: 2, parts: [[0, 5]] },
  ],
  series: [
    {
      times: [0, 1000, 2000, 4000, 5000, 8000, 10_000],
      members: [
        { row: 6, values: [0, 4, 2, 8, 0, 0, 0], timing: "next", type: "DOUBLE", unit: "B/s" },
        { row: 7, values: [(1n << 64n) - 10n, (1n << 64n) - 5n, 5, 25, 25, 85, 85], timing: "rate", type: "UINT64", unit: "B" },
      ],
    },
  ],
};
