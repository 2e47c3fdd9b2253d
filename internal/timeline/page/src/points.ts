// SPDX-License-Identifier: Apache-2.0
// The values of a metric between recorded points.

import type { Column, Columns } from "./columns";
import type { HeadMetric, HeadSeries } from "./head";

// Points is an unpacked block: interval i is from time[i] to time[i + 1].
export interface Points {
  time: Float64Array;
  of: { value: Float64Array; area: Float64Array; stored: (i: number) => string }[]; // by member; value is NaN where there is none
}

// readPoints computes the intervals between the recorded values. ../../metric.go does the same for the nodes.
export function readPoints(c: Columns, n: number, s: HeadSeries, lastBlock: boolean): Points {
  const times = c.next();
  const time = new Float64Array(n + 1);
  let at = 0;
  for (let i = 0; i <= n; i++) time[i] = at += times.next();
  const of = s.members.map((m) => {
    const read = m.type === "DOUBLE" ? doubles(c.next(), n, m) : integers(c.next(), n, m);
    const value = new Float64Array(n);
    const area = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const length = time[i + 1]! - time[i]!;
      if (m.timing === "rate") {
        area[i] = read.growth(i) * 1e9;
        value[i] = length > 0 ? area[i]! / length : NaN;
      } else {
        const v = read.number(m.timing === "last" ? i + 1 : i);
        area[i] = v * length;
        value[i] = length > 0 || m.timing === "last" ? v : NaN;
      }
      if (!Number.isFinite(area[i]!) || (lastBlock && s.closed && i === n - 1 && m.timing !== "next")) value[i] = area[i] = NaN;
    }
    return { value, area, stored: read.stored };
  });
  return { time, of };
}

interface Stored {
  number(i: number): number;
  growth(i: number): number; // from value i to the next one
  stored(i: number): string;
}

function doubles(c: Column, n: number, m: HeadMetric): Stored {
  const all = new Float64Array(n + 1);
  for (let i = 0; i <= n; i++) all[i] = c.double();
  const number = (i: number) => (all[i]! * m.factor) / m.divisor;
  return { number, growth: (i) => number(i + 1) - number(i), stored: (i) => String(all[i]!) };
}

function integers(c: Column, n: number, m: HeadMetric): Stored {
  const signed = m.type === "INT64";
  const all = new (signed ? BigInt64Array : BigUint64Array)(n + 1);
  let at = 0n;
  for (let i = 0; i <= n; i++) all[i] = at += c.big(); // arrays of 64 bits wrap
  return {
    number: (i) => (Number(all[i]!) * m.factor) / m.divisor,
    growth: (i) => (Number(BigInt.asIntN(64, all[i + 1]! - all[i]!)) * m.factor) / m.divisor,
    stored: (i) => String(all[i]!),
  };
}
