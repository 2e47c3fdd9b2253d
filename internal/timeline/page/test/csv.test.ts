// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { csvOf } from "../src/csv";

test("what has commas, quotes or line ends is quoted, and nothing becomes a formula", () => {
  assert.equal(csvOf(["a", "b"], [[1, "x"], [-2, 'say "hi", you'], [0.5, "=1+1"], [3, "two\nlines"]]), 'a,b\n1,x\n-2,"say ""hi"", you"\n0.5,\'=1+1\n3,"two\nlines"\n');
});
