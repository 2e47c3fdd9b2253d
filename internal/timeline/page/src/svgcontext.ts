// SPDX-License-Identifier: Apache-2.0
// SVG output: the part of CanvasRenderingContext2D that the page uses. Lines, bars and texts stay vector graphics; what
// was summed up by pixel is an image.

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

// escaped escapes a text for SVG, without the characters that XML does not allow.
export function escaped(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "").replace(/[&<>"]/g, (c) => escapes[c]!);
}

const n = (v: number) => String(Math.round(v * 100) / 100);

// hatched replaces patterns: the part of an operation that was waiting.
const hatched = "url(#hatch)";

export class SvgContext {
  readonly out: string[] = [];
  fillStyle: string | CanvasPattern = "#000";
  strokeStyle = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "";
  textBaseline = "alphabetic";
  imageSmoothingEnabled = false;
  private path: string[] = [];
  private readonly real = document.createElement("canvas").getContext("2d")!; // for measuring

  private paint(): string {
    const fill = typeof this.fillStyle === "string" ? escaped(this.fillStyle) : hatched;
    return `fill="${fill}"${this.alpha()}`;
  }

  private alpha(): string {
    return this.globalAlpha < 1 ? ` opacity="${n(this.globalAlpha)}"` : "";
  }

  setTransform(): void {} // not needed without device pixels
  clearRect(): void {}

  fillRect(x: number, y: number, width: number, height: number): void {
    if (width > 0 && height > 0) this.out.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" ${this.paint()}/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.out.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" fill="none" stroke="${escaped(this.strokeStyle)}" stroke-width="${n(this.lineWidth)}"${this.alpha()}/>`);
  }

  beginPath(): void {
    this.path = [];
  }
  moveTo(x: number, y: number): void {
    this.path.push(`M${n(x)} ${n(y)}`);
  }
  lineTo(x: number, y: number): void {
    this.path.push(`L${n(x)} ${n(y)}`);
  }
  bezierCurveTo(a: number, b: number, c: number, d: number, x: number, y: number): void {
    this.path.push(`C${n(a)} ${n(b)} ${n(c)} ${n(d)} ${n(x)} ${n(y)}`);
  }
  // arc draws full circles only: the page draws no others.
  arc(x: number, y: number, r: number): void {
    this.path.push(`M${n(x - r)} ${n(y)}a${n(r)} ${n(r)} 0 1 0 ${n(2 * r)} 0a${n(r)} ${n(r)} 0 1 0 ${n(-2 * r)} 0`);
  }
  stroke(): void {
    if (this.path.length > 0) this.out.push(`<path d="${this.path.join("")}" fill="none" stroke="${escaped(this.strokeStyle)}" stroke-width="${n(this.lineWidth)}"${this.alpha()}/>`);
  }
  fill(): void {
    if (this.path.length > 0) this.out.push(`<path d="${this.path.join("")}" ${this.paint()}/>`);
  }

  measureText(text: string): TextMetrics {
    this.real.font = this.font;
    return this.real.measureText(text);
  }

  fillText(text: string, x: number, y: number): void {
    const size = /([\d.]+)px/.exec(this.font)?.[1] ?? "11";
    const bold = /^(bold|[6-9]00)\b/.test(this.font) ? ' font-weight="600"' : "";
    const base = this.textBaseline === "middle" ? ' dominant-baseline="central"' : this.textBaseline === "top" ? ' dominant-baseline="hanging"' : "";
    this.out.push(`<text x="${n(x)}" y="${n(y)}" font-size="${size}"${bold}${base} ${this.paint()}>${escaped(text)}</text>`);
  }

  createPattern(tile: CanvasImageSource, repeat: string): CanvasPattern | null {
    return this.real.createPattern(tile, repeat);
  }

  // drawImage draws a part of a canvas, or all of it.
  drawImage(image: HTMLCanvasElement, ...p: number[]): void {
    const [sx, sy, sw, sh, x, y, width, height] = (p.length >= 8 ? p : [0, 0, image.width, image.height, ...p]) as [number, number, number, number, number, number, number, number];
    const cut = document.createElement("canvas");
    cut.width = Math.max(1, Math.round(sw));
    cut.height = Math.max(1, Math.round(sh));
    cut.getContext("2d")!.drawImage(image, sx, sy, sw, sh, 0, 0, cut.width, cut.height);
    this.out.push(
      `<image x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" preserveAspectRatio="none" style="image-rendering:pixelated"${this.alpha()} href="${cut.toDataURL("image/png")}"/>`,
    );
  }
}

// hatch is the pattern that stands for waiting.
export function hatch(color: string): string {
  return `<pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse"><path d="M-1 9L9 -1M-5 5L5 -5M3 13L13 3" stroke="${escaped(color)}" stroke-width="1.7" stroke-opacity="0.7"/></pattern>`;
}
