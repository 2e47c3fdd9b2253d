// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import { curveGap } from "../src/rows";
import { State } from "../src/state";
import { Tree } from "../src/tree";
import { open, twoRanks, type Row } from "./archive";
import { FakeElement, fakePage } from "./page";

const names = (state: State) => state.rows.items.map((i) => `${"  ".repeat(i.level)}${state.store.head.rows[i.row]!.name}`);

test("rows stand below what they lie in, curves right below the bars they belong to", async () => {
  const state = new State(await open(twoRanks), "light");
  assert.deepEqual(names(state), ["node a", "  Rank 0", "    NCCL busbw", "    NCCL bytes", "    Thread 0", "    world rank 0", "  Rank 1", "    world rank 1"]);
  let y = 0;
  for (const item of state.rows.items) {
    assert.equal(item.y, y);
    y += item.height;
    assert.equal(state.rows.at(item.y), item);
    assert.equal(state.rows.at(item.y + item.height - 0.5), item);
    assert.equal(state.rows.of(item.row), item);
  }
  assert.equal(state.rows.height, y);
  assert.equal(state.rows.at(y), undefined);
  assert(state.rows.of(6)!.height > 2 * curveGap);
});

test("what is in a closed row is summed up in it", async () => {
  const { rows, store } = new State(await open(twoRanks), "light");
  rows.toggle(4);
  assert.equal(rows.of(5), rows.of(4));
  assert.deepEqual(rows.of(4)!.strip, [store.lanes[2]]);
  rows.reveal(5);
  assert.equal(rows.of(5)!.row, 5);
  rows.setAll(false);
  assert.deepEqual(rows.items.map((i) => i.row), [0, 1, 4]);
});

test("metrics can be left out, and rows that are not looked for", async () => {
  const state = new State(await open(twoRanks), "light");
  state.rows.metrics = false;
  state.rows.layout();
  assert(!names(state).some((n) => n.includes("NCCL b")));
  state.rows.show((row) => row === 5);
  state.rows.layout();
  assert.deepEqual(names(state), ["node a", "  Rank 1", "    world rank 1"]);
});

test("of many rows groups are closed at first", async () => {
  const rows: Row[] = [{ name: "node", kind: "host", parent: -1 }];
  for (let i = 0; i < 100; i++) {
    rows.push({ name: `Rank ${i}`, kind: "process", parent: 0 });
    rows.push({ name: "Thread 0", kind: "thread", parent: rows.length - 1, lanes: [[{ start: 0, length: 1 }]] });
  }
  const state = new State(await open({ duration: 10, rows }), "light");
  assert.equal(state.rows.items.length, 101);
});

test("only rows in the picture are elements", async () => {
  const element = fakePage();
  const state = new State(await open(twoRanks), "light");
  const toggled: number[] = [];
  const tree = new Tree(state, (row) => toggled.push(row), (row) => state.focusRow(row));
  state.resize(100, 60);
  tree.draw();
  const root = element("tree");
  const shown = () => root.children.map((c) => (c as FakeElement).dataset["row"]);
  const inSight = () => state.rows.items.filter((i) => i.y + i.height >= state.view.top && i.y <= state.view.top + state.view.height).map((i) => String(i.row));
  assert.deepEqual(shown(), inSight());
  assert(shown().length < state.rows.items.length);
  const first = root.children[0] as FakeElement;
  assert.equal(first.attributes.get("aria-expanded"), "true");
  state.scroll(1e6);
  tree.draw();
  assert.deepEqual(new Set(shown()), new Set(inSight()));
  assert(!root.children.includes(first));
  state.focusRow(5);
  tree.draw();
  assert.equal(root.attributes.get("aria-activedescendant"), "row5");
});

test("a click chooses a row, and opens or closes what has no bars", async () => {
  const element = fakePage();
  const state = new State(await open(twoRanks), "light");
  const toggled: number[] = [];
  new Tree(state, (row) => toggled.push(row), (row) => state.focusRow(row));
  const click = (row: number, twist = false) => {
    const closest = (what: string) => (what === ".row" ? { dataset: { row: String(row) } } : what === ".twist" && twist ? {} : null);
    element("tree").listeners.get("click")!({ target: { closest } });
  };
  click(5);
  assert.deepEqual([state.focus, toggled], [5, []]);
  click(1);
  click(3, true);
  assert.deepEqual([state.focus, toggled], [3, [1, 3]]);
});
