// SPDX-License-Identifier: Apache-2.0
// The critical path as a line through the ranks that it visits.

import { lastAtMost } from "./bounds";
import type { Lines } from "./lines";
import type { RankRows } from "./rankrows";
import type { Store } from "./store";
import type { Colors } from "./theme";
import type { View } from "./view";

const near = 5; // pixels

// Part is a part of the path.
export interface Part {
  rank: number;
  what: number; // index into the head's list
  start: number;
  length: number;
}

// Run is a horizontal part of the line.
export interface Run {
  from: number;
  to: number;
  y: number;
  joined: boolean; // to the run before
}

// Runs joins consecutive parts into runs. Within a pixel the height with the most time counts.
export class Runs {
  readonly list: Run[] = [];
  private column = -1;
  private readonly times = new Map<number, number>();
  private broken = true;

  // add adds a part between two positions; y undefined: it is on no row.
  add(from: number, to: number, y: number | undefined): void {
    if (y === undefined) {
      this.flush();
      this.broken = true;
      return;
    }
    const column = Math.floor(from);
    if (to - from >= 1 || (this.column >= 0 && column !== this.column)) this.flush();
    if (to - from >= 1) return this.put(from, to, y);
    this.column = column;
    this.times.set(y, (this.times.get(y) ?? 0) + to - from);
  }

  flush(): void {
    if (this.column < 0) return;
    let best: number | undefined;
    for (const [y, time] of this.times) if (best === undefined || time > this.times.get(best)!) best = y;
    this.put(this.column, this.column + 1, best!);
    this.column = -1;
    this.times.clear();
  }

  private put(from: number, to: number, y: number): void {
    const last = this.list.at(-1);
    if (last && last.y === y && !this.broken) last.to = Math.max(last.to, to);
    else this.list.push({ from, to, y, joined: !this.broken });
    this.broken = false;
  }
}

export class PathLine {
  colors!: Colors;
  on = false;
  runs: Run[] = []; // of the last picture
  coarse = 0; // blocks that were not loaded yet
  private height: (rank: number, what: number) => number | undefined = () => undefined; // of the last picture
  private rows: Map<number, number>[] | undefined; // by communicator: rows by rank of the job

  constructor(private readonly store: Store, private readonly view: View, private readonly lines: Lines) {}

  // draw draws the visible path: in the picture of all ranks, or in the rows.
  draw(c: CanvasRenderingContext2D, ranks: RankRows | undefined): void {
    this.runs = [];
    this.coarse = 0;
    const { path } = this.store.head;
    if (!this.on || !path) return;
    const heights = new Map<number, number | undefined>();
    const of = (rank: number, what: number) => (ranks ? ranks.height * ((ranks.lineOf(rank) ?? NaN) + 0.5) : this.row(rank, what));
    const height = (rank: number, what: number) => {
      const key = rank * path.what.length + what;
      if (!heights.has(key)) {
        const y = rank < 0 ? undefined : of(rank, what);
        heights.set(key, y === undefined || Number.isNaN(y) ? undefined : y);
      }
      return heights.get(key);
    };
    this.height = height;
    const { view } = this;
    const runs = new Runs();
    for (let k = Math.max(0, lastAtMost(path.starts, view.from)); k < path.starts.length && path.starts[k]! < view.to; k++) {
      const s = this.store.segments(k).value;
      if (!s) {
        this.coarse++;
        runs.add(0, 0, undefined);
        continue;
      }
      for (let i = Math.max(0, lastAtMost(s.start, view.from)); i < s.start.length && s.start[i]! < view.to; i++) {
        const [from, to] = [view.x(s.start[i]!), view.x(s.start[i]! + s.length[i]!)];
        if (to >= 0) runs.add(Math.max(-8, from), Math.min(view.width + 8, to), height(s.rank[i]!, s.what[i]!));
      }
    }
    runs.flush();
    this.runs = runs.list;
    this.stroke(c);
  }

  // at returns the part of the path that is drawn near a point.
  at(x: number, y: number): Part | undefined {
    const { path } = this.store.head;
    if (!this.on || !path) return undefined;
    const time = this.view.time(x);
    const k = lastAtMost(path.starts, time);
    const s = k < 0 ? undefined : this.store.segments(k).value;
    const i = s ? lastAtMost(s.start, time) : -1;
    if (!s || i < 0 || time > s.start[i]! + s.length[i]!) return undefined;
    const at = this.height(s.rank[i]!, s.what[i]!);
    return at === undefined || Math.abs(at - y) > near ? undefined : { rank: s.rank[i]!, what: s.what[i]!, start: s.start[i]!, length: s.length[i]! };
  }

  private stroke(c: CanvasRenderingContext2D): void {
    const draw = (width: number, color: string, alpha: number, along: boolean) => {
      c.lineWidth = width;
      c.strokeStyle = color;
      c.globalAlpha = alpha;
      c.beginPath();
      this.runs.forEach((r, i) => {
        const before = this.runs[i - 1];
        if (along) {
          c.moveTo(r.from, r.y);
          c.lineTo(Math.max(r.to, r.from + 1), r.y);
        } else if (before && r.joined) {
          c.moveTo(before.to, before.y);
          c.lineTo(r.from, r.y);
        }
      });
      c.stroke();
    };
    draw(6, this.colors.paper, 0.8, true);
    draw(1.2, this.colors.path, 0.75, false);
    draw(3, this.colors.path, 1, true);
    c.globalAlpha = 1;
  }

  // row is the height of a rank's activity: on its communicator's row for an operation, else on its process's.
  private row(rank: number, what: number): number | undefined {
    const { head } = this.store;
    const { comm } = head.path!.what[what]!;
    const row = (comm >= 0 ? this.commRows()[comm]?.get(rank) : undefined) ?? head.ranks[rank]?.row ?? -1;
    if (row < 0) return undefined;
    const first = head.rows[row]!.lanes;
    return first[1] > first[0] ? this.lines.height(this.store.lanes[first[0]]!) : this.lines.rowHeight(row);
  }

  private commRows(): Map<number, number>[] {
    return (this.rows ??= this.store.head.comms.map((c) => new Map(c.members.filter((row) => row >= 0).map((row) => [this.store.rankOf(row), row]))));
  }
}

// PathSums is the composition of a part of the path.
export interface PathSums {
  all: number;
  what: Float64Array; // by index into the head's list
  ranks: Map<number, number>; // activities of ranks, by rank * number of whats + what
}

// pathIn sums up the path in a range of time.
export async function pathIn(store: Store, from: number, to: number, going: () => boolean = () => true): Promise<PathSums | undefined> {
  const path = store.head.path!;
  const out: PathSums = { all: 0, what: new Float64Array(path.what.length), ranks: new Map() };
  for (let k = Math.max(0, lastAtMost(path.starts, from)); k < path.starts.length && path.starts[k]! < to; k++) {
    const s = await store.segments(k).promise;
    if (!going()) return undefined;
    for (let i = Math.max(0, lastAtMost(s.start, from)); i < s.start.length && s.start[i]! < to; i++) {
      const ns = Math.min(to, s.start[i]! + s.length[i]!) - Math.max(from, s.start[i]!);
      if (ns <= 0) continue;
      const what = s.what[i]!;
      out.all += ns;
      out.what[what]! += ns;
      if (path.what[what]!.operation !== undefined || s.rank[i]! < 0 || !isOwn(path.what[what]!.activity)) continue;
      const key = s.rank[i]! * path.what.length + what;
      out.ranks.set(key, (out.ranks.get(key) ?? 0) + ns);
    }
  }
  return out;
}

// isOwn reports whether an activity is a rank's own, by its name in ../../../analysis/criticalpath.
export function isOwn(activity: string): boolean {
  return activity === "application" || activity === "NCCL call" || activity === "GPU" || activity === "own";
}
