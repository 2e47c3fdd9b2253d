// SPDX-License-Identifier: Apache-2.0
// The states of an event as NCCL reported them: moments in its bar.

import { firstAfter } from "./bounds";
import type { Store } from "./store";

const most = 200;

// statesOf lists the bars within a bar of a row of events, sorted by time, at most 200.
export async function statesOf(store: Store, row: number, from: number, to: number): Promise<number[]> {
  const found: { bar: number; start: number }[] = [];
  const { leaf, chunk, rows } = store.head;
  const [first, end] = rows[row]!.lanes;
  for (const lane of store.lanes.slice(first + 1, end)) {
    const level = lane.levels[0]!;
    for (let n = firstAfter(level.end, from); n < level.start.length && level.start[n]! <= to && found.length < most; n++) {
      const bars = await store.bars(lane, Math.floor((n * leaf) / chunk));
      const at = (n * leaf) % chunk;
      for (let i = at; i < Math.min(at + leaf, bars.start.length); i++) {
        const start = bars.start[i]!;
        if (start >= from && start <= to) found.push({ bar: lane.first + n * leaf + i - at, start });
      }
    }
  }
  found.sort((a, b) => a.start - b.start || a.bar - b.bar);
  return found.slice(0, most).map((s) => s.bar);
}
