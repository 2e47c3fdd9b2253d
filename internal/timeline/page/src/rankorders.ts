// SPDX-License-Identifier: Apache-2.0
// Orders of ranks that are computed: by communicator, and by similarity.

import type { Heat, Measure } from "./heat";
import type { Store } from "./store";

const columns = 64; // by which ranks are compared

// byCommunicator sorts ranks by their communicators, so that ranks of the same ones are together, larger ones first.
// Communicators of all ranks are ignored.
export function byCommunicator(store: Store): number[] {
  const { comms, ranks } = store.head;
  const of = ranks.map((): number[] => []);
  const sizes = comms.map((c) => c.members.length);
  comms.forEach((c, i) => {
    if (sizes[i]! < ranks.length) for (const row of c.members) if (row >= 0) of[store.rankOf(row)]?.push(i);
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

const rounds = 24;

// likeness returns for each line of numbers (all of one length) its position along the direction in which the lines
// differ most: the first principal component, by power iteration. Similar lines get similar positions. NaN counts as
// the mean of its column.
export function likeness(lines: ArrayLike<number>[]): Float64Array {
  const out = new Float64Array(lines.length);
  const columns = lines[0]?.length ?? 0;
  const mean = new Float64Array(columns);
  for (let c = 0; c < columns; c++) {
    let [sum, n] = [0, 0];
    for (const l of lines) if (!Number.isNaN(l[c]!)) (sum += l[c]!), n++;
    mean[c] = n > 0 ? sum / n : 0;
  }
  const at = (l: ArrayLike<number>, c: number) => (Number.isNaN(l[c]!) ? 0 : l[c]! - mean[c]!);
  // It starts with the line farthest from the mean, so that the result is deterministic.
  let far = 0;
  let axis = new Float64Array(columns);
  for (const l of lines) {
    let d = 0;
    for (let c = 0; c < columns; c++) d += at(l, c) ** 2;
    if (d > far) {
      far = d;
      axis = Float64Array.from({ length: columns }, (_, c) => at(l, c));
    }
  }
  if (far === 0) return out;
  for (let i = 0; i < rounds; i++) {
    const next = new Float64Array(columns);
    lines.forEach((l, r) => {
      let p = 0;
      for (let c = 0; c < columns; c++) p += at(l, c) * axis[c]!;
      out[r] = p;
      for (let c = 0; c < columns; c++) next[c]! += p * at(l, c);
    });
    const length = Math.hypot(...next);
    if (length === 0) break;
    axis = next.map((v) => v / length);
  }
  return out;
}
