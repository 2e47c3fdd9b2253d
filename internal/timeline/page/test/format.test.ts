// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";

import * as f from "../src/format";

const thin = "\u202f";

test("lengths of time have three significant digits", () => {
  const want: [number, string][] = [
    [0, "0"], [1, "1 ns"], [12.4, "12 ns"], [999, "999 ns"], [1000, "1 µs"], [-1500, "-1.50 µs"], [1_234_567, "1.23 ms"], [9_996, "10.0 µs"], [99_960, "100 µs"], [59e9, "59 s"],
    [299e9, "299 s"], [300e9, "5 min"], [7200e9, "2 h"], [5400e9, "1.50 h"],
  ];
  for (const [ns, text] of want) assert.equal(f.time(ns), text);
});

test("exact lengths of time lose no nanosecond", () => {
  assert.equal(f.exact(1_234_567_890), `1.234${thin}567${thin}890 s`);
  assert.equal(f.exact(1_000_001), `1.000${thin}001 ms`);
  assert.equal(f.exact(7), "7 ns");
  assert.equal(f.exact(0), "0 ns");
});

test("thousands are apart on both sides of the point", () => {
  assert.equal(f.group("1234567"), `1${thin}234${thin}567`);
  assert.equal(f.group("123"), "123");
  assert.equal(f.group("1234.5678"), `1${thin}234.567${thin}8`);
  assert.equal(f.count(1000), `1${thin}000`);
});

test("bytes go by 1024", () => {
  assert.equal(f.bytes(1023), "1023 B");
  assert.equal(f.bytes(1024), "1 KiB");
  assert.equal(f.bytes(16_384 + 3), "16.0 KiB");
  assert.equal(f.bytes(1536 * 1024), "1.50 MiB");
  assert.equal(f.bytes(2 ** 60), "1024 PiB");
});

test("quantities have the prefixes that their units have", () => {
  const want: [number, string, string][] = [
    [1536, "B", "1.50 KiB"], [1.5, "s", "1.50 s"], [0.0015, "s", "1.50 ms"], [1500, "B/s", "1.50 kB/s"], [2.5e9, "bytes/s", "2.50 GB/s"], [-3, "W", "−3 W"], [0.002, "W", "2 mW"],
    [12, "#", "12"], [123456, "#", "123 k"], [1234, "#", `1${thin}234`], [255, "bits", "0xff"], [NaN, "W", "–"], [Infinity, "B", "–"], [0.5, "/s", "0.50 /s"], [1234, "°C", `1${thin}234 °C`],
  ];
  for (const [v, unit, text] of want) assert.equal(f.quantity(v, unit), text, `${v} ${unit}`);
});

test("shares of nothing are no shares", () => {
  assert.equal(f.percent(1, 3), "33.3 %");
  assert.equal(f.percent(1, 0), "–");
});

test("one is not many", () => {
  assert.equal(f.plural(1, "rank", "ranks"), "1 rank");
  assert.equal(f.plural(0, "rank", "ranks"), "0 ranks");
});

test("ticks stand at round times, no nearer than asked for", () => {
  for (const [from, to, width] of [[0, 1000, 1000], [-37, 12_345_678, 800], [5e9, 5e9 + 300, 400], [0, 3e12, 100]] as const) {
    const { step, at } = f.ticks(from, to, width, 96);
    assert(at.length >= 1 && at.length <= width / 96 + 1, `${at.length} ticks from ${from} to ${to}`);
    assert((step / (to - from)) * width >= 96, "they are too near");
    assert([1, 2, 5].includes(Number(String(step)[0])), `the step is ${step}`);
    for (const t of at) assert(t >= from && t <= to && t % step === 0, `a tick at ${t}`);
  }
});

test("no tick is finer than a nanosecond", () => {
  assert.equal(f.ticks(0, 3, 3000, 10).step, 1);
});

test("times on a ruler have the digits that its steps need", () => {
  assert.equal(f.onRuler(0, 100), "0");
  assert.equal(f.onRuler(1_500_000_000, 100_000_000), "1.5 s");
  assert.equal(f.onRuler(1_500_000_000, 1000), `1.500${thin}000 s`);
  assert.equal(f.onRuler(-2000, 1000), "-2 µs");
});

test("kinds of causes have the glossary's names", () => {
  assert.deepEqual(["host_late", "gpu_late", "slow_transfer"].map(f.cause), ["host late", "GPU late", "slow transfer"]);
});
