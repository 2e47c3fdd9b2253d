// SPDX-License-Identifier: Apache-2.0
// Curves of metrics. An interval lies between two consecutive values. Where intervals are smaller than a pixel, the
// picture shows their range and mean, from sums over many intervals.

import { lastAtMost } from "./bounds";
import type { Cache } from "./cache";
import { Columns } from "./columns";
import * as f from "./format";
import type { Head, HeadMetric, HeadSeries } from "./head";
import { fan } from "./levels";
import { readPoints, type Points } from "./points";

// Sums summarize intervals: range of values, and mean over time. Time without a value does not count.
export interface Sums {
  min: number; // Infinity: there is no value
  max: number;
  area: number; // values times ns
  time: number; // ns with a value
  count: number; // intervals visited or summed up
}

export const noSums = (): Sums => ({ min: Infinity, max: -Infinity, area: 0, time: 0, count: 0 });

// A level of a series: entry i sums up the intervals from start[i] to start[i + 1].
interface Level {
  start: Float64Array;
  each: number; // intervals of an entry
  of: { min: Float64Array; max: Float64Array; area: Float64Array; missing: Float64Array }[]; // by member
}

// Curve is the content of a metric's row.
export interface Curve {
  row: number;
  metric: HeadMetric;
  series: HeadSeries;
  member: number;
  levels: Level[];
  unit: string; // of the values shown
  axis: Axis;
}

// Axis is common to all rows of a metric, so that they can be compared.
export interface Axis {
  from: number;
  to: number;
}

// Reading is the value of a curve at a moment.
export interface Reading {
  from: number;
  to: number;
  value: number; // NaN: none
  stored: string; // the value as recorded
  after: string; // the recorded value at the end of the interval
}

export class Curves {
  readonly all: Curve[] = [];
  private readonly byRow = new Map<number, Curve>();

  constructor(private readonly cache: Cache) {}

  private get head(): Head {
    return this.cache.head;
  }

  of(row: number): Curve | undefined {
    return this.byRow.get(row);
  }

  // open reads the nodes.
  open(bytes: Uint8Array): void {
    const c = new Columns(bytes);
    const [start, numbers, missing] = [c.next(), c.next(), c.next()];
    const { leaf, series } = this.head.metrics;
    const axes = new Map<string, Axis>();
    const leaves = series.map((s) => {
      const n = Math.ceil(s.count / leaf);
      const level: Level = { start: new Float64Array(n + 1), each: leaf, of: [] };
      let at = 0;
      for (let i = 0; i < n; i++) level.start[i] = at += start.next();
      level.start[n] = s.end;
      return level;
    });
    series.forEach((s, k) => {
      const level = leaves[k]!;
      const n = level.start.length - 1;
      s.members.forEach(() => {
        const one = { min: new Float64Array(n), max: new Float64Array(n), area: new Float64Array(n), missing: new Float64Array(n) };
        for (let i = 0; i < n; i++) {
          one.min[i] = numbers.double();
          one.max[i] = numbers.double();
          one.area[i] = numbers.double();
          one.missing[i] = missing.next();
        }
        level.of.push(one);
      });
      const levels = pyramid(level);
      s.members.forEach((metric, member) => {
        const unit = metric.timing === "rate" ? rateUnit(metric.unit) : metric.unit;
        const key = `${this.head.rows[metric.row]!.name}\n${unit}\n${metric.timing}`;
        const axis = axes.get(key) ?? { from: 0, to: 0 };
        axes.set(key, axis);
        const top = levels[levels.length - 1]!.of[member]!;
        for (let i = 0; i < top.min.length; i++) {
          axis.from = Math.min(axis.from, top.min[i]!);
          axis.to = Math.max(axis.to, top.max[i]!);
        }
        const curve: Curve = { row: metric.row, metric, series: s, member, levels, unit, axis };
        this.all.push(curve);
        this.byRow.set(metric.row, curve);
      });
    });
  }

  private entry(curve: Curve, k: number) {
    const s = curve.series;
    const n = Math.min(this.head.chunk, s.count - k * this.head.chunk);
    return this.cache.load(s.block + k, n * (1 + s.members.length), (c) => readPoints(c, n, s, k === Math.ceil(s.count / this.head.chunk) - 1));
  }

  peek(curve: Curve, k: number): Points | undefined {
    return this.entry(curve, k).value;
  }

  // reading returns the value of a curve at a moment; undefined: it has none there.
  async reading(curve: Curve, time: number): Promise<Reading | undefined> {
    const level = curve.levels[0]!;
    const last = level.start.length - 1;
    if (time < level.start[0]! || time > level.start[last]!) return undefined;
    const n = Math.min(lastAtMost(level.start, time), last - 1);
    const { chunk } = this.head;
    const first = n * level.each;
    const points = await this.entry(curve, Math.floor(first / chunk)).promise;
    const one = points.of[curve.member]!;
    const i = Math.min(lastAtMost(points.time, time), one.value.length - 1);
    return { from: points.time[i]!, to: points.time[i + 1]!, value: one.value[i]!, stored: one.stored(i), after: one.stored(i + 1) };
  }

  // sums sums up a range of time. Only the blocks at its ends are unpacked.
  async sums(curve: Curve, from: number, to: number): Promise<Sums> {
    const out = noSums();
    const { chunk } = this.head;
    const walk = async (depth: number, begin: number, end: number): Promise<void> => {
      const level = curve.levels[depth]!;
      for (let i = begin; i < end; i++) {
        const s = level.start[i]!;
        const e = level.start[i + 1]!;
        if (s > to) return;
        if (e < from) continue;
        if (s >= from && e <= to) addEntry(out, level, curve.member, i, Math.min(level.each, curve.series.count - i * level.each));
        else if (depth > 0) await walk(depth - 1, i * fan, Math.min(i * fan + fan, curve.levels[depth - 1]!.start.length - 1));
        else {
          const k = Math.floor((i * level.each) / chunk);
          const points = await this.entry(curve, k).promise;
          const a = i * level.each - k * chunk;
          addPoints(out, points, curve.member, a, Math.min(a + level.each, points.time.length - 1), from, to);
        }
      }
    };
    const top = curve.levels.length - 1;
    await walk(top, 0, curve.levels[top]!.start.length - 1);
    return out;
  }

  // place is the distance of a value from the top of the axis, as a share of its length.
  place(curve: Curve, v: number): number {
    const { from, to } = curve.axis;
    return to > from ? (to - v) / (to - from) : 1;
  }

  // mean formats the mean of sums. Bit masks have none.
  mean(curve: Curve, s: Sums): string {
    return curve.unit === "bits" ? "–" : this.write(curve, s.time > 0 ? s.area / s.time : s.max);
  }

  // write formats a value of a curve.
  write(curve: Curve, v: number): string {
    return f.quantity(v, curve.unit);
  }
}

function addEntry(out: Sums, level: Level, member: number, i: number, count: number): void {
  const of = level.of[member]!;
  out.min = Math.min(out.min, of.min[i]!);
  out.max = Math.max(out.max, of.max[i]!);
  out.area += of.area[i]!;
  out.time += level.start[i + 1]! - level.start[i]! - of.missing[i]!;
  out.count += count;
}

// addPoints adds the parts of intervals that lie in a range.
function addPoints(out: Sums, points: Points, member: number, begin: number, end: number, from: number, to: number): void {
  const { value, area } = points.of[member]!;
  for (let i = begin; i < end; i++) {
    const s = points.time[i]!;
    const e = points.time[i + 1]!;
    if (s > to) return;
    if (e < from || Number.isNaN(area[i]!)) continue;
    const part = Math.min(e, to) - Math.max(s, from);
    if (part <= 0 && e > s) continue; // only its end is in the range
    out.area += e > s ? area[i]! * (part / (e - s)) : area[i]!;
    out.time += part;
    out.count++;
    if (Number.isNaN(value[i]!)) continue;
    out.min = Math.min(out.min, value[i]!);
    out.max = Math.max(out.max, value[i]!);
  }
}

function pyramid(lowest: Level): Level[] {
  const all = [lowest];
  for (let below = lowest; below.start.length > 2; ) {
    const entries = below.start.length - 1;
    const n = Math.ceil(entries / fan);
    const level: Level = { start: new Float64Array(n + 1), each: below.each * fan, of: [] };
    for (let i = 0; i <= n; i++) level.start[i] = below.start[Math.min(i * fan, entries)]!;
    for (const b of below.of) {
      const one = { min: new Float64Array(n).fill(Infinity), max: new Float64Array(n).fill(-Infinity), area: new Float64Array(n), missing: new Float64Array(n) };
      for (let j = 0; j < entries; j++) {
        const i = Math.floor(j / fan);
        one.min[i] = Math.min(one.min[i]!, b.min[j]!);
        one.max[i] = Math.max(one.max[i]!, b.max[j]!);
        one.area[i]! += b.area[j]!;
        one.missing[i]! += b.missing[j]!;
      }
      level.of.push(one);
    }
    all.push(level);
    below = level;
  }
  return all;
}

function rateUnit(unit: string): string {
  return unit === "" || unit === "#" ? "/s" : unit + "/s";
}
