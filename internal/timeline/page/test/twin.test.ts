// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Head, Phase } from "../src/head";
import { isMoved, moved, placeOf } from "../src/twin";
import { archive, twoRanks } from "./archive";

function run(begin: number, ...phases: [name: string, from: number, to: number][]): Head {
  const { head } = archive(twoRanks);
  return {
    ...head, answer: { ...head.answer, from: begin, to: begin + 1000 },
    phases: phases.map(([name, from, to]): Phase => ({ name, kind: "step *", depth: 0, from, to, count: 1, time: to - from, most: to - from, slowest: 0 })),
  };
}

test("the other run shows the same place of the phase of that name", () => {
  const a = run(100, ["step 1", 200, 300], ["step 2", 300, 400]);
  const b = run(500, ["step 1", 700, 900], ["step 2", 900, 1100]);
  const m = moved(a, 310, 390);
  assert.deepEqual([m.phase, m.fromPhase, m.span], ["step 2", 10, 80]);
  assert.deepEqual(placeOf(b, m), { from: 910, to: 990 });
  assert.deepEqual(placeOf(a, m), { from: 310, to: 390 });
});

test("without that phase it is as far from the begin of the steady part", () => {
  const m = moved(run(100, ["step 9", 200, 300]), 210, 290);
  assert.deepEqual(placeOf(run(500), m), { from: 610, to: 690 });
  assert.deepEqual(placeOf(run(500), moved(run(100), 50, 60)), { from: 450, to: 460 });
});

test("other messages are none", () => {
  const m = moved(run(0), 1, 2);
  assert(isMoved(m));
  for (const other of [undefined, null, 7, "moved", {}, { ...m, span: 0 }, { ...m, span: "1" }, { ...m, fromSteady: NaN }, { ...m, timeline: "other" }]) assert(!isMoved(other), JSON.stringify(other));
});
