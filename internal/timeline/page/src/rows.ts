// SPDX-License-Identifier: Apache-2.0
// Which rows are shown, and where.

import { lastAtMost } from "./bounds";
import type { Head, HeadRow } from "./head";
import type { Lane, Store } from "./store";

// curveGap is how many pixels are free above and below a curve.
export const curveGap = 2;

// Heights in pixels.
export const heights = { group: 24, strip: 34, lane: { rank: 22, thread: 18, stream: 18, network: 14, channel: 12, event: 16, metric: 18 } as Record<string, number>, nested: 14, gap: 6 };

export interface Item {
  row: number;
  level: number;
  y: number;
  height: number;
  open: boolean; // its children are shown
  parent: boolean; // it has children
  lanes: { lane: Lane; y: number; height: number; marks: boolean }[]; // y within the item; marks: on the bars of the first one
  strip: Lane[]; // of a closed group: the lanes summed up in it
}

export class Rows {
  readonly children: number[][];
  readonly closed = new Set<number>();
  readonly pinned = new Set<number>(); // pinned above all others, with their children
  readonly hidden = new Set<number>(); // with their children
  items: Item[] = [];
  private tops: number[] = []; // of the items
  height = 0;
  metrics = true; // whether metrics are shown
  stretch = 1; // factor for the heights if there is room
  private readonly place = new Map<number, Item>();
  private filter: ((row: number) => boolean) | undefined;

  constructor(private readonly store: Store) {
    const rows = store.head.rows;
    this.children = rows.map(() => []);
    rows.forEach((r, i) => r.parent >= 0 && this.children[r.parent]!.push(i));
    // Curves are right below the bars to which they belong.
    this.children.forEach((c) => c.sort((a, b) => Number(this.isMetric(b)) - Number(this.isMetric(a)) || a - b));
    this.closeByDefault();
    this.layout();
  }

  private get head(): Head {
    return this.store.head;
  }

  private isMetric(row: number): boolean {
    return this.head.rows[row]!.kind === "metric";
  }

  // closeByDefault leaves about as many rows open as a reader can survey.
  private closeByDefault(): void {
    const rows = this.head.rows;
    const most = 60;
    const close = (kind: HeadRow["kind"]) => rows.forEach((r, i) => r.kind === kind && this.children[i]!.length > 0 && this.closed.add(i));
    const shown = () => {
      const count = (i: number): number => 1 + (this.closed.has(i) ? 0 : this.children[i]!.reduce((n, c) => n + count(c), 0));
      return rows.reduce((n, r, i) => n + (r.parent < 0 ? count(i) : 0), 0);
    };
    if (shown() > most) this.children.forEach((c, i) => c.length > 0 && c.every((r) => this.isMetric(r)) && this.closed.add(i));
    for (const kind of ["rank", "device", "process", "host"] as const) {
      if (shown() > most) close(kind);
    }
    // With very many hosts all are closed; a single host stays open.
    if (rows.length > 0 && rows.filter((r) => r.parent < 0).length === 1) this.closed.delete(0);
  }

  toggle(row: number): void {
    if (this.children[row]!.length === 0) return;
    if (!this.closed.delete(row)) this.closed.add(row);
    this.layout();
  }

  // setAll opens or closes all rows.
  setAll(open: boolean): void {
    this.closed.clear();
    if (!open) this.children.forEach((c, i) => c.length > 0 && this.head.rows[i]!.kind !== "host" && this.closed.add(i));
    this.layout();
  }

  // reveal shows a row and opens the groups around it.
  reveal(row: number): void {
    for (let r = row; r >= 0; r = this.head.rows[r]!.parent) this.hidden.delete(r);
    for (let p = this.head.rows[row]!.parent; p >= 0; p = this.head.rows[p]!.parent) this.closed.delete(p);
    this.layout();
  }

  // arrange sets the pinned and the hidden rows.
  arrange(pinned: Iterable<number>, hidden: Iterable<number>): void {
    this.pinned.clear();
    this.hidden.clear();
    for (const row of hidden) this.hidden.add(row);
    for (const row of pinned) this.pinned.add(row);
    this.layout();
  }

  // show sets which rows the next layout shows.
  show(filter: ((row: number) => boolean) | undefined): void {
    this.filter = filter;
  }

  // fit makes rows higher if there is room for all of them.
  fit(room: number): void {
    const before = this.stretch;
    this.stretch = 1;
    this.layout();
    this.stretch = Math.max(1, Math.min(1.5, Math.floor((20 * room) / Math.max(1, this.height)) / 20));
    if (this.stretch !== 1 || before !== 1) this.layout();
    if (this.height > room && this.stretch > 1) {
      this.stretch = 1;
      this.layout();
    }
  }

  layout(): void {
    this.items = [];
    this.place.clear();
    let y = 0;
    const known = new Map<number, boolean>();
    const wanted = (i: number): boolean => {
      let is = known.get(i);
      if (is === undefined) known.set(i, (is = wants(i)));
      return is;
    };
    const wants = (i: number): boolean => !this.hidden.has(i) && (this.metrics || !this.isMetric(i)) && (!this.filter || this.filter(i) || this.children[i]!.some(wanted));
    const add = (i: number, level: number) => {
      if (!wanted(i) || this.place.has(i)) return;
      const r = this.head.rows[i]!;
      const parent = this.children[i]!.some((c) => this.metrics || !this.isMetric(c));
      if (r.kind === "sensors" && !parent) return;
      const open = parent && !this.closed.has(i);
      const item: Item = { row: i, level, y, height: 0, open, parent, lanes: [], strip: [] };
      const first = heights.lane[r.kind];
      if (first !== undefined) {
        let at = heights.gap / 2;
        for (let l = r.lanes[0]; l < r.lanes[1]; l++) {
          // The states of an event are moments in it.
          if (r.kind === "event" && l > r.lanes[0]) {
            item.lanes.push({ ...item.lanes[0]!, lane: this.store.lanes[l]!, marks: true });
            continue;
          }
          const h = Math.round((l === r.lanes[0] ? first : heights.nested) * this.stretch);
          item.lanes.push({ lane: this.store.lanes[l]!, y: at, height: h, marks: false });
          at += h + 1;
        }
        item.height = Math.max(at + heights.gap / 2, Math.round(first * this.stretch) + (r.kind === "metric" ? 2 * curveGap : heights.gap));
      } else {
        if (!open) item.strip = this.strip(i);
        item.height = item.strip.length === 0 ? heights.group : Math.round(heights.strip * this.stretch);
      }
      this.items.push(item);
      this.place.set(i, item);
      y += item.height;
      if (open) this.children[i]!.forEach((c) => add(c, level + 1));
    };
    for (const row of this.pinned) add(row, 0);
    this.head.rows.forEach((r, i) => r.parent < 0 && add(i, 0));
    this.height = y;
    this.tops = this.items.map((item) => item.y);
  }

  // strip returns the lanes that stand for a closed group: its communicator ranks, or all lanes if it has none.
  private strip(row: number): Lane[] {
    const all: Lane[] = [];
    const ranks: Lane[] = [];
    const visit = (i: number) => {
      const r = this.head.rows[i]!;
      if (r.lanes[1] > r.lanes[0]) {
        const lane = this.store.lanes[r.lanes[0]]!;
        all.push(lane);
        if (r.kind === "rank" || r.kind === "stream") ranks.push(lane);
      }
      this.children[i]!.forEach(visit);
    };
    visit(row);
    return ranks.length > 0 ? ranks : all;
  }

  // of returns the item of a row, or of the closed group around it; undefined: it is not shown.
  of(row: number): Item | undefined {
    for (let r = row; r >= 0; r = this.head.rows[r]!.parent) {
      const item = this.place.get(r);
      if (item) return r === row || !item.open ? item : undefined;
      if (this.hidden.has(r) || (this.filter && !this.filter(row))) return undefined;
    }
    return undefined;
  }

  // at returns the item at a height.
  at(y: number): Item | undefined {
    const item = this.items[lastAtMost(this.tops, y)];
    return item && y >= item.y && y < item.y + item.height ? item : undefined;
  }
}
