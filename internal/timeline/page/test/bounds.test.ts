// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import { firstAfter, lastAtMost, lowerBound } from "../src/bounds";

test("places in a list are what a search from its begin finds", () => {
  const list = [1, 3, 3, 3, 8];
  for (const v of [-1, 0, 1, 2, 3, 4, 8, 9]) {
    const find = (what: (x: number) => boolean) => (list.some(what) ? list.findIndex(what) : list.length);
    assert.equal(lowerBound(list, v), find((x) => x >= v));
    assert.equal(firstAfter(list, v), find((x) => x > v));
    assert.equal(lastAtMost(list, v), list.filter((x) => x <= v).length - 1);
  }
  assert.deepEqual([lowerBound([], 1), firstAfter([], 1), lastAtMost([], 1)], [0, 0, -1]);
});
