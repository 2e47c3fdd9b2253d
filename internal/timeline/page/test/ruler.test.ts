// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import { marks } from "../src/ruler";
import { View } from "../src/view";

function view(from: number, to: number, width: number, duration = 1e12): View {
  const v = new View(duration);
  v.width = width;
  v.set(from, to);
  return v;
}

test("ticks near the begin count from it", () => {
  const { base, step, at } = marks(view(0, 1_000_000, 1000));
  assert.equal(base, 0);
  assert.equal(step, 100_000);
  assert.deepEqual(at.slice(0, 3), [0, 100_000, 200_000]);
});

test("far into the run ticks count from a round time at the left", () => {
  const v = view(100e9 + 1_234_567, 100e9 + 1_235_567, 1000);
  const { base, unit, step, at } = marks(v);
  assert.equal(unit, 1000);
  assert.equal(base, 100e9 + 1_234_000);
  assert.equal(step, 100);
  assert(at.every((t) => t + base >= v.from && t + base <= v.to && t % step === 0), String(at));
});

test("zooming keeps the time at the pointer, and some of the run in sight", () => {
  const v = view(0, 1000, 500, 1000);
  const t = v.time(100);
  v.zoom(0.5, 100);
  assert(Math.abs(v.time(100) - t) < 1e-9);
  assert.equal(v.to - v.from, 500);
  v.pan(1e9);
  assert(v.from < 1000);
  v.pan(-1e9);
  assert(v.to > 0);
  v.zoom(1e-9, 0);
  assert.equal(v.to - v.from, 20);
  v.zoom(1e9, 0);
  assert.equal(v.to - v.from, 1100);
});

test("rows scroll no further than there are any", () => {
  const v = view(0, 1000, 500);
  v.height = 300;
  v.scroll(50, 1000);
  assert.equal(v.top, 50);
  v.scroll(1e6, 1000);
  assert.equal(v.top, 700);
  v.scroll(10, 200);
  assert.equal(v.top, 0);
});
