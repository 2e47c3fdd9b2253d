// SPDX-License-Identifier: Apache-2.0
// The picture of the rows. Bars of more than a pixel are drawn as such. Everything smaller is added up per pixel, from
// the highest level of detail that is no coarser than the picture, so that a picture costs about the same however many
// events there are.

import { CurvePainter } from "./metrics";
import type { Item, Rows } from "./rows";
import { fan, type Lane, type Level, type Store } from "./store";
import type { Colours } from "./theme";
import type { View } from "./view";

// Box is a bar in the picture, in CSS pixels.
export interface Box {
  bar: number;
  region: number;
  x: number;
  y: number;
  width: number;
  height: number;
  wait: number; // pixels of it
}

export interface Painted {
  boxes: Box[];
  pixels: number; // entries that were added up
  coarse: number; // entries whose bars have not been unpacked yet
}

const smallest = 1.5; // device pixels from which on a bar is drawn by itself
const font = "11px system-ui, -apple-system, 'Segoe UI', sans-serif";

export class Painter {
  colours!: Colours;
  private readonly strip = document.createElement("canvas");
  private readonly stripContext = this.strip.getContext("2d", { willReadFrequently: false })!;
  private image: ImageData | undefined;
  private words: Uint32Array = new Uint32Array(0);
  private red = new Float32Array(0);
  private green = new Float32Array(0);
  private blue = new Float32Array(0);
  private weight = new Float32Array(0);
  private readonly widths = new Map<string, number>();
  private hatch: CanvasPattern | null = null;
  private hatchOf = "";
  private curves: CurvePainter | undefined;
  private lines: { y: number; height: number }[] = []; // of the strip, one for each lane that was added up

  // Of the lane under way.
  private store!: Store;
  private lane!: Lane;
  private scale = 1; // device pixels per ns
  private from = 0;
  private to = 0;
  private room = 0; // device pixels
  private flat = false; // no boxes: everything is added up
  private fine = true; // bars may be looked at
  private touched = false;
  private y = 0;
  private boxHeight = 0;
  private ratio = 1;
  private out!: Painted;
  showWaits = true;

  paint(c: CanvasRenderingContext2D, ratio: number, view: View, rows: Rows, store: Store, focus: number): Painted {
    this.begin(ratio, view, store);
    const shown: Item[] = [];
    for (const item of rows.items) {
      if (item.y + item.height < view.top) continue;
      if (item.y > view.top + view.height) break;
      shown.push(item);
    }
    const lanes = shown.reduce((n, i) => n + i.lanes.length + (i.strip.length > 0 ? Math.min(i.strip.length, stripLines) : 0), 0);
    this.prepare(Math.max(1, lanes));

    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = this.colours.paper;
    c.fillRect(0, 0, view.width, view.height);
    for (const item of shown) this.background(c, view, item, focus, store);
    for (const item of shown) {
      for (const l of item.lanes) this.single(l.lane, item.y - view.top + l.y, l.height);
      if (item.strip.length > 0) this.sum(item, item.y - view.top);
    }
    this.blit(c);
    this.boxes(c, view);
    this.curves ??= new CurvePainter(store, view);
    this.curves.colours = this.colours;
    this.curves.paint(c, ratio, shown);
    this.out.coarse += this.curves.coarse;
    return this.out;
  }

  private begin(ratio: number, view: View, store: Store): void {
    this.out = { boxes: [], pixels: 0, coarse: 0 };
    this.store = store;
    this.ratio = ratio;
    this.room = Math.max(1, Math.round(view.width * ratio));
    this.scale = view.scale * ratio;
    this.from = view.from;
    this.to = view.to;
    if (this.weight.length !== this.room) {
      this.red = new Float32Array(this.room);
      this.green = new Float32Array(this.room);
      this.blue = new Float32Array(this.room);
      this.weight = new Float32Array(this.room);
      this.image = undefined;
    }
    this.lines = [];
  }

  private blit(c: CanvasRenderingContext2D): void {
    if (!this.image || this.lines.length === 0) return;
    this.stripContext.putImageData(this.image, 0, 0, 0, 0, this.room, this.lines.length);
    c.imageSmoothingEnabled = false;
    this.lines.forEach((l, i) => c.drawImage(this.strip, 0, i, this.room, 1, 0, l.y, this.room / this.ratio, l.height));
  }

  // summary paints lanes into a field of their own, several to a line where they are many.
  summary(c: CanvasRenderingContext2D, ratio: number, view: View, lanes: Lane[], store: Store, y: number, height: number): void {
    this.begin(ratio, view, store);
    const n = Math.max(1, Math.min(lanes.length, Math.floor(height / 2)));
    this.prepare(n);
    this.flat = true;
    this.fine = false;
    this.group(lanes, n, y, height);
    this.blit(c);
  }

  private background(c: CanvasRenderingContext2D, view: View, item: Item, focus: number, store: Store): void {
    const y = item.y - view.top;
    const kind = store.head.rows[item.row]!.kind;
    if (item.lanes.length === 0 && kind !== "metric") {
      c.fillStyle = this.colours.stripe;
      c.fillRect(0, y, view.width, item.height);
    }
    if (item.row === focus) {
      c.fillStyle = this.colours.range;
      c.fillRect(0, y, view.width, item.height);
    }
    if (kind === "process" || kind === "host") {
      c.fillStyle = this.colours.line;
      c.fillRect(0, y, view.width, 1);
    }
  }

  private prepare(lines: number): void {
    if (!this.image || this.image.height < lines) {
      const height = Math.max(lines, this.image ? this.image.height * 2 : 64);
      this.strip.width = this.room;
      this.strip.height = height;
      this.image = new ImageData(this.room, height);
      this.words = new Uint32Array(this.image.data.buffer);
    }
  }

  private single(lane: Lane, y: number, height: number): void {
    this.y = y;
    this.boxHeight = height;
    this.flat = false;
    this.fine = true;
    this.add(lane);
    this.line(y, height);
  }

  // sum paints a closed group: what is in it side by side, several to a line where they are many.
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
      this.line(y + i * height, Math.max(1, height - (height > 4 ? 1 : 0)));
    }
  }

  // add goes through what a lane has in the picture.
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
      if (w < smallest) this.point((s - this.from) * this.scale, w * level.busy[i]!, level.region[i]!, level.wait[i]!);
      else if (depth > 0) this.walk(depth - 1, i * fan, Math.min(i * fan + fan, this.lane.levels[depth - 1]!.start.length));
      else if (!this.fine || !this.bars(i)) this.smear(level, i);
    }
  }

  // bars takes the bars of an entry of the lowest level; false: they are not there yet.
  private bars(entry: number): boolean {
    const first = entry * this.store.head.leaf;
    const chunk = Math.floor(first / this.store.head.chunk);
    const bars = this.store.peekBars(this.lane, chunk);
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
      if (w < smallest) this.point(x, w, bars.region[i]!, length > 0 ? wait / length : 0);
      else if (this.flat) this.spread(x, x + w, bars.region[i]!, 1, wait / length);
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
    this.spread((level.start[i]! - this.from) * this.scale, (level.end[i]! - this.from) * this.scale, level.region[i]!, level.busy[i]!, level.wait[i]!);
  }

  // point adds something smaller than a pixel. It is seen even if it is very short.
  private point(x: number, weight: number, region: number, wait: number): void {
    const at = x | 0;
    if (x < 0 || at >= this.room) return;
    this.deposit(at, Math.max(weight, 0.04), region, wait);
  }

  private spread(x0: number, x1: number, region: number, busy: number, wait: number): void {
    const a = Math.max(0, x0);
    const b = Math.min(this.room, x1);
    for (let at = Math.floor(a); at < b; at++) this.deposit(at, Math.max((Math.min(at + 1, b) - Math.max(at, a)) * busy, 0.04), region, wait);
  }

  private deposit(at: number, weight: number, region: number, wait: number): void {
    const rgb = this.colours.rgb;
    const i = 3 * region;
    if (wait > 0 && this.showWaits && this.colours.faded[region] === 0) {
      const [r, g, b] = this.colours.waitRGB;
      const w = weight * wait;
      const rest = weight - w;
      this.red[at]! += rgb[i]! * rest + r * w;
      this.green[at]! += rgb[i + 1]! * rest + g * w;
      this.blue[at]! += rgb[i + 2]! * rest + b * w;
    } else {
      this.red[at]! += rgb[i]! * weight;
      this.green[at]! += rgb[i + 1]! * weight;
      this.blue[at]! += rgb[i + 2]! * weight;
    }
    this.weight[at]! += weight;
    this.touched = true;
    this.out.pixels++;
  }

  // line turns what has been added up into a line of the strip.
  private line(y: number, height: number): void {
    if (!this.touched || !this.image) return;
    this.touched = false;
    const base = this.lines.length * this.room;
    for (let i = 0; i < this.room; i++) {
      const w = this.weight[i]!;
      if (w === 0) {
        this.words[base + i] = 0;
        continue;
      }
      const alpha = Math.min(1, 0.35 + 0.65 * w);
      const f = 1 / w;
      this.words[base + i] =
        (Math.round(255 * alpha) << 24) | ((this.blue[i]! * f) << 16) | ((this.green[i]! * f) << 8) | (this.red[i]! * f);
    }
    this.red.fill(0);
    this.green.fill(0);
    this.blue.fill(0);
    this.weight.fill(0);
    this.lines.push({ y, height });
  }

  private boxes(c: CanvasRenderingContext2D, view: View): void {
    let style = "";
    for (const b of this.out.boxes) {
      const fill = this.colours.css[b.region]!;
      if (fill !== style) c.fillStyle = style = fill;
      const x = Math.max(b.x, -2);
      const end = Math.min(b.x + b.width, view.width + 2);
      c.fillRect(x, b.y, Math.max(end - x - (b.width > 4 ? 1 : 0), 1 / this.ratio), b.height);
    }
    if (this.showWaits) this.waits(c, view);
    c.font = font;
    c.textBaseline = "middle";
    style = "";
    for (const b of this.out.boxes) {
      const x = Math.max(b.x, 0);
      const room = Math.min(b.x + b.width, view.width) - x - 8;
      if (room < 16 || b.height < 12) continue;
      const text = this.fitting(c, this.store.head.regions[b.region]!.name, room);
      if (text === "") continue;
      const ink = this.colours.text[b.region]!;
      if (ink !== style) c.fillStyle = style = ink;
      c.fillText(text, x + 4, b.y + b.height / 2 + 0.5);
    }
  }

  // waits hatches the part of a bar that was waiting.
  private waits(c: CanvasRenderingContext2D, view: View): void {
    const key = this.colours.wait + this.ratio;
    if (this.hatchOf !== key) {
      this.hatch = this.makeHatch(c);
      this.hatchOf = key;
    }
    for (const b of this.out.boxes) {
      if (b.wait <= 0 || this.colours.faded[b.region] === 1) continue;
      const x = Math.max(b.x, -2);
      const end = Math.min(b.x + Math.min(b.wait, b.width), view.width + 2);
      if (end <= x) continue;
      if (b.wait < 4 || !this.hatch) {
        c.fillStyle = this.colours.wait;
        c.fillRect(x, b.y, Math.max(end - x, 1 / this.ratio), b.height);
        continue;
      }
      c.fillStyle = this.hatch;
      c.fillRect(x, b.y, end - x, b.height);
      c.fillStyle = this.colours.wait;
      c.fillRect(x, b.y + b.height - 3, end - x, 3);
    }
  }

  private makeHatch(c: CanvasRenderingContext2D): CanvasPattern | null {
    const size = 8;
    const tile = document.createElement("canvas");
    tile.width = tile.height = size * this.ratio;
    const t = tile.getContext("2d")!;
    t.scale(this.ratio, this.ratio);
    t.strokeStyle = this.colours.wait;
    t.globalAlpha = 0.7;
    t.lineWidth = 1.7;
    for (const d of [-size, 0, size]) {
      t.beginPath();
      t.moveTo(d - 1, size + 1);
      t.lineTo(d + size + 1, -1);
      t.stroke();
    }
    const p = c.createPattern(tile, "repeat");
    p?.setTransform(new DOMMatrix().scale(1 / this.ratio));
    return p;
  }

  // fitting is as much of a name as there is room for.
  private fitting(c: CanvasRenderingContext2D, name: string, room: number): string {
    let width = this.widths.get(name);
    if (width === undefined) {
      width = c.measureText(name).width;
      this.widths.set(name, width);
    }
    if (width <= room) return name;
    const n = Math.floor((room / width) * name.length) - 1;
    return n >= 2 ? name.slice(0, n) + "…" : "";
  }
}

const stripLines = 8; // of a closed group
