// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Rank } from "../src/head";
import { sentIn, waitingIn } from "../src/rangeflows";
import { Store } from "../src/store";
import { archive, twoRanks } from "./archive";

async function run(): Promise<Store> {
  const source = archive(twoRanks);
  const rank = (name: string, row: number): Rank => ({ name, host: "node a", row, time: 0, waited: 0, caused: 0, back: 0, last: 0, worst: 0, worstAt: 0 });
  (source.head as { ranks: Rank[] }).ranks = [rank("Rank 0", 1), rank("Rank 1", 4)];
  const store = new Store(source);
  await store.open();
  return store;
}

test("waits of what begins in a range, without start-up", async () => {
  const store = await run();
  const all = (await waitingIn(store, 0, 10_000, () => true))!;
  assert.deepEqual([...all.waited, ...all.caused, all.total, all.startUp], [500, 0, 0, 500, 500, 400]);
  assert.deepEqual(all.pairs, [{ from: 0, to: 1, count: 1, bytes: 0, time: 500, timed: 0 }]);
  assert.deepEqual(all.of, [{ comm: 0, name: "AllReduce", waits: 1, waited: 500 }]);
  const before = (await waitingIn(store, 0, 2000, () => true))!;
  assert.deepEqual([before.total, before.startUp], [0, 400]);
  const after = (await waitingIn(store, 2001, 10_000, () => true))!;
  assert.deepEqual([after.total, after.startUp], [0, 0]);
});

test("transfers that begin in a range; bandwidth is of those whose end is known", async () => {
  const store = await run();
  const list = async (from: number, to: number) => (await sentIn(store, from, to, () => true))!;
  assert.deepEqual(await list(0, 10_000), [
    { from: 0, to: 1, count: 2, bytes: 4097, time: 310, timed: 4097 },
    { from: 0, to: -1, count: 1, bytes: 8192, time: 0, timed: 0 },
  ]);
  assert.deepEqual(await list(3101, 3300), [{ from: 0, to: -1, count: 1, bytes: 8192, time: 0, timed: 0 }]);
  assert.deepEqual(await list(3301, 10_000), []);
});
