// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { Asker } from "../src/source";

// answer is what the tool gives: block n has n bytes of n.
function answer(numbers: number[]): Uint8Array {
  return Uint8Array.from(numbers.flatMap((n) => [n, 0, 0, 0, ...Array.from({ length: n }, () => n)]));
}

test("blocks that are wanted at the same time are asked for together, 64 at most", async () => {
  const asked: string[] = [];
  const asker = new Asker(async (path) => {
    asked.push(path);
    return answer(path.slice("blocks/".length).split(",").map(Number));
  });
  const all = await Promise.all(Array.from({ length: 70 }, (_, n) => asker.block(n)));
  all.forEach((b, n) => assert.deepEqual([...b], Array.from({ length: n }, () => n)));
  assert.deepEqual(asked.map((p) => p.split(",").length), [64, 6]);
  assert.deepEqual([...(await asker.block(3))], [3, 3, 3]);
  assert.deepEqual(asked[2], "blocks/3");
});

test("an answer that fails or ends too early fails for each of its blocks, and for no other", async () => {
  let fails = true;
  const asker = new Asker(async () => {
    if (!fails) return answer([1]);
    fails = false;
    return answer([1, 2]).subarray(0, 8);
  });
  const [one, two] = await Promise.allSettled([asker.block(1), asker.block(2)]);
  assert.equal(one.status, "fulfilled");
  assert.equal(two.status, "rejected");
  assert.deepEqual([...(await asker.block(1))], [1]);
});
