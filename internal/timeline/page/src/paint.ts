// SPDX-License-Identifier: Apache-2.0
// The picture of the rows. Bars wider than a pixel are drawn individually. Smaller ones are summed up per pixel, from
// the coarsest level of detail that is fine enough for the picture, so the cost of a picture hardly depends on the
// number of events.

import { Boxes, type Box, type Mark } from "./boxes";
import { CurvePainter } from "./curvepainter";
import { fan, type Level } from "./levels";
import type { Item, Rows } from "./rows";
import type { Lane, Store } from "./store";
import { Strip } from "./strip";
import type { Colors } from "./theme";
import type { View } from "./view";

export interface Painted {
  boxes: Box[];
  marks: Mark[];
  pixels: number; // entries summed up
  coarse: number; // entries whose bars are not unpacked yet
}

const smallest = 1.5; // device pixels from which a bar is drawn individually
const stripLines = 8; // of a closed group

export class Painter {
  colors!: Colors;
  showWaits = true;
  private readonly strip = new Strip();
  private readonly boxes = new Boxes();
  private curves: CurvePainter | undefined;

  // State of the present lane.
  private store!: Store;
  private lane!: Lane;
  private scale = 1; // device pixels per ns
  private from = 0;
  private to = 0;
  private flat = false; // no boxes: all bars are summed up
  private marking = false; // marks, no boxes
  private fine = true; // single bars may be read
  private y = 0;
  private boxHeight = 0;
  private ratio = 1;
  private out!: Painted;

  paint(c: CanvasRenderingContext2D, ratio: number, view: View, rows: Rows, store: Store, focus: number): Painted {
    this.begin(ratio, view, store);
    const shown: Item[] = [];
    for (const item of rows.items) {
      if (item.y + item.height < view.top) continue;
      if (item.y > view.top + view.height) break;
      shown.push(item);
    }
    const lanes = shown.reduce((n, i) => n + i.lanes.length + (i.strip.length > 0 ? Math.min(i.strip.length, stripLines) : 0), 0);
    this.strip.prepare(Math.max(1, lanes));

    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = this.colors.paper;
    c.fillRect(0, 0, view.width, view.height);
    for (const item of shown) this.background(c, view, item, focus, store);
    for (const item of shown) {
      for (const l of item.lanes) this.single(l.lane, item.y - view.top + l.y, l.height, l.marks);
      if (item.strip.length > 0) this.sum(item, item.y - view.top);
    }
    this.strip.blit(c);
    this.boxes.draw(c, ratio, view, this.out.boxes, store.head.regions);
    this.boxes.mark(c, this.out.marks);
    this.out.pixels = this.strip.pixels;
    this.curves ??= new CurvePainter(store, view);
    this.curves.colors = this.colors;
    this.curves.paint(c, ratio, shown);
    this.out.coarse += this.curves.coarse;
    return this.out;
  }

  private begin(ratio: number, view: View, store: Store): void {
    this.out = { boxes: [], marks: [], pixels: 0, coarse: 0 };
    this.store = store;
    this.ratio = ratio;
    this.scale = view.scale * ratio;
    this.from = view.from;
    this.to = view.to;
    this.strip.colors = this.boxes.colors = this.colors;
    this.strip.showWaits = this.boxes.showWaits = this.showWaits;
    this.strip.begin(Math.max(1, Math.round(view.width * ratio)), ratio);
  }

  // summary paints lanes into one area, several per line if there are many.
  summary(c: CanvasRenderingContext2D, ratio: number, view: View, lanes: Lane[], store: Store, y: number, height: number): void {
    this.begin(ratio, view, store);
    const n = Math.max(1, Math.min(lanes.length, Math.floor(height / 2)));
    this.strip.prepare(n);
    this.flat = true;
    this.fine = false;
    this.group(lanes, n, y, height);
    this.strip.blit(c);
  }

  private background(c: CanvasRenderingContext2D, view: View, item: Item, focus: number, store: Store): void {
    const y = item.y - view.top;
    const kind = store.head.rows[item.row]!.kind;
    if (item.lanes.length === 0 && kind !== "metric") {
      c.fillStyle = this.colors.stripe;
      c.fillRect(0, y, view.width, item.height);
    }
    if (item.row === focus) {
      c.fillStyle = this.colors.range;
      c.fillRect(0, y, view.width, item.height);
    }
    if (kind === "process" || kind === "host") {
      c.fillStyle = this.colors.line;
      c.fillRect(0, y, view.width, 1);
    }
  }

  private single(lane: Lane, y: number, height: number, marks: boolean): void {
    this.y = y;
    this.boxHeight = height;
    this.flat = false;
    this.fine = true;
    this.marking = marks;
    this.add(lane);
    this.marking = false;
    if (!marks) this.strip.line(y, height);
  }

  // mark draws a moment, at most one per pixel.
  private mark(x: number, region: number): void {
    const { marks } = this.out;
    const last = marks[marks.length - 1];
    const at = Math.round(x) / this.ratio;
    if (x < 0 || x > this.strip.room || (last && last.x === at && last.y === this.y)) return;
    marks.push({ region, x: at, y: this.y, height: this.boxHeight });
  }

  // sum paints the lanes of a closed group side by side, several per line if there are many.
  private sum(item: Item, y: number): void {
    this.flat = true;
    this.fine = item.strip.length <= 16;
    this.group(item.strip, Math.min(item.strip.length, stripLines), y + 4, item.height - 8);
  }

  private group(lanes: Lane[], lines: number, y: number, room: number): void {
    const height = room / lines;
    for (let i = 0; i < lines; i++) {
      const from = Math.floor((i * lanes.length) / lines);
      const to = Math.floor(((i + 1) * lanes.length) / lines);
      for (let j = from; j < to; j++) this.add(lanes[j]!);
      this.strip.line(y + i * height, Math.max(1, height - (height > 4 ? 1 : 0)));
    }
  }

  // add adds the visible part of a lane.
  private add(lane: Lane): void {
    this.lane = lane;
    const top = lane.levels.length - 1;
    if (lane.count === 0 || top < 0) return;
    this.walk(top, 0, lane.levels[top]!.start.length);
  }

  private walk(depth: number, begin: number, end: number): void {
    const level = this.lane.levels[depth]!;
    for (let i = begin; i < end; i++) {
      const s = level.start[i]!;
      if (s > this.to) return;
      const e = level.end[i]!;
      if (e < this.from) continue;
      const w = (e - s) * this.scale;
      if (w < smallest && this.marking) this.mark((s - this.from) * this.scale, level.region[i]!);
      else if (w < smallest) this.strip.point((s - this.from) * this.scale, w * level.busy[i]!, level.region[i]!, level.wait[i]!);
      else if (depth > 0) this.walk(depth - 1, i * fan, Math.min(i * fan + fan, this.lane.levels[depth - 1]!.start.length));
      else if (!this.fine || !this.bars(i)) this.smear(level, i);
    }
  }

  // bars adds the bars of an entry of the lowest level; false: they are not loaded yet.
  private bars(entry: number): boolean {
    const first = entry * this.store.head.leaf;
    const chunk = Math.floor(first / this.store.head.chunk);
    const bars = this.store.bars(this.lane, chunk).value;
    if (!bars) {
      this.out.coarse++;
      return false;
    }
    const from = first - chunk * this.store.head.chunk;
    const to = Math.min(from + this.store.head.leaf, bars.start.length);
    for (let i = from; i < to; i++) {
      const s = bars.start[i]!;
      const length = bars.length[i]!;
      if (s + length < this.from) continue;
      if (s > this.to) return true;
      const w = length * this.scale;
      const x = (s - this.from) * this.scale;
      const wait = bars.wait[i]!;
      if (this.marking) this.mark(x, bars.region[i]!);
      else if (w < smallest) this.strip.point(x, w, bars.region[i]!, length > 0 ? wait / length : 0);
      else if (this.flat) this.strip.spread(x, x + w, bars.region[i]!, 1, wait / length);
      else {
        this.out.boxes.push({
          bar: this.lane.first + first + i - from, region: bars.region[i]!, x: x / this.ratio, y: this.y, width: w / this.ratio, height: this.boxHeight,
          wait: (wait * this.scale) / this.ratio,
        });
      }
    }
    return true;
  }

  private smear(level: Level, i: number): void {
    if (this.marking) return;
    this.strip.spread((level.start[i]! - this.from) * this.scale, (level.end[i]! - this.from) * this.scale, level.region[i]!, level.busy[i]!, level.wait[i]!);
  }
}
