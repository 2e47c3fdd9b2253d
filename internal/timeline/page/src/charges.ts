// SPDX-License-Identifier: Apache-2.0
// Waits that begin in a range of time, by the rank that caused them, as the tool charges them (../../charges.go).

import { lastAtMost, lowerBound } from "./bounds";
import type { Store } from "./store";

export interface Backs {
  by: Float64Array; // by rank
  kinds: Float64Array[]; // the same by kind of delay, as the head lists them
  rest: number; // of all further ranks
}

export async function goesBackIn(store: Store, from: number, to: number, going: () => boolean = () => true): Promise<Backs | undefined> {
  const { charges, ranks } = store.head;
  const out: Backs = { by: new Float64Array(ranks.length), kinds: (charges?.kinds ?? []).map(() => new Float64Array(ranks.length)), rest: 0 };
  if (!charges) return out;
  for (let k = Math.max(0, lastAtMost(charges.starts, from) - 1); k < charges.starts.length && charges.starts[k]! < to; k++) {
    const c = await store.charges(k);
    if (!going()) return undefined;
    for (let i = lowerBound(c.start, from); i < c.start.length && c.start[i]! < to; i++) {
      for (let j = c.first[i]!; j < c.first[i + 1]!; j++) {
        const rank = c.rank[j]!;
        if (rank < 0) out.rest += c.ns[j]!;
        else {
          out.by[rank]! += c.ns[j]!;
          out.kinds[c.kind[j]!]![rank]! += c.ns[j]!;
        }
      }
    }
  }
  return out;
}

// most returns the rank that caused the most waiting; −1: none.
export function most(by: ArrayLike<number>): number {
  let best = -1;
  for (let r = 0; r < by.length; r++) if (by[r]! > 0 && (best < 0 || by[r]! > by[best]!)) best = r;
  return best;
}
