// SPDX-License-Identifier: Apache-2.0
// Canvases, and points of the picture in CSS pixels.

// sized makes a canvas as fine as the screen.
export function sized(canvas: HTMLCanvasElement, width: number, height: number): { c: CanvasRenderingContext2D; ratio: number } {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const w = Math.max(1, Math.round(width * ratio));
  const h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const c = canvas.getContext("2d")!;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { c, ratio };
}

export interface Point {
  x: number;
  y: number;
}

// distance is the distance of a point from the line between two others.
export function distance(at: Point, from: Point, to: Point): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const along = Math.max(0, Math.min(1, ((at.x - from.x) * dx + (at.y - from.y) * dy) / Math.max(1, dx * dx + dy * dy)));
  return Math.hypot(at.x - from.x - along * dx, at.y - from.y - along * dy);
}

// arrowHead returns the two ends of an arrow's head; undefined: the line is too short.
export function arrowHead(from: Point, to: Point): [Point, Point] | undefined {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  if (length < 8) return undefined;
  const [ux, uy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const end = (side: number) => ({ x: to.x - 5 * ux + side * 2.5 * uy, y: to.y - 5 * uy - side * 2.5 * ux });
  return [end(-1), end(1)];
}
