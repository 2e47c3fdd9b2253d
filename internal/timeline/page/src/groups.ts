// SPDX-License-Identifier: Apache-2.0
// Groups of ranks: by host, or by position on the host.

import type { Rank } from "./head";
import { addFlow, noFlow, type Pair } from "./rangeflows";

export const groupings = ["ranks", "hosts", "places"] as const;
export type Grouping = (typeof groupings)[number];

export interface Groups {
  names: string[];
  of: Int32Array; // by rank
}

// groupsOf groups ranks. The position of a rank is the number of ranks of its host before it: with a GPU per rank, and
// a network adapter per GPU, the ranks of one position share a rail.
export function groupsOf(ranks: Rank[], by: Grouping): Groups {
  const of = new Int32Array(ranks.length);
  if (by === "ranks") return { names: ranks.map((r) => r.name), of: of.map((_, i) => i) };
  const names: string[] = [];
  const known = new Map<string, number>();
  const seen = new Map<string, number>(); // number of ranks by host
  ranks.forEach((r, i) => {
    const place = seen.get(r.host) ?? 0;
    seen.set(r.host, place + 1);
    const name = by === "hosts" ? r.host : `Place ${place}`;
    let at = known.get(name);
    if (at === undefined) {
      at = names.length;
      known.set(name, at);
      names.push(name);
    }
    of[i] = at;
  });
  return { names, of };
}

// together sums up pairs of ranks by pairs of groups.
export function together(pairs: Pair[], groups: Groups): Pair[] {
  const n = groups.names.length + 1;
  const all = new Map<number, Pair>();
  for (const p of pairs) {
    const [from, to] = [p.from < 0 ? -1 : groups.of[p.from]!, p.to < 0 ? -1 : groups.of[p.to]!];
    const key = (from + 1) * n + to + 1;
    all.set(key, addFlow(all.get(key) ?? { from, to, ...noFlow() }, p));
  }
  return [...all.values()];
}
