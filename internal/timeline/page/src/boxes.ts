// SPDX-License-Identifier: Apache-2.0
// Bars that are wide enough to be drawn individually.

import type { Head } from "./head";
import type { Colors } from "./theme";
import type { View } from "./view";

// Box is a bar in the picture, in CSS pixels.
export interface Box {
  bar: number;
  region: number;
  x: number;
  y: number;
  width: number;
  height: number;
  wait: number; // pixels of the part that waited
}

// Mark is a moment in a bar, a state of an event.
export type Mark = Pick<Box, "region" | "x" | "y" | "height">;

const font = "11px system-ui, -apple-system, 'Segoe UI', sans-serif";

// Boxes draws bars, the part of them that waited, and their names.
export class Boxes {
  colors!: Colors;
  showWaits = true;
  private ratio = 1;
  private readonly widths = new Map<string, number>();
  private hatch: CanvasPattern | null = null;
  private hatchOf = "";

  draw(c: CanvasRenderingContext2D, ratio: number, view: View, boxes: Box[], regions: Head["regions"]): void {
    this.ratio = ratio;
    let style = "";
    for (const b of boxes) {
      const fill = this.colors.css[b.region]!;
      if (fill !== style) c.fillStyle = style = fill;
      const x = Math.max(b.x, -2);
      const end = Math.min(b.x + b.width, view.width + 2);
      c.fillRect(x, b.y, Math.max(end - x - (b.width > 4 ? 1 : 0), 1 / this.ratio), b.height);
    }
    if (this.showWaits) this.waits(c, view, boxes);
    c.font = font;
    c.textBaseline = "middle";
    style = "";
    for (const b of boxes) {
      const x = Math.max(b.x, 0);
      const room = Math.min(b.x + b.width, view.width) - x - 8;
      if (room < 16 || b.height < 12) continue;
      const text = this.fitting(c, regions[b.region]!.name, room);
      if (text === "") continue;
      const ink = this.colors.text[b.region]!;
      if (ink !== style) c.fillStyle = style = ink;
      c.fillText(text, x + 4, b.y + b.height / 2 + 0.5);
    }
  }

  // mark draws marks as lines with a head, in contrast to their bar.
  mark(c: CanvasRenderingContext2D, marks: Mark[]): void {
    for (const m of marks) {
      c.fillStyle = this.colors.paper;
      c.fillRect(m.x - 2, m.y, 4, m.height);
      c.fillStyle = this.colors.css[m.region]!;
      c.fillRect(m.x - 1, m.y, 2, m.height);
      c.fillRect(m.x - 3, m.y, 6, 3);
    }
  }

  // waits hatches the part of a bar that was waiting.
  private waits(c: CanvasRenderingContext2D, view: View, boxes: Box[]): void {
    const key = this.colors.wait + this.ratio;
    if (this.hatchOf !== key) {
      this.hatch = this.makeHatch(c);
      this.hatchOf = key;
    }
    for (const b of boxes) {
      if (b.wait <= 0 || this.colors.faded[b.region] === 1) continue;
      const x = Math.max(b.x, -2);
      const end = Math.min(b.x + Math.min(b.wait, b.width), view.width + 2);
      if (end <= x) continue;
      if (b.wait < 4 || !this.hatch) {
        c.fillStyle = this.colors.wait;
        c.fillRect(x, b.y, Math.max(end - x, 1 / this.ratio), b.height);
        continue;
      }
      c.fillStyle = this.hatch;
      c.fillRect(x, b.y, end - x, b.height);
      c.fillStyle = this.colors.wait;
      c.fillRect(x, b.y + b.height - 3, end - x, 3);
    }
  }

  private makeHatch(c: CanvasRenderingContext2D): CanvasPattern | null {
    const size = 8;
    const tile = document.createElement("canvas");
    tile.width = tile.height = size * this.ratio;
    const t = tile.getContext("2d")!;
    t.scale(this.ratio, this.ratio);
    t.strokeStyle = this.colors.wait;
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

  // fitting returns as much of a name as fits.
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
