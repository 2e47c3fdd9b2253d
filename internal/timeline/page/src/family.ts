// SPDX-License-Identifier: Apache-2.0
// The objects related to a bar.

import { placesOf, type Instance } from "./blocks";
import { lowerBound } from "./bounds";
import type { Store } from "./store";

// Family is the objects related to a bar.
export interface Family {
  bar: number;
  parents: number[]; // the nearest first
  children: number[];
  instances: Instance[];
}

export async function familyOf(store: Store, bar: number): Promise<Family> {
  const family: Family = { bar, parents: [], children: [], instances: [] };
  for (let child = bar; family.parents.length < 16; ) {
    const { lane, chunk, at } = store.placeOf(child);
    const notes = await store.notes(lane, chunk).promise;
    if (child === bar) family.children = [...notes.kid.slice(notes.kids[at]!, notes.kids[at + 1]!)];
    const parent = notes.parent[at]!;
    if (parent < 0 || family.parents.includes(parent)) break;
    family.parents.push(parent);
    child = parent;
  }
  const o = await store.operations(store.laneOf(bar).row, bar)?.promise;
  for (const i of o ? placesOf(o, bar) : []) family.instances.push(await store.instance(o!.instance[i]!));
  return family;
}

const mostStates = 200;

// statesOf lists the bars within a bar of a row of events, sorted by time, at most 200.
export async function statesOf(store: Store, row: number, from: number, to: number): Promise<number[]> {
  const found: { bar: number; start: number }[] = [];
  const { chunk, rows } = store.head;
  const [first, end] = rows[row]!.lanes;
  for (const lane of store.lanes.slice(first + 1, end)) {
    for (const k of store.chunksIn(lane, from, to)) {
      if (found.length >= mostStates) break;
      const { start } = await store.bars(lane, k).promise;
      for (let i = lowerBound(start, from); i < start.length && start[i]! <= to; i++) found.push({ bar: lane.first + k * chunk + i, start: start[i]! });
    }
  }
  found.sort((a, b) => a.start - b.start || a.bar - b.bar);
  return found.slice(0, mostStates).map((s) => s.bar);
}
