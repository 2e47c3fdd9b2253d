// SPDX-License-Identifier: Apache-2.0
// The ruler above the picture, and the overview of the whole run.

import { sized } from "./canvas";
import { byId } from "./dom";
import * as f from "./format";
import { Painter } from "./paint";
import type { Range } from "./rangesums";
import type { Store } from "./store";
import type { Colors } from "./theme";
import { View } from "./view";

const font = "11px system-ui, -apple-system, 'Segoe UI', sans-serif";

const height = 26;

export class Ruler {
  private readonly canvas = byId<HTMLCanvasElement>("ruler");
  constructor(private readonly store: Store, private readonly view: View) {}

  // draw draws the ruler and returns the positions of its ticks for the grid.
  draw(colors: Colors, range: Range | undefined): number[] {
    const { c } = sized(this.canvas, this.view.width, height);
    c.clearRect(0, 0, this.view.width, height);
    return this.paint(c, colors, range);
  }

  // paint draws it without clearing.
  paint(c: CanvasRenderingContext2D, colors: Colors, range: Range | undefined): number[] {
    if (range) {
      c.fillStyle = colors.range;
      const a = this.view.x(range.from);
      c.fillRect(a, 0, this.view.x(range.to) - a, height);
    }
    const { base, unit, step, at } = marks(this.view);
    c.font = font;
    c.textBaseline = "middle";
    const lead = base > 0 ? f.onRuler(base, unit) + " +" : "";
    const room = lead ? c.measureText(lead).width + 14 : 0;
    for (const t of at) {
      const x = this.view.x(t + base);
      c.fillStyle = colors.faint;
      c.fillRect(Math.round(x), height - 7, 1, 7);
      if (x + 4 < room) continue;
      c.fillText(f.onRuler(t, step), x + 4, height / 2 - 2);
    }
    if (lead) {
      c.fillStyle = colors.ink;
      c.fillText(lead, 6, height / 2 - 2);
    }
    for (const m of this.store.head.markers) {
      const x = this.view.x(m.time);
      if (x < -4 || x > this.view.width + 4) continue;
      c.fillStyle = /high|medium/i.test(m.severity) ? colors.wait : colors.faint;
      c.beginPath();
      c.moveTo(x - 4, height - 9);
      c.lineTo(x + 4, height - 9);
      c.lineTo(x, height - 2);
      c.fill();
    }
    return at.map((t) => this.view.x(t + base));
  }
}

// marks returns the ticks of a ruler. If small steps are far into the run, they count from a round time, which is shown
// at the left.
export function marks(view: View): { base: number; unit: number; step: number; at: number[] } {
  const span = view.to - view.from;
  const unit = 10 ** Math.ceil(Math.log10(span));
  const base = span < view.from / 500 ? Math.floor(view.from / unit) * unit : 0;
  return { base, unit, ...f.ticks(view.from - base, view.to - base, view.width, 96) };
}

// Overview shows all rows of the whole run, one line or less each, and marks the visible part.
export class Overview {
  readonly canvas = byId<HTMLCanvasElement>("minimap");
  private picture: HTMLCanvasElement | undefined;
  private key = "";
  readonly whole: View;

  constructor(private readonly store: Store, private readonly view: View) {
    this.whole = new View(store.head.duration, store.head.begin);
  }

  draw(colors: Colors, paletteKey: string): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const { c, ratio } = sized(this.canvas, width, height);
    this.whole.width = width;
    const key = `${width} ${height} ${ratio} ${paletteKey}`;
    if (key !== this.key || !this.picture) {
      this.key = key;
      this.picture = document.createElement("canvas");
      this.paint(this.picture, width, height, ratio, colors);
    }
    c.clearRect(0, 0, width, height);
    c.drawImage(this.picture, 0, 0, width, height);
    const a = Math.max(0, this.whole.x(this.view.from));
    const b = Math.min(width, this.whole.x(this.view.to));
    c.fillStyle = colors.mode === "dark" ? "rgba(10,12,16,.62)" : "rgba(238,240,244,.78)";
    c.fillRect(0, 0, a, height);
    c.fillRect(b, 0, width - b, height);
    c.fillStyle = colors.collective;
    const w = Math.max(2, b - a);
    c.fillRect(a, 0, w, 1.5);
    c.fillRect(a, height - 1.5, w, 1.5);
    c.fillRect(a, 0, 2, height);
    c.fillRect(a + w - 2, 0, 2, height);
    this.canvas.setAttribute("aria-valuenow", String(Math.round((100 * Math.max(0, this.view.from - this.view.begin)) / Math.max(1, this.view.duration - this.view.begin))));
    this.canvas.setAttribute("aria-valuetext", `${f.time(Math.max(0, this.view.from))} to ${f.time(Math.min(this.store.head.duration, this.view.to))}`);
  }

  private paint(canvas: HTMLCanvasElement, width: number, height: number, ratio: number, colors: Colors): void {
    const { c } = sized(canvas, width, height);
    const rows = this.store.head.rows;
    const wanted = rows.some((r) => r.kind === "rank") ? "rank" : rows.some((r) => r.kind === "stream") ? "stream" : "thread";
    const lanes = this.store.lanes.filter((l) => l.depth === 0 && rows[l.row]!.kind === wanted);
    const painter = new Painter();
    painter.colors = colors;
    painter.summary(c, ratio, this.whole, lanes, this.store, 5, height - 10);
  }
}

