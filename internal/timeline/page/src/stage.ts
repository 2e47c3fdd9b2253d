// SPDX-License-Identifier: Apache-2.0
// The painting loop: draws the state after changes, at most once per frame of the screen.

import { sized } from "./canvas";
import { byId } from "./dom";
import { Lines, type Drawn } from "./lines";
import { Painter, type Painted } from "./paint";
import { curveGap } from "./rows";
import { PathLine } from "./path";
import type { PhaseBand } from "./phaseband";
import { Overview, Ruler } from "./ruler";
import type { RankMap } from "./rankmap";
import type { RankNames } from "./ranknames";
import type { Pointed, State } from "./state";
import { Status } from "./status";
import type { Tree } from "./tree";

export class Stage {
  painted: Painted = { boxes: [], marks: [], pixels: 0, coarse: 0 };
  drawn: Drawn = { parents: 0, collectives: 0, transfers: 0, crowded: [] };
  strong: Drawn = { parents: 0, collectives: 0, transfers: 0, crowded: [] }; // of what is selected
  readonly frames: number[] = []; // ms that the last pictures took to draw
  readonly lines: Lines;
  readonly path: PathLine;
  private readonly base = byId<HTMLCanvasElement>("base");
  private readonly over = byId<HTMLCanvasElement>("over");
  private readonly painter = new Painter();
  readonly ruler: Ruler;
  private readonly overview: Overview;
  private readonly status: Status;
  private due = false;
  private ticks: number[] = []; // of the ruler, pixels
  onDrawn: () => void = () => {};

  constructor(
    private readonly state: State,
    private readonly tree: Tree,
    private readonly ranks: RankMap,
    private readonly names: RankNames,
    private readonly phases: PhaseBand,
  ) {
    const { store, rows, view } = state;
    this.lines = new Lines(store, rows, view);
    this.path = new PathLine(store, view, this.lines);
    this.ruler = new Ruler(store, view);
    this.overview = new Overview(store, view);
    this.status = new Status(state);
    state.onChange = store.onLoad = () => this.invalidate();
    state.onMark = () => this.drawOver();
    new ResizeObserver(() => this.resize()).observe(byId("picture"));
  }

  resize(): void {
    const box = byId("picture").getBoundingClientRect();
    this.state.resize(box.width, box.height);
  }

  // invalidate requests a new picture.
  invalidate(): void {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.draw();
    });
  }

  draw(): void {
    const begin = performance.now();
    const { store, view, colors } = this.state;
    store.frame();
    const { c, ratio } = sized(this.base, view.width, view.height);
    this.ticks = this.ruler.draw(colors, this.state.range);
    this.picture(c, ratio);
    this.drawOver();
    this.phases.draw();
    if (!this.ranks.on) this.tree.draw();
    this.names.draw();
    this.overview.draw(colors, this.state.colored);
    this.status.draw(this.painted, this.drawn);
    this.frames.push(performance.now() - begin);
    if (this.frames.length > 600) this.frames.shift();
    this.onDrawn();
  }

  // paint draws the whole picture into another canvas.
  paint(c: CanvasRenderingContext2D, ratio: number): void {
    this.picture(c, ratio);
    this.marks(c);
  }

  // picture draws bars and lines, or all ranks.
  private picture(c: CanvasRenderingContext2D, ratio: number): void {
    const { store, view, rows, colors, shown } = this.state;
    this.painter.colors = this.lines.colors = this.path.colors = colors;
    this.painter.showWaits = shown.waits;
    if (this.ranks.on) {
      this.painted = { boxes: [], marks: [], pixels: 0, coarse: 0 };
      this.ranks.draw(c, ratio);
      this.painted.coarse = this.ranks.heat.coarse;
    } else this.painted = this.painter.paint(c, ratio, view, rows, store, this.state.focus);
    c.fillStyle = colors.grid;
    for (const x of this.ticks) c.fillRect(Math.round(x), 0, 1, view.height);
    this.drawn = this.ranks.on ? { parents: 0, collectives: 0, transfers: 0, crowded: [] } : this.lines.all(c, this.painted.boxes, shown);
    this.path.draw(c, this.ranks.on ? this.ranks.rows : undefined);
    this.painted.coarse += this.path.coarse;
  }

  // drawOver draws the selection and the object under the pointer above the picture.
  drawOver(): void {
    const { view } = this.state;
    const { c } = sized(this.over, view.width, view.height);
    c.clearRect(0, 0, view.width, view.height);
    this.marks(c);
  }

  private marks(c: CanvasRenderingContext2D): void {
    const { view, range, selected, hovered, pointed, colors } = this.state;
    if (range) {
      const a = view.x(range.from);
      const b = view.x(range.to);
      c.fillStyle = colors.range;
      c.fillRect(a, 0, b - a, view.height);
      c.fillStyle = colors.collective;
      c.fillRect(a, 0, 1, view.height);
      c.fillRect(b, 0, 1, view.height);
    }
    this.lines.colors = colors;
    if (this.ranks.on) return;
    this.strong = selected ? this.lines.family(c, selected) : { parents: 0, collectives: 0, transfers: 0, crowded: [] };
    if (hovered >= 0) this.outline(c, hovered, 1);
    if (selected) this.outline(c, selected.bar, 2);
    if (pointed) this.dot(c, pointed);
  }

  // dot marks the value of a curve under the pointer.
  private dot(c: CanvasRenderingContext2D, { curve, time, value }: Pointed): void {
    const { rows, view, store, colors } = this.state;
    const item = rows.of(curve.row);
    if (value === undefined || !Number.isFinite(value) || item?.row !== curve.row) return;
    c.fillStyle = colors.metric.css;
    c.strokeStyle = colors.paper;
    c.lineWidth = 1.5;
    c.beginPath();
    c.arc(view.x(time), item.y - view.top + curveGap + store.curves.place(curve, value) * (item.height - 2 * curveGap), 3.5, 0, 2 * Math.PI);
    c.fill();
    c.stroke();
  }

  private outline(c: CanvasRenderingContext2D, bar: number, width: number): void {
    const { rows, view, store, colors } = this.state;
    const b = store.peekBar(bar);
    const item = b && rows.of(b.lane.row);
    if (!b || !item) return;
    const at = item.lanes.find((l) => l.lane === b.lane);
    const x = Math.max(-4, view.x(b.start));
    const end = Math.min(view.width + 4, view.x(b.start + b.length));
    const y = item.y - view.top + (at?.y ?? 4);
    c.lineWidth = width;
    c.strokeStyle = colors.select;
    c.strokeRect(x - width / 2, y - width / 2, Math.max(end - x, 2) + width - (end - x > 4 ? 1 : 0), (at?.height ?? item.height - 8) + width);
  }
}
