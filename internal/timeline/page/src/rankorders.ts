// SPDX-License-Identifier: Apache-2.0
// Orders of ranks that are computed: by communicator, and by similarity.

import type { Head } from "./head";
import type { Heat, Measure } from "./heat";
import { likeness } from "./likeness";
import type { Lister } from "./listing";

const columns = 64; // by which ranks are compared

// byCommunicator sorts ranks by their communicators, so that ranks of the same ones are together, larger ones first.
// Communicators of all ranks are ignored.
export function byCommunicator({ comms, ranks }: Head, lister: Lister): number[] {
  const of = ranks.map((): number[] => []);
  const sizes = comms.map((c) => c.members.length);
  comms.forEach((c, i) => {
    if (sizes[i]! < ranks.length) for (const row of c.members) if (row >= 0) of[lister.rank(row)]?.push(i);
  });
  const keys = of.map((list) =>
    [...new Set(list)]
      .sort((a, b) => sizes[b]! - sizes[a]! || a - b)
      .map((i) => String(i).padStart(7, "0"))
      .join(" "),
  );
  const sorted = new Map([...new Set(keys)].sort().map((k, i) => [k, i]));
  return keys.map((k) => sorted.get(k)!);
}

// byLikeness sorts ranks by similarity of a measure in a time; for "late", which takes long, of waiting.
export function byLikeness(heat: Heat, measure: Measure, { from, to }: { from: number; to: number }): Float64Array {
  const ranks = heat.store.head.ranks.map((_, r) => r);
  heat.begin(ranks);
  return likeness(ranks.map((r) => heat.line(r, measure === "late" ? "waiting" : measure, { from, to, columns })));
}
