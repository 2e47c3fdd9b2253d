// SPDX-License-Identifier: Apache-2.0
// Searching regions and rows by name.

import type { Lane, Store } from "./store";

export interface Query {
  text: string;
  regions: Set<number>; // matching on any row
  on(row: number): Set<number>; // matching on a row
  rows: ((row: number) => boolean) | undefined; // rows with a match; undefined: the search was not for rows
  count: number;
  metrics: number[]; // rows of metrics with all the words in their path, some in their own name
  waiting?: boolean; // only bars that waited
}

// parse parses words: each must be in the name of the region, of its group, of its row or of a group around that.
export function parse(store: Store, text: string): Query | undefined {
  const words = text.toLowerCase().split(/\s+/).filter((w) => w !== "");
  if (words.length === 0) return undefined;
  const head = store.head;
  const names = head.regions.map((r) => (r.name + " " + (head.categories[r.category] ?? "")).toLowerCase());
  const known = new Map<string, Set<number>>(); // by the words left for the region
  let rowsMeant = false;
  const byRow = head.rows.map((_, row) => {
    const inside = path(store, row);
    const left = words.filter((w) => !inside.includes(w));
    if (left.length < words.length) rowsMeant = true;
    const key = left.join(" ");
    let set = known.get(key);
    if (!set) {
      set = new Set(names.flatMap((n, i) => (left.every((w) => n.includes(w)) ? [i] : [])));
      known.set(key, set);
    }
    return set;
  });
  const regions = new Set<number>();
  const found = new Set<number>();
  let count = 0;
  for (const lane of store.lanes) {
    for (const s of lane.sums) {
      if (!byRow[lane.row]!.has(s.region)) continue;
      regions.add(s.region);
      found.add(lane.row);
      count += s.count;
    }
  }
  const metrics: number[] = [];
  for (const { row } of store.curves.all) {
    const own = head.rows[row]!.name.toLowerCase();
    const inside = path(store, row);
    if (!words.every((w) => inside.includes(w))) continue;
    found.add(row);
    if (words.some((w) => own.includes(w))) metrics.push(row);
  }
  return { text, regions, on: (row) => byRow[row]!, rows: rowsMeant ? (row) => found.has(row) : undefined, count, metrics };
}

function path(store: Store, row: number): string {
  return store.around(row).map((r) => " " + store.head.rows[r]!.name).join("").toLowerCase();
}

// waits are all regions that waited.
export function waits(store: Store): Query {
  const all = new Set(store.head.regions.keys());
  const none = new Set<number>();
  return { text: "", regions: all, on: (row) => (store.head.rows[row]!.operations.count > 0 ? all : none), rows: undefined, count: 0, metrics: [], waiting: true };
}

// Place is that of a bar.
export type Place = { time: number; bar: number };

// next returns the next match after a bar (or a time), over all rows; undefined: there is none.
export async function next(store: Store, query: Query, after: Place, forward: boolean): Promise<number | undefined> {
  const before = (a: Place, b: Place) => a.time < b.time || (a.time === b.time && a.bar < b.bar);
  let best: Place | undefined;
  for (const lane of store.lanes) {
    const regions = query.on(lane.row);
    if (!lane.sums.some((s) => regions.has(s.region))) continue;
    const found = await onLane(store, lane, query, after, forward, best?.time);
    if (found && (!best || (forward ? before(found, best) : before(best, found)))) best = found;
  }
  return best?.bar;
}

async function onLane(store: Store, lane: Lane, query: Query, after: Place, forward: boolean, limit: number | undefined): Promise<Place | undefined> {
  const regions = query.on(lane.row);
  const chunk = store.head.chunk;
  const perChunk = chunk / store.head.leaf;
  const chunks = Math.ceil(lane.count / chunk);
  const level = lane.levels[0]!;
  const startOf = (k: number) => level.start[k * perChunk] ?? Infinity;
  let k = 0;
  if (forward) while (k + 1 < chunks && startOf(k + 1) < after.time) k++;
  else for (k = chunks - 1; k > 0 && startOf(k) > after.time; ) k--;
  for (; k >= 0 && k < chunks; k += forward ? 1 : -1) {
    if (limit !== undefined && (forward ? startOf(k) > limit : (startOf(k + 1) ?? Infinity) < limit)) return undefined;
    const bars = await store.bars(lane, k).promise;
    const n = bars.start.length;
    for (let j = 0; j < n; j++) {
      const i = forward ? j : n - 1 - j;
      if (!regions.has(bars.region[i]!) || (query.waiting && bars.wait[i] === 0)) continue;
      const time = bars.start[i]!;
      const bar = lane.first + k * chunk + i;
      if (forward ? time > after.time || (time === after.time && bar > after.bar) : time < after.time || (time === after.time && bar < after.bar)) return { time, bar };
    }
  }
  return undefined;
}
