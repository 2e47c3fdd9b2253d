// SPDX-License-Identifier: Apache-2.0
// Drawing the curves of metrics.

import type { Axis, Curve } from "./curves";
import { narrow } from "./dom";
import { fan } from "./levels";
import { curveGap, type Item } from "./rows";
import type { Store } from "./store";
import type { Colors } from "./theme";
import type { View } from "./view";

// CurvePainter draws all curves of a picture into one buffer, then copies each to its place.
export class CurvePainter {
  colors!: Colors;
  coarse = 0; // entries whose values have not been unpacked yet
  private readonly field = document.createElement("canvas");
  private readonly context = this.field.getContext("2d")!;
  private image: ImageData | undefined;
  private words = new Uint32Array(0);
  private low = new Float64Array(0); // by column, device pixels
  private high = new Float64Array(0);
  private area = new Float64Array(0);
  private time = new Float64Array(0);

  constructor(private readonly store: Store, private readonly view: View) {}

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
      c.fillStyle = this.colors.line;
      c.fillRect(0, top + s.height / ratio, this.view.width, 1);
      c.drawImage(this.field, 0, y, room, s.height, 0, top, room / ratio, s.height / ratio);
      if (narrow()) this.label(c, s.curve, top, s.height / ratio);
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

  // label writes the top value of the axis if there is no room beside the name.
  private label(c: CanvasRenderingContext2D, curve: Curve, top: number, height: number): void {
    if (height < 14) return;
    c.font = font;
    c.textBaseline = "top";
    const text = this.store.curves.write(curve, curve.axis.to);
    const width = c.measureText(text).width;
    c.globalAlpha = 0.9;
    c.fillStyle = this.colors.paper;
    c.fillRect(2, top, width + 6, 12);
    c.globalAlpha = 1;
    c.fillStyle = this.colors.faint;
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

  // columns fills the buffer: the range of values, the area below their mean, and a line along the mean.
  private columns(axis: Axis, room: number, top: number, height: number, thick: number): void {
    const { words } = this;
    const [range, fill, both, line] = this.colors.metric.words;
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
      // Connects the line to that of the column before.
      const l0 = before < 0 ? m : Math.min(m, before);
      const l1 = before < 0 ? m : Math.max(m, before);
      const zeros = this.high[x] === 0 && this.low[x] === 0;
      for (let y = l0; y < l1 + thick; y++) words[base + y * room] = zeros && y >= zero - thick ? both : line;
      before = m;
    }
  }
}

const font = "10px system-ui, -apple-system, 'Segoe UI', sans-serif";
