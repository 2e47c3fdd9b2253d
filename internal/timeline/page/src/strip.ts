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
  private sums = new Float32Array(0); // by pixel: red, green, blue, and their weight
  private touched = false;
  private ratio = 1;
  private lines: { y: number; height: number }[] = [];

  begin(room: number, ratio: number): void {
    this.room = room;
    this.ratio = ratio;
    this.pixels = 0;
    if (this.sums.length !== 4 * room) {
      this.sums = new Float32Array(4 * room);
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
    const { rgb, waitRGB, faded } = this.colors;
    const w = wait > 0 && this.showWaits && faded[region] === 0 ? weight * wait : 0;
    const { sums } = this;
    const [to, from, rest] = [4 * at, 3 * region, weight - w];
    sums[to]! += rgb[from]! * rest + waitRGB[0] * w;
    sums[to + 1]! += rgb[from + 1]! * rest + waitRGB[1] * w;
    sums[to + 2]! += rgb[from + 2]! * rest + waitRGB[2] * w;
    sums[to + 3]! += weight;
    this.touched = true;
    this.pixels++;
  }

  // line turns the sums into a line of the strip.
  line(y: number, height: number): void {
    if (!this.touched || !this.image) return;
    this.touched = false;
    const { sums } = this;
    const base = this.lines.length * this.room;
    for (let i = 0; i < this.room; i++) {
      const w = sums[4 * i + 3]!;
      const alpha = Math.round(255 * Math.min(1, 0.35 + 0.65 * w));
      const f = 1 / w;
      this.words[base + i] = w === 0 ? 0 : (alpha << 24) | ((sums[4 * i + 2]! * f) << 16) | ((sums[4 * i + 1]! * f) << 8) | (sums[4 * i]! * f);
    }
    this.sums.fill(0);
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
