// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { Columns } from "../src/columns";
import { Runs } from "../src/path";
import { readCharges, readSegments } from "../src/blocks";
import { block, Bytes } from "./archive";

const runs = (...parts: [number, number, number | undefined][]) => {
  const r = new Runs();
  for (const p of parts) r.add(...p);
  r.flush();
  return r.list;
};

test("parts of the path at one height are one run, and others are joined to it", () => {
  assert.deepEqual(runs([0, 5, 10], [5, 9, 10], [9, 20, 30]), [
    { from: 0, to: 9, y: 10, joined: false },
    { from: 9, to: 20, y: 30, joined: true },
  ]);
});

test("of what is in one pixel the height with the most of it is seen", () => {
  assert.deepEqual(runs([3, 3.3, 10], [3.3, 3.4, 20], [3.4, 3.6, 10], [3.6, 3.9, 20], [4, 8, 50]), [
    { from: 3, to: 4, y: 10, joined: false },
    { from: 4, to: 8, y: 50, joined: true },
  ]);
});

test("where the path is nowhere the line is broken", () => {
  assert.deepEqual(runs([0, 5, 10], [5, 7, undefined], [7, 9, 10]).map((r) => r.joined), [false, false]);
});

test("segments follow each other, on ranks or on nobody", () => {
  const columns = new Columns(block(new Bytes().add(10, 5, 7), new Bytes().signed(3, 0, 1), new Bytes().add(0, 1, 0)));
  const s = readSegments(columns, 3, 100);
  assert.deepEqual([...s.start], [100, 110, 115]);
  assert.deepEqual([...s.rank], [2, -1, 0]);
  assert.deepEqual([...s.what], [0, 1, 0]);
});

test("charges are of one operation or of the next", () => {
  const c = readCharges(new Columns(block(new Bytes().difference(50, 90), new Bytes().add(5, 6), new Bytes().add(2, 1), new Bytes().add(3, 0, 1), new Bytes().add(1, 0, 0), new Bytes().add(70, 8, 9))), 2);
  assert.deepEqual([...c.start], [50, 90]);
  assert.deepEqual([...c.first], [0, 2, 3]);
  assert.deepEqual([...c.rank], [2, -1, 0]);
  assert.deepEqual([...c.kind], [1, 0, 0]);
  assert.deepEqual([...c.ns], [70, 8, 9]);
});
