// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { groupsOf, together } from "../src/groups";
import type { Rank } from "../src/head";
import { likeness } from "../src/rankorders";

const ranks = ["b", "b", "a", "a"].map((host, i): Rank => ({ name: `Rank ${i}`, host, row: i, time: 0, waited: 0, caused: 0, back: 0, last: 0, worst: 0, worstAt: 0 }));
const pair = (from: number, to: number, bytes: number) => ({ from, to, count: 1, bytes, time: 2 * bytes, timed: bytes });

test("ranks are taken together by host, or by place on it", () => {
  assert.deepEqual(groupsOf(ranks, "hosts"), { names: ["b", "a"], of: Int32Array.of(0, 0, 1, 1) });
  assert.deepEqual(groupsOf(ranks, "places"), { names: ["Place 0", "Place 1"], of: Int32Array.of(0, 1, 0, 1) });
  assert.deepEqual([...groupsOf(ranks, "ranks").of], [0, 1, 2, 3]);
});

test("what ranks sent is what their groups sent", () => {
  const pairs = [pair(0, 2, 10), pair(1, 3, 5), pair(2, 0, 7), pair(-1, 3, 1), pair(0, 1, 100)];
  const sums = together(pairs, groupsOf(ranks, "hosts")).map((p) => [p.from, p.to, p.count, p.bytes, p.time, p.timed]);
  assert.deepEqual(sums, [
    [0, 1, 2, 15, 30, 15],
    [1, 0, 1, 7, 14, 7],
    [-1, 1, 1, 1, 2, 1],
    [0, 0, 1, 100, 200, 100],
  ]);
  assert.equal(pairs[0]!.bytes, 10);
});

test("ranks that do alike stand near each other", () => {
  const early = [1, 1, 0, 0];
  const late = [0, 0, 1, 1];
  const places = likeness([early, late, [0.9, 1, 0, 0.1], [0, 0.1, 1, 0.9], early]);
  const order = [...places.keys()].sort((a, b) => places[a]! - places[b]! || a - b);
  assert.deepEqual(order.map((r) => (r === 1 || r === 3 ? "late" : "early")).join(" ").replace(/(\w+)( \1)+/g, "$1").split(" ").length, 2, `${order}`);
  assert.equal(places[0], places[4]);
});

test("lines that do not differ, or tell nothing, have one place", () => {
  assert.deepEqual([...likeness([[1, 2], [1, 2]])], [0, 0]);
  assert.deepEqual([...likeness([])], []);
  assert(likeness([[NaN, 1], [0, 3], [NaN, 5]]).every((v) => Number.isFinite(v)));
});
