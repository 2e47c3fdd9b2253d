// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Rank } from "../src/head";
import { RankRows } from "../src/rankrows";

const make = (n: number) =>
  new RankRows(Array.from({ length: n }, (_, i): Rank => ({ name: `Rank ${i}`, host: `n${i % 2}`, row: i, time: 0, waited: i === 3 ? 9 : i, caused: 10 - i, back: 0, last: 0, worst: 0, worstAt: 0 })));

test("ranks stand by number, host, waiting or what was waited for them", () => {
  const rows = make(5);
  const by = (order: "rank" | "host" | "waiting" | "caused") => (rows.sort(order), rows.order);
  assert.deepEqual(by("rank"), [0, 1, 2, 3, 4]);
  assert.deepEqual(by("host"), [0, 2, 4, 1, 3]);
  assert.deepEqual(by("waiting"), [3, 4, 2, 1, 0]);
  assert.deepEqual(by("caused"), [0, 1, 2, 3, 4]);
});

test("every rank is in one line, however little room there is", () => {
  for (const n of [1, 2, 7, 100, 299, 300, 301, 2048, 10_000]) {
    const rows = make(n);
    rows.fit(600);
    assert(rows.lines * rows.height <= 600, `${n} ranks are ${rows.lines * rows.height} pixels high`);
    assert(rows.height >= 2);
    const all = Array.from({ length: rows.lines }, (_, i) => rows.of(i)).flat();
    assert.deepEqual(all, rows.order, `${n}`);
  }
});

test("fewer ranks are shown around a line, and others by moving on", () => {
  const rows = make(10_000);
  rows.fit(600);
  const line = rows.at(300);
  const [rank] = rows.of(line);
  rows.narrow(line, 600);
  assert.equal(rows.per, 1);
  assert(rows.height >= 12 && !rows.whole);
  assert(rows.of(rows.at(300)).some((r) => Math.abs(r - rank!) < 40));
  rows.move(-20_000, 600);
  assert.deepEqual(rows.of(0), [0]);
  rows.move(20_000, 600);
  assert.deepEqual(rows.of(rows.lines - 1), [9999]);
  assert.equal(rows.at(-1), -1);
  assert.equal(rows.at(601), -1);
  rows.all();
  rows.fit(600);
  assert(rows.whole);
});
