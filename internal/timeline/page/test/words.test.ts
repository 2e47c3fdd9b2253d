// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Head } from "../src/head";
import { Words } from "../src/words";

test("an attribute that is a communicator is written as its name", () => {
  const attributes = [{ id: 57, name: "COMM", description: "", type: "COMM" }, { id: 58, name: "RANK", description: "", type: "UINT32" }];
  const comms = [{ ref: 4, name: "dp", members: [] }, { ref: 0, name: "world", members: [] }];
  const words = new Words({ attributes, comms, texts: { "4": "a string" } } as unknown as Head);
  assert.equal(words.value({ id: 57, value: 4n }), "dp");
  assert.equal(words.value({ id: 57, value: 0n }), "world");
  assert.equal(words.value({ id: 57, value: 9n }), "communicator 9");
  assert.equal(words.value({ id: 58, value: 4n }), "4");
});
