// SPDX-License-Identifier: Apache-2.0
// Canvases.

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
