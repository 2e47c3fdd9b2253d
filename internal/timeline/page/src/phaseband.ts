// SPDX-License-Identifier: Apache-2.0
// The phases that the application marked, as a second ruler: each from its first rank's begin to its last rank's end.

import { sized } from "./canvas";
import { byId } from "./dom";
import { firstAfter } from "./bounds";
import * as f from "./format";
import type { Phase } from "./head";
import type { State } from "./state";

const line = 18; // pixels of a depth

export class PhaseBand {
  private readonly canvas = byId<HTMLCanvasElement>("phases");
  private readonly depths: Phase[][];
  private readonly begins: Float64Array[]; // of the same
  chosen: Phase[] = []; // that are marked
  drawn = 0; // phases in the last picture
  onChoose: (phase: Phase, second: boolean) => void = () => {};

  constructor(private readonly state: State) {
    const phases = state.store.head.phases ?? [];
    this.depths = [0, 1].map((d) => phases.filter((p) => p.depth === d)).filter((list) => list.length > 0);
    this.begins = this.depths.map((list) => Float64Array.from(list, (p) => p.from));
    const { canvas } = this;
    byId("phase-bar").hidden = this.depths.length === 0;
    byId("phase-bar").style.height = canvas.style.height = `${this.height}px`;
    const at = (e: MouseEvent) => this.at(e.offsetX, e.offsetY);
    canvas.addEventListener("click", (e) => {
      const p = at(e);
      if (p) this.onChoose(p, e.shiftKey);
    });
    canvas.addEventListener("dblclick", (e) => {
      const p = at(e);
      if (p) state.jump(p.from - 0.02 * (p.to - p.from), p.to + 0.02 * (p.to - p.from));
    });
    canvas.addEventListener("mousemove", (e) => {
      const p = at(e);
      canvas.title = p ? `${p.name}: ${f.time(p.to - p.from)}, ${f.plural(p.count, "rank", "ranks")}, mean ${f.time(p.time / p.count)}` : "";
    });
  }

  // at returns the phase at a point; of overlapping ones, the one that began last.
  at(x: number, y: number): Phase | undefined {
    const list = this.depths[Math.floor(y / line)] ?? [];
    const t = this.state.view.time(x);
    for (let i = list.length - 1; i >= 0; i--) if (list[i]!.from <= t && t <= list[i]!.to) return list[i];
    return undefined;
  }

  get height(): number {
    return this.depths.length * line;
  }

  draw(): void {
    if (this.height === 0) return;
    const { c } = sized(this.canvas, this.state.view.width, this.height);
    c.clearRect(0, 0, this.state.view.width, this.height);
    this.paint(c);
  }

  // paint draws the phases in the picture.
  paint(c: CanvasRenderingContext2D): void {
    const { view, colors } = this.state;
    this.drawn = 0;
    c.font = "11px system-ui, -apple-system, 'Segoe UI', sans-serif";
    c.textBaseline = "middle";
    this.depths.forEach((list, depth) => {
      let until = -1; // pixels that are occupied
      const last = firstAfter(this.begins[depth]!, view.to);
      for (let i = 0; i < last; i++) {
        const p = list[i]!;
        if (p.to < view.from) continue;
        const [a, b] = [Math.max(-2, view.x(p.from)), Math.min(view.width + 2, view.x(p.to))];
        this.drawn++;
        if (b - until < 1) continue;
        until = b;
        c.fillStyle = this.chosen.includes(p) ? colors.phaseChosen : colors.phase[i % 2]!;
        c.fillRect(a, depth * line + 1, Math.max(1, b - a - (b - a > 3 ? 1 : 0)), line - 2);
        const own = p.name.split(" / ").at(-1)!;
        if (c.measureText(own).width + 8 > b - a) continue;
        c.fillStyle = colors.ink;
        c.fillText(own, Math.max(a, 0) + 4, depth * line + line / 2);
      }
    });
  }
}
