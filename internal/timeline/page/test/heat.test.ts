// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Rank } from "../src/head";
import { Heat, type Cells } from "../src/heat";
import { Store } from "../src/store";
import { archive, twoRanks } from "./archive";

async function heat(): Promise<Heat> {
  const operation = (bar: number, instance: number) => ({ bar, instance, sent: 64, received: 32, root: -1 });
  const source = archive({ ...twoRanks, rows: twoRanks.rows.map((r) => (r.name === "world rank 1" ? { ...r, operations: [operation(6, 0), operation(7, 1), operation(8, 3), operation(9, 2)] } : r)) });
  const rank = (name: string, row: number): Rank => ({ name, host: "node a", row, time: 0, waited: 0, caused: 0, back: 0, last: 0, worst: 0, worstAt: 0 });
  (source.head as { ranks: Rank[] }).ranks = [rank("Rank 0", 1), rank("Rank 1", 4)];
  const store = new Store(source);
  await store.open();
  for (const lane of store.lanes) for (let k = 0; k * store.head.chunk < lane.count; k++) await store.bars(lane, k).promise;
  const h = new Heat(store);
  h.begin([0, 1]);
  return h;
}

const cells = (from: number, to: number, columns: number): Cells => ({ from, to, columns });
const near = (a: ArrayLike<number>, b: number[]) => {
  assert.equal(a.length, b.length);
  b.forEach((v, i) => assert(Math.abs(a[i]! - v) < 1e-9, `${i}: ${a[i]}, want ${v}`));
};

test("cells have the share of their time that was waited, and that was in operations", async () => {
  const h = await heat();
  near(h.line(0, "waiting", cells(0, 1000, 4)), [0.6, 1, 0, 0]);
  near(h.line(0, "operations", cells(0, 1000, 4)), [0.6, 1, 1, 1]);
  near(h.line(1, "waiting", cells(0, 1000, 4)), [0, 0, 0, 0]);
  near(h.line(1, "operations", cells(0, 1000, 4)), [0, 0, 1, 1]);
  assert.equal(await h.exact(0, "waiting", 0, 250), 150);
  assert.equal(await h.exact(0, "operations", 2500, 3250), 750);
});

test("all waits in the order of time say the same of each rank", async () => {
  const h = await heat();
  await h.store.waits(0).promise;
  for (const c of [cells(0, 1000, 4), cells(300, 2600, 7), cells(0, 10_000, 3)]) {
    const all = h.waits(c)!;
    const each = (c.to - c.from) / c.columns;
    for (const rank of [0, 1]) {
      for (let i = 0; i < c.columns; i++) {
        const ns = await h.exact(rank, "waiting", c.from + i * each, c.from + (i + 1) * each);
        assert(Math.abs(all[rank * c.columns + i]! - ns / each) < 1e-6, `rank ${rank}, column ${i} of ${c.from} to ${c.to}`);
      }
    }
  }
});

test("from afar nothing gets lost", async () => {
  const h = await heat();
  const busy = h.line(0, "operations", cells(0, 10_000, 1))[0]!;
  assert(Math.abs(busy - (900 + 1000 + 500 + 1000 + 1000) / 10_000) < 0.002, String(busy));
  const rough = h.line(0, "waiting", cells(0, 10_000, 1))[0]!; // of sums with 1/255
  assert(Math.abs(rough - 0.09) < 0.002, String(rough));
});

test("bandwidth is the mean over time", async () => {
  const h = await heat();
  for (const curve of h.curves[0]!) for (const t of [0, 9000]) await h.store.curves.reading(curve, t);
  near(h.line(0, "bandwidth", cells(0, 10_000, 5)), [2, 2, 4, 0, 0]);
  assert(h.line(1, "bandwidth", cells(0, 10_000, 5)).every(Number.isNaN));
});

test("late is who began after the first member, also where that is not in the picture", async () => {
  const h = await heat();
  near((await h.late(cells(0, 1000, 4), () => true))![1]!, [0, 0, 400, 0]);
  const both = (await h.late(cells(0, 10_000, 10), () => true))!;
  near(both[0]!, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  near(both[1]!, [400, 0, 500, 100, 0, 0, 0, 0, 0, 0]);
  near((await h.late(cells(400, 600, 2), () => true))![1]!, [0, 400]);
});
