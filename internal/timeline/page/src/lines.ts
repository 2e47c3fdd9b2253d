// SPDX-License-Identifier: Apache-2.0
// Lines between bars: from parents to children, through the parts of a collective, along messages and transfers.

import { placesOf, type Instance } from "./blocks";
import { lowerBound } from "./bounds";
import type { Box } from "./boxes";
import type { Family } from "./family";
import { arrowHead, distance, type Point } from "./canvas";
import type { Rows } from "./rows";
import type { Shown } from "./state";
import type { Lane, Store } from "./store";
import type { Colors } from "./theme";
import type { View } from "./view";

interface Course {
  bars: number[]; // from top to bottom
  heights: Float64Array; // of the bars, from the top of all rows
}

// Courses are the positions of collectives' parts among the shown rows. A collective can have ten thousand parts, each
// with its bar in a block of its own, so only those in the picture are unpacked.
class Courses {
  private items: unknown; // layout for which the courses hold
  private known = new WeakMap<Instance, Course | false>();

  constructor(private readonly store: Store, private readonly rows: Rows) {}

  // height is the distance of a lane, or of the closed group around it, from the top of all rows, at its middle.
  height(lane: Lane): number | undefined {
    const item = this.rows.of(lane.row);
    if (!item) return undefined;
    const at = item.lanes.find((l) => l.lane === lane);
    return item.y + (at ? at.y + at.height / 2 : item.height / 2);
  }

  // between returns a collective's parts between two heights, and one above and below; undefined: one is not
  // shown.
  between(i: Instance, top: number, bottom: number): { bar: number; y: number }[] | undefined {
    const course = this.of(i);
    if (!course) return undefined;
    const { bars, heights } = course;
    const first = Math.max(0, lowerBound(heights, top) - 1);
    return bars.slice(first, lowerBound(heights, bottom) + 1).map((bar, k) => ({ bar, y: heights[first + k]! }));
  }

  private of(i: Instance): Course | false {
    if (this.items !== this.rows.items) {
      this.items = this.rows.items;
      this.known = new WeakMap();
    }
    let course = this.known.get(i);
    if (course === undefined) this.known.set(i, (course = this.make(i)));
    return course;
  }

  private make(i: Instance): Course | false {
    const all: [number, number][] = [];
    for (const { bar } of i.parts) {
      const y = this.height(this.store.laneOf(bar));
      if (y === undefined) return false;
      all.push([bar, y]);
    }
    all.sort((p, q) => p[1] - q[1]);
    return { bars: all.map((p) => p[0]), heights: Float64Array.from(all, (p) => p[1]) };
  }
}

// Limits on lines of a kind in a picture: more would hide it. The page states which kinds are incomplete.
const most = { parents: 400, collectives: 300, transfers: 1500 };

export interface Drawn {
  parents: number;
  collectives: number; // and messages
  transfers: number;
  crowded: string[]; // kinds with more lines than the limit
}

// Wire is a transfer in the picture.
export interface Wire {
  row: number;
  index: number; // among the row's transfers
  from: Point;
  to: Point;
}

export class Lines {
  colors!: Colors;
  wires: Wire[] = [];
  private readonly courses: Courses;
  constructor(private readonly store: Store, private readonly rows: Rows, private readonly view: View) {
    this.courses = new Courses(store, rows);
  }

  // height is the position of a lane in the picture: the middle of its bars, or of the closed group around it.
  height(lane: Lane): number | undefined {
    const y = this.courses.height(lane);
    return y === undefined ? undefined : y - this.view.top;
  }

  // rowHeight is the position of a row in the picture, or of the closed group around it.
  rowHeight(row: number): number | undefined {
    const item = this.rows.of(row);
    return item && item.y - this.view.top + item.height / 2;
  }

  private inside(p: Point, q: Point): boolean {
    const v = this.view;
    return Math.max(p.x, q.x) >= -50 && Math.min(p.x, q.x) <= v.width + 50 && Math.max(p.y, q.y) >= 0 && Math.min(p.y, q.y) <= v.height;
  }

  // all draws all lines in the picture.
  all(c: CanvasRenderingContext2D, boxes: Box[], shown: Shown): Drawn {
    const drawn: Drawn = { parents: 0, collectives: 0, transfers: 0, crowded: [] };
    this.wires = [];
    if (shown.transfers) this.transfers(c, drawn);
    if (shown.collectives) this.collectives(c, boxes, drawn);
    if (shown.parents) this.parents(c, boxes, drawn);
    return drawn;
  }

  private parents(c: CanvasRenderingContext2D, boxes: Box[], drawn: Drawn): void {
    const wide = boxes.filter((b) => b.width >= 2);
    if (wide.length > 6 * most.parents) {
      drawn.crowded.push("calls to what they caused");
      return;
    }
    const pairs: [Point, Point][] = [];
    for (const b of wide) {
      const pair = this.toParent(b.bar);
      if (pair) pairs.push(pair);
    }
    if (pairs.length > most.parents) {
      drawn.crowded.push("calls to what they caused");
      return;
    }
    c.strokeStyle = this.colors.parent;
    c.globalAlpha = 0.4;
    c.lineWidth = 1;
    c.beginPath();
    for (const [p, q] of pairs) drawn.parents += this.curve(c, p, q);
    c.stroke();
    c.globalAlpha = 1;
  }

  // toParent returns the ends of the line from a bar's parent to the bar; undefined: there is none to draw.
  private toParent(bar: number): [Point, Point] | undefined {
    const { lane, chunk, at } = this.store.placeOf(bar);
    const parent = this.store.notes(lane, chunk).value?.parent[at] ?? -1;
    return parent < 0 ? undefined : this.between(parent, bar);
  }

  private between(parent: number, bar: number): [Point, Point] | undefined {
    const p = this.store.peekBar(parent);
    const b = this.store.peekBar(bar);
    if (!p || !b || p.lane.row === b.lane.row) return undefined;
    const from = this.height(p.lane);
    const to = this.height(b.lane);
    if (from === undefined || to === undefined || from === to) return undefined;
    const at = Math.min(Math.max(b.start, p.start), p.start + p.length);
    return [{ x: this.view.x(at), y: from }, { x: this.view.x(b.start), y: to }];
  }

  private curve(c: CanvasRenderingContext2D, p: Point, q: Point): number {
    if (!this.inside(p, q)) return 0;
    c.moveTo(p.x, p.y);
    const middle = (p.y + q.y) / 2;
    c.bezierCurveTo(p.x, middle, q.x, middle, q.x, q.y);
    return 1;
  }

  private collectives(c: CanvasRenderingContext2D, boxes: Box[], drawn: Drawn): void {
    const seen = new Map<number, Instance>();
    let pending = 0;
    for (const b of boxes) {
      const lane = this.store.laneOf(b.bar);
      if (this.store.head.rows[lane.row]!.operations.count === 0 || b.width < 2) continue;
      if (++pending > 8 * most.collectives) break;
      for (const n of this.instancesOf(lane, b.bar)) {
        if (seen.has(n)) continue;
        const i = this.store.peekInstance(n);
        if (i) seen.set(n, i);
      }
      if (seen.size > most.collectives) break;
    }
    if (seen.size > most.collectives || pending > 8 * most.collectives) {
      drawn.crowded.push("collectives and messages");
      return;
    }
    for (const message of [false, true]) {
      c.strokeStyle = message ? this.colors.message : this.colors.collective;
      c.globalAlpha = message ? 0.7 : 0.45;
      c.lineWidth = 1;
      c.beginPath();
      for (const i of seen.values()) if (i.message === message) drawn.collectives += this.through(c, i);
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  // instancesOf lists the operations of a bar that are unpacked.
  instancesOf(lane: Lane, bar: number): number[] {
    const o = this.store.operations(lane.row, bar)?.value;
    return o ? placesOf(o, bar).map((i) => o.instance[i]!) : [];
  }

  // through draws a line through the begins of a collective's parts, or from a message's sender to its receiver.
  private through(c: CanvasRenderingContext2D, i: Instance): number {
    const { top, height } = this.view;
    const parts = i.message ? i.parts.map((p) => ({ bar: p.bar, y: this.courses.height(this.store.laneOf(p.bar)) })) : (this.courses.between(i, top, top + height) ?? []);
    const points: Point[] = [];
    for (const [n, part] of parts.entries()) {
      const b = this.store.peekBar(part.bar);
      if (!b || part.y === undefined) return 0;
      // A message goes from the sender's begin to the receiver's end.
      points.push({ x: this.view.x(i.message && n === 1 ? b.start + b.length : b.start), y: part.y - top });
    }
    if (points.length < 2) return 0;
    let n = 0;
    for (let k = 1; k < points.length; k++) {
      const [p, q] = [points[k - 1]!, points[k]!];
      if (!this.inside(p, q)) continue;
      c.moveTo(p.x, p.y);
      c.lineTo(q.x, q.y);
      n = 1;
      if (i.message) arrow(c, p, q);
    }
    return n;
  }

  private transfers(c: CanvasRenderingContext2D, drawn: Drawn): void {
    const { from, to } = this.view;
    const leaf = this.store.head.leaf;
    const parts: { row: number; first: number; last: number }[] = [];
    let n = 0;
    for (const [row, levels] of this.store.transferLevels) {
      const level = levels[0]!;
      const first = lowerBound(level.end, from);
      const last = lowerBound(level.start, to);
      if (last <= first) continue;
      n += (last - first) * leaf;
      if (n > 4 * most.transfers) break;
      parts.push({ row, first: first * leaf, last: Math.min(last * leaf, this.store.head.rows[row]!.transfers.count) });
    }
    if (n > 4 * most.transfers) {
      drawn.crowded.push("transfers");
      return;
    }
    c.strokeStyle = this.colors.transfer;
    c.globalAlpha = n < most.transfers / 3 ? 0.75 : 0.4;
    c.lineWidth = 1;
    c.beginPath();
    const chunk = this.store.head.chunk;
    for (const part of parts) {
      const y = this.rowHeight(part.row);
      if (y === undefined) continue;
      for (let at = part.first; at < part.last && drawn.transfers < most.transfers; at++) {
        const t = this.store.transfers(part.row, Math.floor(at / chunk)).value;
        if (!t) {
          at += chunk - (at % chunk) - 1;
          continue;
        }
        const i = at % chunk;
        const end = t.start[i]! + Math.max(0, t.length[i]!);
        const other = t.row[i]! < 0 ? undefined : this.rowHeight(t.row[i]!);
        if (end < from || t.start[i]! > to || other === undefined || other === y) continue;
        const p = { x: this.view.x(t.start[i]!), y };
        const q = { x: this.view.x(end), y: other };
        if (!this.inside(p, q)) continue;
        c.moveTo(p.x, p.y);
        c.lineTo(q.x, q.y);
        arrow(c, p, q);
        this.wires.push({ row: part.row, index: at, from: p, to: q });
        drawn.transfers++;
      }
    }
    c.stroke();
    c.globalAlpha = 1;
    if (drawn.transfers >= most.transfers) drawn.crowded.push("transfers");
  }

  // wireAt returns the transfer whose line is nearest to a point, if any is near.
  wireAt(x: number, y: number): Wire | undefined {
    let best: Wire | undefined;
    let least = 5;
    for (const w of this.wires) {
      const d = distance({ x, y }, w.from, w.to);
      if (d < least) {
        least = d;
        best = w;
      }
    }
    return best;
  }

  // family emphasizes the lines of one bar: to its parents, its children, and the parts of its operations.
  family(c: CanvasRenderingContext2D, family: Family): Drawn {
    const drawn: Drawn = { parents: 0, collectives: 0, transfers: 0, crowded: [] };
    const stroke = (color: string, draw: () => void) => {
      for (const [width, style] of [[4, this.colors.paper], [1.8, color]] as const) {
        c.beginPath();
        c.lineWidth = width;
        c.strokeStyle = style;
        c.globalAlpha = width > 2 ? 0.75 : 1;
        draw();
        c.stroke();
      }
      c.globalAlpha = 1;
    };
    stroke(this.colors.parent, () => {
      drawn.parents = 0;
      const up = [family.bar, ...family.parents];
      for (let i = 1; i < up.length; i++) {
        const pair = this.between(up[i]!, up[i - 1]!);
        if (pair) drawn.parents += this.curve(c, ...pair);
      }
      for (const kid of family.children.slice(0, most.parents)) {
        const pair = this.between(family.bar, kid);
        if (pair) drawn.parents += this.curve(c, ...pair);
      }
    });
    for (const message of [false, true]) {
      let n = 0;
      stroke(message ? this.colors.message : this.colors.collective, () => {
        n = 0;
        for (const i of family.instances.slice(0, 64)) if (i.message === message) n += this.through(c, i);
      });
      drawn.collectives += n;
    }
    return drawn;
  }
}

function arrow(c: CanvasRenderingContext2D, p: Point, q: Point): void {
  for (const end of arrowHead(p, q) ?? []) {
    c.moveTo(q.x, q.y);
    c.lineTo(end.x, end.y);
  }
}
