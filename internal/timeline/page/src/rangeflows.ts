// SPDX-License-Identifier: Apache-2.0
// Who waited for whom, and who sent whom how much, of what begins in a range of time.

import { firstAfter, lastAtMost, lowerBound } from "./bounds";
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
  of: Map<number, WaitingOf>;
}

// WaitingOf is what was waited in an operation on a communicator.
export interface WaitingOf {
  comm: number; // index into the head's
  fn: number; // the same
  count: number;
  waited: number;
}

// Going is asked from time to time whether the sums are still wanted.
export type Going = (share: number) => boolean;

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

// waitingIn adds up the waits in operations that begin in a range: with their first members, as the report's --from and --to choose.
export async function waitingIn(store: Store, from: number, to: number, going: Going): Promise<Waiting | undefined> {
  const { ranks, waits } = store.head;
  const out: Waiting = { waited: new Float64Array(ranks.length), caused: new Float64Array(ranks.length), pairs: [], total: 0, startUp: 0, of: new Map() };
  if (!waits) return out;
  const pairs = new Pairs(ranks.length);
  const pause = new Pause(going);
  const known = (rank: number) => (rank < ranks.length ? rank : -1);
  const begin = Math.max(0, lastAtMost(waits.starts, from) - 1);
  const end = lowerBound(waits.starts, to);
  for (let k = begin; k < end; k++) {
    const w = await store.waits(k);
    for (let i = lowerBound(w.start, from); i < w.start.length && w.start[i]! < to; i++) {
      const length = w.length[i]!;
      if (w.first[i] === 1) {
        out.startUp += length;
        continue;
      }
      const [rank, by] = [known(w.rank[i]!), known(w.by[i]!)];
      out.total += length;
      if (rank >= 0) out.waited[rank]! += length;
      if (by >= 0) out.caused[by]! += length;
      const p = pairs.of(rank, by);
      p.count++;
      p.time += length;
      const key = w.comm[i]! * 65536 + w.fn[i]!;
      const sum = out.of.get(key);
      if (!sum) out.of.set(key, { comm: w.comm[i]!, fn: w.fn[i]!, count: 1, waited: length });
      else {
        sum.count++;
        sum.waited += length;
      }
    }
    if (await pause.over((k - begin) / (end - begin))) return undefined;
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
