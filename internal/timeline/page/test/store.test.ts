// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import { fan } from "../src/levels";
import { archive, open, twoRanks } from "./archive";
import { Store } from "../src/store";

test("bars are decoded as they were", async () => {
  const store = await open(twoRanks);
  const [thread, zero, one] = store.lanes;
  assert.deepEqual(store.lanes.map((l) => [l.row, l.first, l.count]), [[2, 0, 1], [3, 1, 5], [5, 6, 4]]);
  const first = await store.bars(zero!, 0).promise;
  assert.deepEqual([...first.start], [100, 2000, 3000, 4000]);
  assert.deepEqual([...first.length], [900, 1000, 500, 1000]);
  assert.deepEqual([...first.region], [0, 0, 2, 0]);
  assert.deepEqual([...first.wait], [400, 500, 0, 0]);
  assert.deepEqual([...(await store.bars(zero!, 1).promise).start], [6000]);
  assert.deepEqual([...(await store.bars(one!, 0).promise).start], [500, 2500, 3100, 4000]);
  assert.equal(store.laneOf(0), thread);
  assert.equal(store.laneOf(5), zero);
  assert.equal(store.laneOf(6), one);
  assert.deepEqual(await store.bar(5), { lane: zero, start: 6000, length: 1000, region: 0, wait: 0 });
});

test("what belongs to bars is decoded as it was", async () => {
  const store = await open(twoRanks);
  const zero = store.lanes[1]!;
  const notes = await store.notes(zero, 0).promise;
  assert.deepEqual([...notes.parent], [0, -1, -1, -1]);
  assert.deepEqual(notes.waits.get(0), { kind: 2, rank: 1, first: true });
  assert.deepEqual(notes.waits.get(1), { kind: 2, rank: 1, first: false });
  assert.equal(notes.waits.get(2), undefined);
  assert.deepEqual(notes.attributes.of(0), [{ id: 3, value: 7n }, { id: 5, value: 1n << 63n }]);
  assert.deepEqual(notes.attributes.of(2), []);
  assert.deepEqual(notes.attributes.of(3), [{ id: 3, value: 9n }, { id: 5, value: 2n }]);
  const caller = await store.notes(store.lanes[0]!, 0).promise;
  assert.deepEqual([[...caller.kids], [...caller.kid]], [[0, 1], [1]]);
});

test("operations and instances are decoded as they were", async () => {
  const store = await open(twoRanks);
  const first = (await store.operations(3, 1)?.promise)!;
  assert.deepEqual([...first.bar], [1, 2, 3, 4]);
  assert.deepEqual([...first.instance], [0, 1, 3, 2]);
  assert.deepEqual([...first.sent], [64, 64, 128, 64]);
  assert.deepEqual([...first.root], [-1, 0, -1, -1]);
  assert.deepEqual([...(await store.operations(3, 5)?.promise)!.bar], [5]);
  assert.equal(await store.operations(2, 0)?.promise, undefined);
  assert.equal(await store.operations(3, 0)?.promise, undefined);
  assert.deepEqual(await store.instance(3), { message: true, unlike: false, comm: 0, fn: 1, ordinal: 5, expected: 2, parts: [{ rank: 0, bar: 3 }, { rank: 1, bar: 8 }] });
  assert.deepEqual(await store.instance(4), { message: false, unlike: true, comm: 0, fn: 0, ordinal: 3, expected: 2, parts: [{ rank: 0, bar: 5 }] });
});

test("transfers are decoded as they were", async () => {
  const store = await open(twoRanks);
  assert.equal(store.transfers(3, 0).value, undefined);
  await new Promise<void>((done) => (store.onLoad = done));
  const t = store.transfers(3, 0).value!;
  assert.deepEqual([...t.start], [3100, 3200, 3300]);
  assert.deepEqual([...t.length], [300, -1, 10]);
  assert.deepEqual([...t.row], [5, -1, 5]);
  assert.deepEqual([...t.bytes], [4096, 8192, 1]);
  assert.deepEqual([...t.parent], [3, -1, 3]);
  assert.deepEqual([...store.transferLevels.keys()], [3]);
});

test("levels of detail sum up the ones below", async () => {
  const bars = Array.from({ length: 100 }, (_, i) => ({ start: 100 * i, length: 50, region: i < 60 ? 0 : 1 }));
  const store = await open({ duration: 10_000, regions: [{ name: "a", category: 0 }, { name: "b", category: 0 }], rows: [{ name: "r", kind: "rank", parent: -1, lanes: [bars] }] });
  const { levels, sums } = store.lanes[0]!;
  assert.deepEqual(levels.map((l) => l.start.length), [50, Math.ceil(50 / fan), 1]);
  assert.deepEqual(sums, [{ region: 0, count: 60, time: 3000 }, { region: 1, count: 40, time: 2000 }]);
  const top = levels[2]!;
  assert.deepEqual([top.start[0], top.end[0], top.region[0]], [0, 9950, 0]);
  assert(Math.abs(top.busy[0]! - 5000 / 9950) < 0.01, `busy ${top.busy[0]}`);
  for (const [i, level] of levels.slice(0, -1).entries()) {
    const above = levels[i + 1]!;
    for (let k = 0; k < above.start.length; k++) {
      assert.equal(above.start[k], level.start[k * fan]);
      assert.equal(above.end[k], Math.max(...level.end.slice(k * fan, k * fan + fan)));
    }
  }
});

test("what no picture needs goes when there is too much", async () => {
  const source = archive(twoRanks);
  let reads = 0;
  const store = new Store({ head: source.head, block: (n) => (reads++, source.block(n)) });
  await store.open();
  await store.bars(store.lanes[1]!, 0).promise;
  const before = reads;
  await store.bars(store.lanes[1]!, 0).promise;
  assert.equal(reads, before);
  assert.equal(store.held, 4);
  store.budget = 3;
  for (let i = 0; i < 3; i++) store.frame();
  assert.equal(store.held, 0);
  await store.bars(store.lanes[1]!, 0).promise;
  assert.equal(reads, before + 1);
});

test("few blocks are unpacked at the same time, the last asked for first", async () => {
  const bars = Array.from({ length: 40 }, (_, i) => ({ start: 10 * i, length: 5 }));
  const source = archive({ duration: 400, rows: [{ name: "r", kind: "rank", parent: -1, lanes: [bars] }] });
  let open: [number, () => void][] = [];
  const order: number[] = [];
  const store = new Store({
    head: source.head,
    block: (n) => (n === source.head.nodes ? source.block(n) : new Promise((done) => (order.push(n), open.push([n, () => done(source.block(n))])))),
  });
  await store.open();
  const all = Array.from({ length: 10 }, (_, k) => store.bars(store.lanes[0]!, k).promise);
  assert.deepEqual(order, [0, 2, 4, 6]);
  assert.equal(store.loading, 10);
  while (open.length > 0) {
    const now = open;
    open = [];
    for (const [, done] of now) done();
    await new Promise((done) => setTimeout(done));
  }
  await Promise.all(all);
  assert.deepEqual(order.slice(4), [18, 16, 14, 12, 10, 8]);
  assert.equal(store.loading, 0);
});

test("a block that cannot be had is told of", async () => {
  const source = archive(twoRanks);
  const store = new Store({ head: source.head, block: (n) => (n === source.head.nodes || n === source.head.metrics.nodes ? source.block(n) : Promise.reject(new Error("gone"))) });
  await store.open();
  let reported: unknown;
  store.onError = (e) => (reported = e);
  await assert.rejects(() => store.bars(store.lanes[0]!, 0).promise, /gone/);
  assert(reported instanceof Error);
  assert.equal(store.loading, 0);
});
