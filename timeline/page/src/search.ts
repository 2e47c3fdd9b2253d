// SPDX-License-Identifier: Apache-2.0
// Finding regions by their names, on rows by theirs.

import type { Head } from "./head";
import type { Lane, Store } from "./store";

export interface Query {
  text: string;
  regions: Set<number>; // whose bars are meant
  rows: ((row: number) => boolean) | undefined; // undefined: all
  count: number;
  waiting?: boolean; // only bars that waited
}

// parse understands words: each must be in the name of the region, of its row or of what that lies in, or of its group.
export function parse(store: Store, text: string): Query | undefined {
  const words = text.toLowerCase().split(/\s+/).filter((w) => w !== "");
  if (words.length === 0) return undefined;
  const head = store.head;
  const rowNames = head.rows.map((_, i) => path(head, i).toLowerCase());
  const regionNames = head.regions.map((r) => (r.name + " " + (head.categories[r.category] ?? "")).toLowerCase());
  // A word that is in the name of a region chooses regions, any other one chooses rows.
  const ofRegions = words.filter((w) => regionNames.some((n) => n.includes(w)));
  const ofRows = words.filter((w) => !ofRegions.includes(w));
  const regions = new Set<number>();
  regionNames.forEach((n, i) => ofRegions.every((w) => n.includes(w)) && regions.add(i));
  const rows = ofRows.length === 0 ? undefined : (row: number) => ofRows.every((w) => rowNames[row]!.includes(w));
  let count = 0;
  for (const lane of store.lanes) {
    if (rows && !rows(lane.row)) continue;
    for (const s of lane.sums) if (regions.has(s.region)) count += s.count;
  }
  return { text, regions, rows, count };
}

function path(head: Head, row: number): string {
  let name = "";
  for (let r = row; r >= 0; r = head.rows[r]!.parent) name += " " + head.rows[r]!.name;
  return name;
}

// waits are all regions that waited.
export function waits(store: Store): Query {
  return { text: "", regions: new Set(store.head.regions.keys()), rows: (row) => store.head.rows[row]!.kind === "rank", count: 0, waiting: true };
}

// next is the match that follows a bar (or a time) in time, over all rows; undefined: there is none.
export async function next(store: Store, query: Query, after: { time: number; bar: number }, forward: boolean): Promise<number | undefined> {
  const before = (a: { time: number; bar: number }, b: { time: number; bar: number }) => a.time < b.time || (a.time === b.time && a.bar < b.bar);
  let best: { time: number; bar: number } | undefined;
  for (const lane of store.lanes) {
    if (query.rows && !query.rows(lane.row)) continue;
    if (!lane.sums.some((s) => query.regions.has(s.region))) continue;
    const found = await onLane(store, lane, query, after, forward, best?.time);
    if (found && (!best || (forward ? before(found, best) : before(best, found)))) best = found;
  }
  return best?.bar;
}

async function onLane(
  store: Store, lane: Lane, query: Query, after: { time: number; bar: number }, forward: boolean, limit: number | undefined,
): Promise<{ time: number; bar: number } | undefined> {
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
    const bars = await store.bars(lane, k);
    const n = bars.start.length;
    for (let j = 0; j < n; j++) {
      const i = forward ? j : n - 1 - j;
      if (!query.regions.has(bars.region[i]!) || (query.waiting && bars.wait[i] === 0)) continue;
      const time = bars.start[i]!;
      const bar = lane.first + k * chunk + i;
      if (forward ? time > after.time || (time === after.time && bar > after.bar) : time < after.time || (time === after.time && bar < after.bar)) return { time, bar };
    }
  }
  return undefined;
}
