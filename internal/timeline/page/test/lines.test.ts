// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Box } from "../src/boxes";
import { familyOf } from "../src/family";
import { arrowHead, distance } from "../src/canvas";
import { Lines } from "../src/lines";
import { State } from "../src/state";
import { open, twoRanks } from "./archive";
import { Drawing } from "./page";

test("the distance from a line is to its nearest point", () => {
  const [a, b] = [{ x: 0, y: 0 }, { x: 10, y: 0 }];
  assert.equal(distance({ x: 5, y: 3 }, a, b), 3);
  assert.equal(distance({ x: 13, y: 4 }, a, b), 5);
  assert.equal(distance({ x: -3, y: 4 }, a, b), 5);
  assert.equal(distance({ x: 3, y: 4 }, a, a), 5);
});

test("arrows end where they lead, short lines have none", () => {
  assert.equal(arrowHead({ x: 0, y: 0 }, { x: 7, y: 0 }), undefined);
  assert.deepEqual(arrowHead({ x: 0, y: 0 }, { x: 20, y: 0 }), [{ x: 15, y: 2.5 }, { x: 15, y: -2.5 }]);
});

// picture is a run of 10 µs in 1000 pixels, with all that is in it unpacked.
async function picture() {
  const state = new State(await open(twoRanks), "light");
  const { store } = state;
  state.resize(1000, 1000);
  state.go(0, 10_000);
  for (const lane of store.lanes) {
    for (let k = 0; k * store.head.chunk < lane.count; k++) await Promise.all([store.bars(lane, k).promise, store.notes(lane, k).promise]);
  }
  for (let bar = 1; bar <= 5; bar++) await store.operations(3, bar)?.promise;
  for (let i = 0; i < 5; i++) await store.instance(i);
  store.transfers(3, 0).value;
  await new Promise<void>((done) => (store.onLoad = done));
  const lines = new Lines(store, state.rows, state.view);
  lines.colors = state.colors;
  const boxes: Box[] = [];
  for (let bar = 0; bar < 10; bar++) {
    const b = store.peekBar(bar)!;
    boxes.push({ bar, region: b.region, x: state.view.x(b.start), y: 0, width: b.length * state.view.scale, height: 1, wait: 0 });
  }
  const height = (lane: number) => lines.height(store.lanes[lane]!)!;
  return { state, lines, boxes, height };
}

test("collectives are lines through the begins of their parts, messages from begin to end", async () => {
  const { state, lines, boxes, height } = await picture();
  const drawing = new Drawing();
  const drawn = lines.all(drawing.context, boxes, { parents: false, collectives: true, transfers: false, waits: true });
  assert.deepEqual([drawn.collectives, drawn.crowded], [4, []]);
  const [a, b] = [Math.round(100 * height(1)) / 100, Math.round(100 * height(2)) / 100];
  const of = (color: string) => drawing.lines.filter((l) => l.startsWith(color + " ")).map((l) => l.slice(color.length + 1));
  assert.deepEqual(of(state.colors.collective), [`10,${a} 50,${b}`, `200,${a} 250,${b}`, `400,${a} 400,${b}`]);
  const message = of(state.colors.message);
  assert.equal(message[0], `300,${a} 380,${b}`);
  assert.equal(message.length, 3); // and the two sides of its head
});

test("calls have lines to what they caused on other rows", async () => {
  const { lines, boxes, state, height } = await picture();
  const drawing = new Drawing();
  const drawn = lines.all(drawing.context, boxes, { parents: true, collectives: false, transfers: false, waits: true });
  assert.equal(drawn.parents, 1);
  assert.deepEqual(drawing.lines, [`${state.colors.parent} 7,${height(0)} ~ 10,${height(1)}`]); // from the call's end, where what it caused begins later
});

test("transfers whose other end is known are lines that can be pointed at", async () => {
  const { lines, boxes } = await picture();
  const drawn = lines.all(new Drawing().context, boxes, { parents: false, collectives: false, transfers: true, waits: true });
  assert.equal(drawn.transfers, 2);
  assert.deepEqual(lines.wires.map((w) => [w.row, w.index, w.from.x, w.to.x]), [[3, 0, 310, 340], [3, 2, 330, 331]]);
  const [first] = lines.wires;
  const middle = { x: (first!.from.x + first!.to.x) / 2, y: (first!.from.y + first!.to.y) / 2 };
  assert.equal(lines.wireAt(middle.x, middle.y), first);
  assert.equal(lines.wireAt(middle.x - 100, middle.y), undefined);
});

test("a bar's family is its callers, what it caused, and its operations", async () => {
  const { state, lines } = await picture();
  const family = await familyOf(state.store, 1);
  assert.deepEqual([family.parents, family.children, family.instances.map((i) => i.ordinal)], [[0], [], [0]]);
  assert.deepEqual((await familyOf(state.store, 0)).children, [1]);
  const drawn = lines.family(new Drawing().context, family);
  assert.deepEqual([drawn.parents, drawn.collectives], [1, 1]);
});
