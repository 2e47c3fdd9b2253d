// SPDX-License-Identifier: Apache-2.0
// The composition of a phase, for comparison with another.

import { goesBackIn, type Backs } from "./charges";
import { firstAfter } from "./bounds";
import type { Phase } from "./head";
import { mostRows, type Lister } from "./listing";
import { pathIn, type PathSums } from "./path";
import { waitingIn, type Waiting } from "./rangeflows";
import { addBars, type RangeSums } from "./rangesums";
import type { Store } from "./store";

export interface StepSums {
  phase: Phase;
  waiting: Waiting;
  backs: Backs;
  path: PathSums | undefined; // undefined: unknown
  regions: RangeSums["regions"] | undefined; // of operations; undefined: they are on too many rows, and nobody asked for them
}

// stepSums sums up a phase; all: also the operations if they are on too many rows for that without confirmation.
export async function stepSums(store: Store, lister: Lister, phase: Phase, all: boolean, going: (share: number) => boolean): Promise<StepSums | undefined> {
  const { from, to } = phase;
  const waiting = await waitingIn(store, from, to, going);
  const backs = await goesBackIn(store, from, to, () => going(0.5));
  if (!waiting || !backs) return undefined;
  const path = store.head.path ? await pathIn(store, from, to, () => going(0.5)) : undefined;
  const sums: RangeSums = { from, to, scope: "", count: 0, waited: 0, regions: new Map(), metrics: [] };
  const { chunk, leaf } = store.head;
  const lanes = lister.lanes();
  if (lanes.length > mostRows && !all) return { phase, waiting, backs, path, regions: undefined };
  for (const [n, lane] of lanes.entries()) {
    if (n % 32 === 0) {
      if (!going(0.5 + (0.5 * n) / lanes.length)) return undefined;
      await store.ahead(lanes.slice(n, n + 32), from, to, {});
    }
    const level = lane.levels[0]!;
    for (let k = Math.floor((firstAfter(level.end, from) * leaf) / chunk); k * chunk < lane.count && level.start[(k * chunk) / leaf]! <= to; k++) {
      if (!addBars(sums, await store.bars(lane, k))) break;
    }
  }
  return { phase, waiting, backs, path, regions: sums.regions };
}
