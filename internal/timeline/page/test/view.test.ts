// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import { View } from "../src/view";

test("all of a selection is what is shown first, and nothing is wider", () => {
  const view = new View(2000, 1000);
  assert.deepEqual([view.from, view.to], [990, 2010]);
  view.set(-5000, 5000);
  assert.deepEqual([view.from, view.to], [950, 2050]);
  view.set(0, 100); // some of it stays in the picture
  assert.deepEqual([view.from, view.to], [910, 1010]);
  const whole = new View(2000);
  assert.deepEqual([whole.from, whole.to], [-20, 2020]);
});
