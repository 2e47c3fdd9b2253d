// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import { next, parse, waits } from "../src/search";
import { open, twoRanks } from "./archive";

test("words are looked for in regions, groups and rows", async () => {
  const store = await open(twoRanks);
  assert.equal(parse(store, "  "), undefined);
  const all = parse(store, "allreduce")!;
  assert.deepEqual([...all.regions], [1, 0]);
  assert.equal(all.count, 8);
  assert.equal(all.rows, undefined);
  const group = parse(store, "COLLECTIVES")!;
  assert.equal(group.count, 9);
  const none = parse(store, "reducescatter")!;
  assert.deepEqual([none.count, none.metrics], [0, []]);
});

test("a word that names rows leaves the others out", async () => {
  const store = await open(twoRanks);
  const query = parse(store, "send rank 1")!;
  assert.equal(query.count, 1);
  assert.deepEqual(store.head.rows.map((_, i) => query.rows!(i)), [false, false, false, false, false, true, false, false]);
});

test("metrics are found by their own names and what they belong to", async () => {
  const store = await open(twoRanks);
  assert.deepEqual(parse(store, "busbw")!.metrics, [6]);
  assert.deepEqual(parse(store, "rank nccl")!.metrics, [6, 7]);
  assert.deepEqual(parse(store, "rank")!.metrics, []);
});

test("matches follow each other in time over all rows, in both directions", async () => {
  const store = await open(twoRanks);
  const query = parse(store, "allreduce")!;
  const found: number[] = [];
  for (let after = { time: -Infinity, bar: -1 }; ; ) {
    const bar = await next(store, query, after, true);
    if (bar === undefined) break;
    found.push(bar);
    after = { time: (await store.bar(bar)).start, bar };
  }
  assert.deepEqual(found, [0, 1, 6, 2, 7, 4, 9, 5]);
  const back: number[] = [];
  for (let after = { time: Infinity, bar: Infinity }; ; ) {
    const bar = await next(store, query, after, false);
    if (bar === undefined) break;
    back.unshift(bar);
    after = { time: (await store.bar(bar)).start, bar };
  }
  assert.deepEqual(back, found);
});

test("waits are the bars that waited", async () => {
  const store = await open(twoRanks);
  const first = await next(store, waits(store), { time: -Infinity, bar: -1 }, true);
  const second = await next(store, waits(store), { time: 100, bar: first! }, true);
  assert.deepEqual([first, second, await next(store, waits(store), { time: 2000, bar: second! }, true)], [1, 2, undefined]);
});
