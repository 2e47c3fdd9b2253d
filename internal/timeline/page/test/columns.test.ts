// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import { Columns, Notes } from "../src/columns";
import { block, Bytes } from "./archive";

test("columns give what was put in", () => {
  const values = [0, 1, 127, 128, 300, 2 ** 31, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER];
  const signed = [0, -1, 1, -64, 64, 2 ** 40, -(2 ** 40)];
  const c = new Columns(block(new Bytes().add(...values), new Bytes(), new Bytes().signed(...signed), new Bytes().double(-0.1, Infinity)));
  const [first, empty, second, third] = [c.next(), c.next(), c.next(), c.next()];
  assert.deepEqual(values.map(() => first.next()), values);
  assert.equal(first.more, false);
  assert.equal(empty.more, false);
  let at = 0;
  assert.deepEqual(signed.map(() => (at += second.signed())), signed);
  assert.deepEqual([third.double(), third.double()], [-0.1, Infinity]);
});

test("differences of 64 bits wrap", () => {
  const values = [0n, 5n, (1n << 64n) - 1n, 1n << 63n, 3n, (1n << 53n) + 1n];
  const column = new Columns(block(new Bytes().signed(...values))).next();
  let at = 0n;
  assert.deepEqual(values.map(() => (at = BigInt.asUintN(64, at + column.big()))), values);
  assert.equal(column.more, false);
});

test("columns of more than 127 bytes have a longer length before them", () => {
  const many = Array.from({ length: 40_000 }, (_, i) => i % 128);
  const c = new Columns(block(new Bytes().add(...many), new Bytes().add(42)));
  const first = c.next();
  assert.deepEqual(many.map(() => first.next()), many);
  assert.equal(c.next().next(), 42);
});

test("attribute lists share shapes", () => {
  const notes = new Notes(
    new Columns(
      block(
        new Bytes().add(0, 1, 0, 2), // which shape
        new Bytes().add(2, 7, 9, 0, 1, 9), // ids of the shapes
        new Bytes().signed(1, 2), new Bytes().signed(10, 5), new Bytes().signed(77),
      ),
    ),
  );
  assert.deepEqual(notes.of(0), [{ id: 7, value: 1n }, { id: 9, value: 10n }]);
  assert.deepEqual(notes.of(1), []);
  assert.deepEqual(notes.of(2), [{ id: 7, value: 2n }, { id: 9, value: 5n }]);
  assert.deepEqual(notes.of(3), [{ id: 9, value: 77n }]);
  assert.deepEqual(notes.of(4), []);
});
