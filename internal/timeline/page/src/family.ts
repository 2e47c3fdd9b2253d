// SPDX-License-Identifier: Apache-2.0
// The objects related to a bar.

import type { Instance } from "./blocks";
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
  const chunk = store.head.chunk;
  for (let at = bar; at >= 0 && family.parents.length < 16; ) {
    const lane = store.laneOf(at);
    const i = at - lane.first;
    const notes = await store.notes(lane, Math.floor(i / chunk));
    if (at === bar) {
      const k = i % chunk;
      family.children = [...notes.kid.slice(notes.kids[k]!, notes.kids[k + 1]!)];
    }
    const parent = notes.parent[i % chunk]!;
    if (parent < 0 || family.parents.includes(parent)) break;
    family.parents.push(parent);
    at = parent;
  }
  const lane = store.laneOf(bar);
  const o = await store.operations(lane.row, bar);
  if (o) {
    for (let i = lowerBound(o.bar, bar); i < o.bar.length && o.bar[i] === bar; i++) family.instances.push(await store.instance(o.instance[i]!));
  }
  return family;
}
