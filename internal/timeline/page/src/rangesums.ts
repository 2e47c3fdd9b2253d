// SPDX-License-Identifier: Apache-2.0
// Statistics of a range of time.

import type { Bars } from "./blocks";
import type { Curve, Sums } from "./curves";
import type { Lane, Store } from "./store";

export interface Range {
  from: number;
  to: number;
}

// RangeSums are the statistics of a range of time.
export interface RangeSums extends Range {
  scope: string;
  count: number;
  waited: number;
  regions: Map<number, { count: number; time: number; whole: number; max: number }>;
  metrics: { curve: Curve; sums: Sums }[];
}

// addLane adds the bars of a lane that overlap the range.
export async function addLane(sums: RangeSums, store: Store, lane: Lane): Promise<void> {
  for (const k of store.chunksIn(lane, sums.from, sums.to)) if (!addBars(sums, await store.bars(lane, k).promise)) return;
}

// addBars adds the parts of a block's bars that lie in the range; false: the block ends after the range.
export function addBars(sums: RangeSums, bars: Bars): boolean {
  for (let i = 0; i < bars.start.length; i++) {
    const s = bars.start[i]!;
    if (s > sums.to) return false;
    const length = bars.length[i]!;
    if (s + length < sums.from) continue;
    const region = bars.region[i]!;
    const sum = sums.regions.get(region) ?? { count: 0, time: 0, whole: 0, max: 0 };
    sum.count++;
    sum.time += Math.min(s + length, sums.to) - Math.max(s, sums.from);
    sum.whole += length;
    sum.max = Math.max(sum.max, length);
    sums.regions.set(region, sum);
    sums.count++;
    const wait = bars.wait[i]!;
    if (wait > 0) sums.waited += Math.max(0, Math.min(s + wait, sums.to) - Math.max(s, sums.from));
  }
  return true;
}
