// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { Bins, narrow } from "../src/bins";
import type { Pair } from "../src/rangeflows";

const ring = (n: number): Pair[] => Array.from({ length: n }, (_, i) => ({ from: i, to: (i + 1) % n, count: 2, bytes: 100 + i, time: 10, timed: 100 }));

test("bins have all that is of their ranks", () => {
  for (const [n, room] of [[4, 10], [100, 100], [101, 100], [2048, 170], [10_000, 170]] as const) {
    const pairs = ring(n);
    const bins = new Bins({ first: 0, count: n }, room, pairs, (p) => p.bytes);
    assert(bins.size <= room && bins.size * bins.per >= n);
    assert.equal([...bins.all.values()].reduce((m, b) => m + b.bytes, 0), pairs.reduce((m, p) => m + p.bytes, 0));
    const [first, last] = bins.ranks(bins.size - 1);
    assert.equal(last, n - 1);
    assert(first <= last);
  }
});

test("a bin tells its pair with the most, and others than those of the window are in none", () => {
  const bins = new Bins({ first: 10, count: 20 }, 5, [...ring(100), { from: -1, to: 12, count: 1, bytes: 7, time: 0, timed: 0 }], (p) => p.bytes);
  assert.equal(bins.per, 4);
  assert.deepEqual(bins.ranks(1), [14, 17]);
  assert.equal(bins.bin(0, 0)!.most!.from, 12);
  assert.equal([...bins.all.values()].reduce((m, b) => m + b.count, 0), 2 * 19);
  assert.equal(bins.bin(4, 0), undefined);
});

test("each step shows a quarter, until ranks stand by themselves", () => {
  let window = { first: 0, count: 2048 };
  for (let steps = 0; ; steps++) {
    assert(steps < 10);
    const bins = new Bins(window, 170, [], () => 0);
    const next = narrow(bins, bins.size - 1, bins.size - 1);
    if (!next) break;
    assert(next.count < window.count && next.first >= window.first && next.first + next.count <= 2048);
    assert.equal(next.first + next.count, 2048);
    window = next;
  }
  assert.deepEqual(window, { first: 2040, count: 8 });
});
