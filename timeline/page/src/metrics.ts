// SPDX-License-Identifier: Apache-2.0
// Curves of metrics. What lies between two values that follow each other is an interval; where intervals are smaller
// than a pixel, the picture shows their mean and between what they are, from sums of many.

import { Columns, type Column } from "./columns";
import * as f from "./format";
import type { Head, HeadMetric, HeadSeries } from "./head";
import type { Item } from "./rows";
import { fan, lastAtMost, type Store } from "./store";
import type { Colours } from "./theme";
import type { View } from "./view";

// Sums are those of some intervals: between what values are, their mean over time. Time without a value does not count.
export interface Sums {
  min: number; // Infinity: there is no value
  max: number;
  area: number; // values times ns
  time: number; // ns with a value
  count: number; // intervals that were looked at, or stand for those that were not
}

// curveGap is how many pixels are free above and below a curve.
export const curveGap = 2;

export const noSums = (): Sums => ({ min: Infinity, max: -Infinity, area: 0, time: 0, count: 0 });

// A level of a series: entry i stands for some intervals from start[i] to start[i + 1].
interface Level {
  start: Float64Array;
  each: number; // intervals of an entry
  of: { min: Float64Array; max: Float64Array; area: Float64Array; missing: Float64Array }[]; // by member
}

// Points are an unpacked block: intervals i from time[i] to time[i + 1].
interface Points {
  time: Float64Array;
  of: { value: Float64Array; area: Float64Array; stored: (i: number) => string }[]; // by member; value is NaN where there is none
}

// Curve is what a row of metrics shows.
export interface Curve {
  row: number;
  metric: HeadMetric;
  series: HeadSeries;
  member: number;
  levels: Level[];
  unit: string; // of what is shown
  axis: Axis;
}

// Axis is shared by all rows of a metric, so that they can be compared.
export interface Axis {
  from: number;
  to: number;
}

// Reading is what a curve says of a moment.
export interface Reading {
  from: number;
  to: number;
  value: number; // NaN: there is none
  stored: string; // the value that was recorded, as the archive has it
  after: string; // and that of the end of the interval
}

export class Curves {
  readonly all: Curve[] = [];
  private readonly byRow = new Map<number, Curve>();

  constructor(private readonly store: Store) {}

  private get head(): Head {
    return this.store.head;
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
    return this.store.load("m" + (s.block + k), s.block + k, n * (1 + s.members.length), (c) => readPoints(c, n, s, k === Math.ceil(s.count / this.head.chunk) - 1));
  }

  peek(curve: Curve, k: number): Points | undefined {
    return this.entry(curve, k).value;
  }

  // reading is what a curve says of a moment; undefined: it says nothing of that time.
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

  // sums adds up a range of time. Only the blocks at its ends are unpacked.
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

  // place is how far below the top of the axis a value is, as a share of its length.
  place(curve: Curve, v: number): number {
    const { from, to } = curve.axis;
    return to > from ? (to - v) / (to - from) : 1;
  }

  // mean writes the mean of sums. Bits have none.
  mean(curve: Curve, s: Sums): string {
    return curve.unit === "bits" ? "–" : this.write(curve, s.time > 0 ? s.area / s.time : s.max);
  }

  // write writes a value of a curve.
  write(curve: Curve, v: number): string {
    return f.quantity(v, curve.unit);
  }
}

const ends = { min: Infinity, max: -Infinity };

function addEntry(out: Sums, level: Level, member: number, i: number, count: number): void {
  const of = level.of[member]!;
  out.min = Math.min(out.min, of.min[i]!);
  out.max = Math.max(out.max, of.max[i]!);
  out.area += of.area[i]!;
  out.time += level.start[i + 1]! - level.start[i]! - of.missing[i]!;
  out.count += count;
}

// addPoints adds intervals as far as they lie in a range.
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
      const one = { min: new Float64Array(n).fill(ends.min), max: new Float64Array(n).fill(ends.max), area: new Float64Array(n), missing: new Float64Array(n) };
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

// readPoints works out what lies between the values. ../../metric.go does the same for the nodes.
function readPoints(c: Columns, n: number, s: HeadSeries, lastBlock: boolean): Points {
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

function rateUnit(unit: string): string {
  return unit === "" || unit === "#" ? "/s" : unit + "/s";
}

// CurvePainter draws the curves of a picture: those of all its rows into one field, each then where it belongs.
export class CurvePainter {
  colours!: Colours;
  coarse = 0; // entries whose values have not been unpacked yet
  private readonly field = document.createElement("canvas");
  private readonly context = this.field.getContext("2d")!;
  private image: ImageData | undefined;
  private words = new Uint32Array(0);
  private low = new Float64Array(0); // by column, device pixels
  private high = new Float64Array(0);
  private area = new Float64Array(0);
  private time = new Float64Array(0);

  constructor(
    private readonly store: Store,
    private readonly view: View,
  ) {}

  // paint draws the curves of the rows that are in the picture.
  paint(c: CanvasRenderingContext2D, ratio: number, items: Item[]): void {
    this.coarse = 0;
    const shown = items.flatMap((item) => {
      const curve = this.store.curves.of(item.row);
      return curve ? [{ item, curve, height: Math.round((item.height - 2 * curveGap) * ratio) }] : [];
    });
    if (shown.length === 0) return;
    const room = Math.max(1, Math.round(this.view.width * ratio));
    const height = shown.reduce((n, s) => n + s.height, 0);
    this.prepare(room, height);
    let y = 0;
    for (const s of shown) {
      this.curve(s.curve, ratio, room, y, s.height);
      y += s.height;
    }
    this.context.putImageData(this.image!, 0, 0, 0, 0, room, height);
    c.imageSmoothingEnabled = false;
    y = 0;
    for (const s of shown) {
      const top = s.item.y - this.view.top + curveGap;
      c.fillStyle = this.colours.line;
      c.fillRect(0, top + s.height / ratio, this.view.width, 1);
      c.drawImage(this.field, 0, y, room, s.height, 0, top, room / ratio, s.height / ratio);
      if (innerWidth <= narrow) this.label(c, s.curve, top, s.height / ratio);
      y += s.height;
    }
  }

  private prepare(room: number, height: number): void {
    if (!this.image || this.image.width !== room || this.image.height < height) {
      this.field.width = room;
      this.field.height = height;
      this.image = new ImageData(room, height);
      this.words = new Uint32Array(this.image.data.buffer);
      this.low = new Float64Array(room);
      this.high = new Float64Array(room);
      this.area = new Float64Array(room);
      this.time = new Float64Array(room);
    } else this.words.fill(0, 0, room * height);
  }

  // label names the top of the axis, where there is no room for it beside the name.
  private label(c: CanvasRenderingContext2D, curve: Curve, top: number, height: number): void {
    if (height < 14) return;
    c.font = font;
    c.textBaseline = "top";
    const text = this.store.curves.write(curve, curve.axis.to);
    const width = c.measureText(text).width;
    c.globalAlpha = 0.9;
    c.fillStyle = this.colours.paper;
    c.fillRect(2, top, width + 6, 12);
    c.globalAlpha = 1;
    c.fillStyle = this.colours.faint;
    c.fillText(text, 5, top + 1);
  }

  private curve(curve: Curve, ratio: number, room: number, y: number, height: number): void {
    this.low.fill(Infinity);
    this.high.fill(-Infinity);
    this.area.fill(0);
    this.time.fill(0);
    const scale = this.view.scale * ratio;
    const { from, to } = this.view;
    const { chunk } = this.store.head;
    const deposit = (s: number, e: number, low: number, high: number, value: number) => {
      const x0 = (s - from) * scale;
      const x1 = (e - from) * scale;
      const end = Math.min(room - 1, Math.max(Math.floor(x0), Math.ceil(x1) - 1));
      for (let x = Math.max(0, Math.floor(x0)); x <= end; x++) {
        if (low < this.low[x]!) this.low[x] = low;
        if (high > this.high[x]!) this.high[x] = high;
        const part = Math.min(x + 1, x1) - Math.max(x, x0);
        this.area[x]! += value * part;
        this.time[x]! += part;
      }
    };
    const walk = (depth: number, begin: number, end: number): void => {
      const level = curve.levels[depth]!;
      const of = level.of[curve.member]!;
      for (let i = begin; i < end; i++) {
        const s = level.start[i]!;
        const e = level.start[i + 1]!;
        if (s > to) return;
        if (e < from) continue;
        const smear = () => {
          const time = e - s - of.missing[i]!;
          if (of.min[i]! <= of.max[i]!) deposit(s, e, of.min[i]!, of.max[i]!, time > 0 ? of.area[i]! / time : of.max[i]!);
        };
        if ((e - s) * scale < 1) smear();
        else if (depth > 0) walk(depth - 1, i * fan, Math.min(i * fan + fan, curve.levels[depth - 1]!.start.length - 1));
        else {
          const first = i * level.each;
          const k = Math.floor(first / chunk);
          const points = this.store.curves.peek(curve, k);
          if (!points) {
            this.coarse++;
            smear();
            continue;
          }
          const { value } = points.of[curve.member]!;
          const a = first - k * chunk;
          const b = Math.min(a + level.each, value.length);
          for (let j = a; j < b; j++) {
            const v = value[j]!;
            if (points.time[j]! > to) return;
            if (points.time[j + 1]! >= from && !Number.isNaN(v)) deposit(points.time[j]!, points.time[j + 1]!, v, v, v);
          }
        }
      }
    };
    const top = curve.levels.length - 1;
    walk(top, 0, curve.levels[top]!.start.length - 1);
    this.columns(curve.axis, room, y, height, Math.max(1, Math.round(1.25 * ratio)));
  }

  // columns fills the field: from what to what values are, below it to their mean, and a line along the mean.
  private columns(axis: Axis, room: number, top: number, height: number, thick: number): void {
    const { words } = this;
    const [range, fill, both, line] = this.colours.metric.words;
    const factor = (height - thick) / (axis.to - axis.from || 1);
    const place = (v: number) => Math.round((axis.to - v) * factor);
    const zero = Math.min(height, place(0) + thick);
    let before = -1;
    for (let x = 0; x < room; x++) {
      if (this.high[x]! === -Infinity) {
        before = -1;
        continue;
      }
      const a = place(this.high[x]!);
      const b = place(this.low[x]!);
      const m = place(this.time[x]! > 0 ? this.area[x]! / this.time[x]! : this.high[x]!);
      const base = top * room + x;
      for (let y = Math.min(m, zero); y < Math.max(m, zero); y++) words[base + y * room] = fill;
      for (let y = a; y < b + thick; y++) words[base + y * room] = words[base + y * room] === 0 ? range : both;
      // The line meets the one of the column before.
      const l0 = before < 0 ? m : Math.min(m, before);
      const l1 = before < 0 ? m : Math.max(m, before);
      const zeros = this.high[x] === 0 && this.low[x] === 0;
      for (let y = l0; y < l1 + thick; y++) words[base + y * room] = zeros && y >= zero - thick ? both : line;
      before = m;
    }
  }
}

const narrow = 900; // pixels; style.css has the same
const font = "10px system-ui, -apple-system, 'Segoe UI', sans-serif";
