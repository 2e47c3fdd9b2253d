// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFilter } from "../src/filter";
import { Lister } from "../src/listing";
import { open, twoRanks } from "./archive";

const list = async (text: string, from = 0, to = 10_000, most = 100) => {
  const lister = new Lister(await open(twoRanks));
  return (await lister.list(from, to, parseFilter(text), most))!;
};
const bars = async (text: string, from?: number, to?: number) => (await list(text, from, to)).all.map((o) => o.bar);

test("what begins in a range is listed once, with what is known of it", async () => {
  const all = await list("");
  assert.deepEqual(all.all.map((o) => o.bar), [1, 2, 3, 4, 5]);
  assert.equal(all.looked, 5);
  const { bar, fn, ordinal, size, start, length, wait, startUp, together, rank } = all.all[1]!;
  assert.deepEqual({ bar, fn, ordinal, size, start, length, wait, startUp, together, rank }, { bar: 2, fn: "AllReduce", ordinal: 1, size: 64, start: 2000, length: 1000, wait: 500, startUp: false, together: 1, rank: -1 });
  assert(all.all[0]!.startUp);
  assert.deepEqual(await bars("", 2000, 4000), [2, 3]);
  assert.deepEqual(await bars("", 2001, 4001), [3, 4]);
  assert.deepEqual(await bars("", 9000, 9999), []);
});

test("filters choose", async () => {
  assert.deepEqual(await bars("send"), [3]);
  assert.deepEqual(await bars("allreduce wait>0"), [1, 2]);
  assert.deepEqual(await bars("size>64"), [3]);
  assert.deepEqual(await bars("number:2-3"), [4, 5]);
  assert.deepEqual(await bars("comm:wor time<1us"), [1, 3]);
});

test("only rows of ranks that can meet a filter are looked at", async () => {
  const store = await open(twoRanks);
  const all = store.operationLanes();
  const rank = store.rankOf(all[0]!.row);
  for (const [text, rows] of [["", 1], ["allreduce", 1], ["rank>5", 0], ["rank:7 wait>0", 0]] as const) {
    const filter = parseFilter(text);
    assert.equal(store.operationLanes(filter).length, rows, text);
    assert.deepEqual(store.countOperations(0, 10_000, filter), rows === 0 ? { operations: 0, rows: 0 } : store.countOperations(0, 10_000), text);
  }
  assert.equal(rank, -1);
  assert.equal((await list("rank:7")).looked, 0);
});

test("no more than wanted", async () => {
  const some = await list("", 0, 10_000, 3);
  assert.equal(some.all.length, 3);
  assert(some.left);
});

test("about how many there are is known without looking", async () => {
  const store = await open(twoRanks);
  const whole = store.countOperations(0, 10_000);
  assert(whole.operations >= 5);
  assert.equal(whole.rows, 1);
  assert(store.countOperations(5500, 10_000).operations < whole.operations);
});

test("what is no longer wanted ends", async () => {
  const lister = new Lister(await open(twoRanks));
  const before = performance.now;
  let t = 0;
  performance.now = () => (t += 100);
  try {
    assert.equal(await lister.list(0, 10_000, parseFilter(""), 10, () => false), undefined);
  } finally {
    performance.now = before;
  }
});
