// SPDX-License-Identifier: Apache-2.0
// Who waited for whom, and who sent whom how much, of what begins in a range of time.

import { firstAfter, lowerBound } from "./bounds";
import type { Lister } from "./listing";
import type { Store } from "./store";

// Pair is what one rank has to do with another: it sent, or it waited. Ranks are indices into the head's, −1: not known.
export interface Pair {
  from: number;
  to: number;
  count: number; // of transfers, or waits
  bytes: number;
  time: number; // of transfers whose end is known
  timed: number; // bytes of these
}

// Waiting is what was waited by rank, without the first operation of each communicator.
export interface Waiting {
  waited: Float64Array;
  caused: Float64Array;
  pairs: Pair[]; // from: who waited, to: for whom, time: how long
  total: number;
  startUp: number; // waited in the first operations of communicators
}

// Going is asked from time to time whether the sums are still wanted.
export type Going = (share: number) => boolean;

const atOnce = 32; // lanes

class Pairs {
  private readonly all = new Map<number, Pair>();

  constructor(private readonly ranks: number) {}

  of(from: number, to: number): Pair {
    const key = (from + 1) * (this.ranks + 1) + to + 1;
    let p = this.all.get(key);
    if (!p) this.all.set(key, (p = { from, to, count: 0, bytes: 0, time: 0, timed: 0 }));
    return p;
  }

  list(): Pair[] {
    return [...this.all.values()];
  }
}

// Pause lets pictures come in between.
class Pause {
  private shown = performance.now();

  constructor(private readonly going: Going) {}

  // over is whether the sums are no longer wanted.
  async over(share: number): Promise<boolean> {
    if (performance.now() - this.shown < 50) return false;
    if (!this.going(share)) return true;
    await new Promise((done) => setTimeout(done, 0));
    this.shown = performance.now();
    return false;
  }
}

// waitingIn adds up the waits of what begins in a range.
export async function waitingIn(store: Store, lister: Lister, from: number, to: number, going: Going): Promise<Waiting | undefined> {
  const { chunk, leaf, ranks } = store.head;
  const out: Waiting = { waited: new Float64Array(ranks.length), caused: new Float64Array(ranks.length), pairs: [], total: 0, startUp: 0 };
  const pairs = new Pairs(ranks.length);
  const pause = new Pause(going);
  const lanes = lister.waiting();
  for (const [n, lane] of lanes.entries()) {
    const level = lane.levels[0]!;
    const rank = lister.rank(lane.row);
    if (n % atOnce === 0) await store.ahead(lanes.slice(n, n + atOnce), from, to, { notes: true });
    for (let k = Math.floor((Math.max(0, lowerBound(level.start, from) - 1) * leaf) / chunk); k * chunk < lane.count && level.start[(k * chunk) / leaf]! < to; k++) {
      const [bars, notes] = await Promise.all([store.bars(lane, k), store.notes(lane, k)]);
      for (const [i, w] of notes.waits) {
        const start = bars.start[i]!;
        if (start < from || start >= to) continue;
        const wait = bars.wait[i]!;
        if (w.first) {
          out.startUp += wait;
          continue;
        }
        out.total += wait;
        if (rank >= 0) out.waited[rank]! += wait;
        if (w.rank < ranks.length) out.caused[w.rank]! += wait;
        const p = pairs.of(rank, w.rank < ranks.length ? w.rank : -1);
        p.count++;
        p.time += wait;
      }
    }
    if (await pause.over(n / lanes.length)) return undefined;
  }
  out.pairs = pairs.list();
  return out;
}

// sentIn adds up the transfers that begin in a range.
export async function sentIn(store: Store, lister: Lister, from: number, to: number, going: Going): Promise<Pair[] | undefined> {
  const { chunk, leaf, rows } = store.head;
  const pairs = new Pairs(store.head.ranks.length);
  const pause = new Pause(going);
  let n = 0;
  for (const [row, levels] of store.transferLevels) {
    const level = levels[0]!;
    const { count } = rows[row]!.transfers;
    const last = Math.min(count, firstAfter(level.start, to) * leaf);
    for (let k = Math.floor((Math.max(0, lowerBound(level.start, from) - 1) * leaf) / chunk); k * chunk < last; k++) {
      const t = await store.transfers(row, k);
      for (let i = lowerBound(t.start, from); i < t.start.length && t.start[i]! < to; i++) {
        const p = pairs.of(lister.rank(row), t.row[i]! < 0 ? -1 : lister.rank(t.row[i]!));
        p.count++;
        p.bytes += t.bytes[i]!;
        if (t.length[i]! < 0) continue;
        p.time += t.length[i]!;
        p.timed += t.bytes[i]!;
      }
    }
    if (await pause.over(n++ / store.transferLevels.size)) return undefined;
  }
  return pairs.list();
}
