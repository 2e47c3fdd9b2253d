// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { read, write, type Place } from "../src/place";

test("what is written is read", () => {
  const all: Place[] = [
    {},
    { time: [-10, 2_000_000_000] },
    { time: [5, 6], top: 120, row: 3, bar: 77, range: [1, 2], query: "allreduce >1MiB & rank:3, x=1", list: "wait>1ms", tab: "waits", ranks: "waiting,host", pinned: [1, 2], hidden: [9] },
  ];
  for (const place of all) assert.deepEqual(read("#" + write(place)), place);
});

test("times are whole ns", () => {
  assert.equal(write({ time: [0.4, 10.6] }), "t=0,11");
});

test("what is not understood is left out", () => {
  assert.deepEqual(read("#t=5,4&top=-3&row=x&bar=1e3&range=1&pin=1,,2&hide=&other=7"), {});
  assert.deepEqual(read("#t=1,2&row=x"), { time: [1, 2] });
  assert.deepEqual(read(""), {});
  assert.equal(write({ query: "", pinned: [] }), "");
});
