// SPDX-License-Identifier: Apache-2.0
// Bars smaller than a pixel: summed up by column, a line for each lane.

import type { Colors } from "./theme";

// Strip is a picture of lines, each one device pixel high, which are stretched when they are drawn.
export class Strip {
  colors!: Colors;
  showWaits = true;
  room = 0; // device pixels
  pixels = 0; // entries summed up
  private readonly strip = document.createElement("canvas");
  private readonly stripContext = this.strip.getContext("2d", { willReadFrequently: false })!;
  private image: ImageData | undefined;
  private words: Uint32Array = new Uint32Array(0);
  private red = new Float32Array(0);
  private green = new Float32Array(0);
  private blue = new Float32Array(0);
  private weight = new Float32Array(0);
  private touched = false;
  private ratio = 1;
  private lines: { y: number; height: number }[] = [];

  begin(room: number, ratio: number): void {
    this.room = room;
    this.ratio = ratio;
    this.pixels = 0;
    if (this.weight.length !== room) {
      this.red = new Float32Array(room);
      this.green = new Float32Array(room);
      this.blue = new Float32Array(room);
      this.weight = new Float32Array(room);
      this.image = undefined;
    }
    this.lines = [];
  }

  // prepare allocates lines.
  prepare(lines: number): void {
    if (!this.image || this.image.height < lines) {
      const height = Math.max(lines, this.image ? this.image.height * 2 : 64);
      this.strip.width = this.room;
      this.strip.height = height;
      this.image = new ImageData(this.room, height);
      this.words = new Uint32Array(this.image.data.buffer);
    }
  }

  // point adds a bar smaller than a pixel. Even very short ones stay visible.
  point(x: number, weight: number, region: number, wait: number): void {
    const at = x | 0;
    if (x < 0 || at >= this.room) return;
    this.deposit(at, Math.max(weight, 0.04), region, wait);
  }

  spread(x0: number, x1: number, region: number, busy: number, wait: number): void {
    const a = Math.max(0, x0);
    const b = Math.min(this.room, x1);
    for (let at = Math.floor(a); at < b; at++) this.deposit(at, Math.max((Math.min(at + 1, b) - Math.max(at, a)) * busy, 0.04), region, wait);
  }

  deposit(at: number, weight: number, region: number, wait: number): void {
    const rgb = this.colors.rgb;
    const i = 3 * region;
    if (wait > 0 && this.showWaits && this.colors.faded[region] === 0) {
      const [r, g, b] = this.colors.waitRGB;
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
    this.pixels++;
  }

  // line turns the sums into a line of the strip.
  line(y: number, height: number): void {
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

  // blit draws the lines at their places.
  blit(c: CanvasRenderingContext2D): void {
    if (!this.image || this.lines.length === 0) return;
    this.stripContext.putImageData(this.image, 0, 0, 0, 0, this.room, this.lines.length);
    c.imageSmoothingEnabled = false;
    this.lines.forEach((l, i) => c.drawImage(this.strip, 0, i, this.room, 1, 0, l.y, this.room / this.ratio, l.height));
  }
}
