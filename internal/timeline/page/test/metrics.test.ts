// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import { noSums } from "../src/curves";
import { open, twoRanks } from "./archive";

test("a curve says what was recorded of a moment", async () => {
  const { curves } = await open(twoRanks);
  const busbw = curves.of(6)!;
  assert.deepEqual(await curves.reading(busbw, 1500), { from: 1000, to: 2000, value: 4, stored: "4", after: "2" });
  assert.deepEqual(await curves.reading(busbw, 4500), { from: 4000, to: 5000, value: 8, stored: "8", after: "0" });
  assert.deepEqual(await curves.reading(busbw, 9000), { from: 8000, to: 10_000, value: 0, stored: "0", after: "0" });
  assert.equal(await curves.reading(busbw, -1), undefined);
  assert.equal(await curves.reading(busbw, 10_001), undefined);
});

test("a counter that wraps goes on growing", async () => {
  const { curves } = await open(twoRanks);
  const bytes = curves.of(7)!;
  assert.equal(bytes.unit, "B/s");
  assert.equal((await curves.reading(bytes, 500))!.value, 5e6);
  assert.deepEqual(await curves.reading(bytes, 1500), { from: 1000, to: 2000, value: 10e6, stored: String((1n << 64n) - 5n), after: "5" });
});

test("sums of a range are those of its parts", async () => {
  const { curves } = await open(twoRanks);
  const busbw = curves.of(6)!;
  const value = [0, 4, 2, 8, 0, 0];
  const times = [0, 1000, 2000, 4000, 5000, 8000, 10_000];
  for (const [from, to] of [[0, 10_000], [500, 1500], [1000, 2000], [1999, 4500], [2500, 3000], [7000, 9000]] as const) {
    let area = 0;
    let max = -Infinity;
    for (let i = 0; i < value.length; i++) {
      const part = Math.min(times[i + 1]!, to) - Math.max(times[i]!, from);
      if (part <= 0) continue;
      area += value[i]! * part;
      max = Math.max(max, value[i]!);
    }
    const sums = await curves.sums(busbw, from, to);
    assert.equal(sums.area, area, `area from ${from} to ${to}`);
    assert.equal(sums.time, to - from, `time from ${from} to ${to}`);
    assert.equal(sums.max, max, `greatest from ${from} to ${to}`);
  }
  assert.deepEqual(await curves.sums(busbw, 20_000, 30_000), noSums());
});

test("an axis goes from zero, or below, to the greatest value", async () => {
  const { curves } = await open(twoRanks);
  const busbw = curves.of(6)!;
  assert.deepEqual(busbw.axis, { from: 0, to: 8 });
  assert.deepEqual([curves.place(busbw, 8), curves.place(busbw, 2), curves.place(busbw, 0)], [0, 0.75, 1]);
  assert.equal(curves.write(busbw, 8), "8 B/s");
});
