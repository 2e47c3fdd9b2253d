// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import { pick } from "../src/pick";
import { addBars, type RangeSums } from "../src/rangesums";
import { State } from "../src/state";
import { open, twoRanks } from "./archive";

test("sums of a range count what lies in it", async () => {
  const store = await open(twoRanks);
  const sums: RangeSums = { from: 500, to: 3200, scope: "", count: 0, waited: 0, regions: new Map(), metrics: [] };
  assert.equal(addBars(sums, await store.bars(store.lanes[1]!, 0).promise), false);
  assert.deepEqual(Object.fromEntries(sums.regions), { 0: { count: 2, time: 500 + 1000, whole: 1900, max: 1000 }, 2: { count: 1, time: 200, whole: 500, max: 500 } });
  assert.deepEqual([sums.count, sums.waited], [3, 500]);
});

test("a point means the bar below it, or the nearest one", async () => {
  const state = new State(await open(twoRanks), "light");
  state.resize(1000, 1000);
  state.go(0, 10_000);
  const item = state.rows.of(3)!;
  const y = item.y + item.lanes[0]!.y + 1;
  const boxes = [
    { bar: 1, region: 0, x: 10, y, width: 90, height: 1, wait: 0 },
    { bar: 2, region: 0, x: 200, y, width: 100, height: 1, wait: 0 },
  ];
  assert.equal(pick(state, boxes, 50, y), 1);
  assert.equal(pick(state, boxes, 197, y), 2);
  assert.equal(pick(state, boxes, 150, y), undefined);
  assert.equal(pick(state, boxes, 50, state.rows.of(1)!.y + 1), undefined);
  // What is too small to be a box is found among the bars.
  const lane = state.store.lanes[1]!;
  await state.store.bars(lane, 1).promise;
  assert.equal(pick(state, boxes, 650, y), 5);
});
