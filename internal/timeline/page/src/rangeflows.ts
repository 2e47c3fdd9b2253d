// SPDX-License-Identifier: Apache-2.0
// Waiting and traffic between ranks that begin in a range of time.

import { firstAfter, lastAtMost, lowerBound } from "./bounds";
import type { Going } from "./scope";
import type { Store } from "./store";

// Pair is the waiting or traffic between two ranks, given as indices into the head's ranks; −1: unknown.
export interface Pair extends FlowSums {
  from: number;
  to: number;
}

export interface FlowSums {
  count: number; // of transfers, or waits
  bytes: number;
  time: number; // of transfers whose end is known
  timed: number; // bytes of the transfers whose end is known
}

export const noFlow = (): FlowSums => ({ count: 0, bytes: 0, time: 0, timed: 0 });

// addFlow adds to sums.
export function addFlow<T extends FlowSums>(to: T, p: FlowSums): T {
  to.count += p.count;
  to.bytes += p.bytes;
  to.time += p.time;
  to.timed += p.timed;
  return to;
}

// Waiting is the waiting by rank, without the first operation of each communicator.
export interface Waiting {
  waited: Float64Array;
  caused: Float64Array;
  pairs: Pair[]; // from waited for to during time
  total: number;
  startUp: number; // waited in the first operations of communicators
  of: WaitingOf[]; // those with the most waiting first
}

// WaitingOf is the waiting in the operations of a function on a communicator.
export interface WaitingOf {
  comm: number; // index into the head's
  name: string;
  waits: number;
  waited: number;
}

class Pairs {
  private readonly all = new Map<number, Pair>();

  constructor(private readonly ranks: number) {}

  of(from: number, to: number): Pair {
    const key = (from + 1) * (this.ranks + 1) + to + 1;
    let p = this.all.get(key);
    if (!p) this.all.set(key, (p = { from, to, ...noFlow() }));
    return p;
  }

  list(): Pair[] {
    return [...this.all.values()];
  }
}

// Pause lets pictures be drawn in between.
class Pause {
  private shown = performance.now();

  constructor(private readonly going: Going) {}

  // over reports whether the sums have been abandoned.
  async over(share: number): Promise<boolean> {
    if (performance.now() - this.shown < 50) return false;
    if (!this.going(share)) return true;
    await new Promise((done) => setTimeout(done, 0));
    this.shown = performance.now();
    return false;
  }
}

// waitingIn sums up the waits in operations whose first member begins in a range, as the report's --from and --to do.
export async function waitingIn(store: Store, from: number, to: number, going: Going): Promise<Waiting | undefined> {
  const { ranks, waits, functions } = store.head;
  const out: Waiting = { waited: new Float64Array(ranks.length), caused: new Float64Array(ranks.length), pairs: [], total: 0, startUp: 0, of: [] };
  const of = new Map<number, WaitingOf>();
  if (!waits) return out;
  const pairs = new Pairs(ranks.length);
  const pause = new Pause(going);
  const known = (rank: number) => (rank < ranks.length ? rank : -1);
  const begin = Math.max(0, lastAtMost(waits.starts, from) - 1);
  const end = lowerBound(waits.starts, to);
  for (let k = begin; k < end; k++) {
    const w = await store.waits(k).promise;
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
      const sum = of.get(key) ?? { comm: w.comm[i]!, name: functions[w.fn[i]!] ?? "?", waits: 0, waited: 0 };
      sum.waits++;
      sum.waited += length;
      of.set(key, sum);
    }
    if (await pause.over((k - begin) / (end - begin))) return undefined;
  }
  out.pairs = pairs.list();
  out.of = [...of.values()].sort((a, b) => b.waited - a.waited);
  return out;
}

// sentIn sums up the transfers that begin in a range.
export async function sentIn(store: Store, from: number, to: number, going: Going): Promise<Pair[] | undefined> {
  const { chunk, leaf, rows } = store.head;
  const pairs = new Pairs(store.head.ranks.length);
  const pause = new Pause(going);
  let n = 0;
  for (const [row, levels] of store.transferLevels) {
    const level = levels[0]!;
    const { count } = rows[row]!.transfers;
    const last = Math.min(count, firstAfter(level.start, to) * leaf);
    for (let k = Math.floor((Math.max(0, lowerBound(level.start, from) - 1) * leaf) / chunk); k * chunk < last; k++) {
      const t = await store.transfers(row, k).promise;
      for (let i = lowerBound(t.start, from); i < t.start.length && t.start[i]! < to; i++) {
        const p = pairs.of(store.rankOf(row), store.rankOf(t.row[i]!));
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

// Backs are the waits in a range of time by the rank that caused them, as the tool charges them (../../charges.go).
export interface Backs {
  by: Float64Array; // by rank
  kinds: Float64Array[]; // the same by kind of delay, as the head lists them
  rest: number; // of all further ranks
}

export async function chargesIn(store: Store, from: number, to: number, going: () => boolean = () => true): Promise<Backs | undefined> {
  const { charges, ranks } = store.head;
  const out: Backs = { by: new Float64Array(ranks.length), kinds: (charges?.kinds ?? []).map(() => new Float64Array(ranks.length)), rest: 0 };
  if (!charges) return out;
  for (let k = Math.max(0, lastAtMost(charges.starts, from) - 1); k < charges.starts.length && charges.starts[k]! < to; k++) {
    const c = await store.charges(k).promise;
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

// greatestOf returns the rank that caused the most waiting; −1: none.
export function greatestOf(by: ArrayLike<number>): number {
  let best = -1;
  for (let r = 0; r < by.length; r++) if (by[r]! > 0 && (best < 0 || by[r]! > by[best]!)) best = r;
  return best;
}
