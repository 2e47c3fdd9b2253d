// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { amount, parseFilter, type Subject } from "../src/filter";

const subject = (o: Partial<Subject> = {}): Subject => ({
  name: "allreduce train rank 3", comm: "train", rank: 3, number: 17, size: 2 ** 20, time: 2_000_000, wait: 1_500_000, begin: 5e9,
  attribute: (name) => ("algorithm".startsWith(name) ? ["ring"] : name === "channels" ? ["8"] : []), ...o,
});

test("all words and conditions are met", () => {
  for (const text of [
    "", "AllReduce", "allreduce rank", ">=1MiB", "=1M", "<2m", ">1mb", "size>1000k", "rank:3", "rank:0,2-4", "rank>2", "number:17", "time=2ms", "wait>1ms", "wait>=1500us", "begin<6s",
    "comm:tra", "algorithm:RING", "algo:ring", "channels>4", "channels=8", "AllReduce >512KiB rank:3 wait>1ms algo:ring",
  ]) {
    const f = parseFilter(text);
    assert.deepEqual(f.wrong, [], text);
    assert(f.meets(subject()), text);
  }
});

test("one that is not met is enough", () => {
  for (const text of ["Broadcast", "allreduce >1MiB", "<1MiB", "rank:4", "rank:0-2", "rank<3", "wait>2ms", "time<2ms", "comm:pp", "algorithm:tree", "protocol:ll", "channels<8", "number:16"]) {
    assert(!parseFilter(text).meets(subject()), text);
  }
});

test("what cannot be understood is said and left out", () => {
  const f = parseFilter("allreduce >much rank:x wait>3parsecs comm>3 :5 size:");
  assert.deepEqual(f.wrong, [">much", "rank:x", "wait>3parsecs", "comm>3", ":5", "size:"]);
  assert(f.meets(subject()));
});

test("attributes are unpacked only where they are asked for", () => {
  assert(!parseFilter("allreduce >1M rank:3").attributes);
  assert(parseFilter("algorithm:ring").attributes);
  assert(!parseFilter("allreduce").conditional);
  assert(parseFilter("rank:1").conditional);
});

test("amounts", () => {
  assert.equal(amount("1.5", { "": 1 }), 1.5);
  assert.equal(amount("-1", { "": 1 }), undefined);
  assert.equal(amount("1constructor", {}), undefined);
});
