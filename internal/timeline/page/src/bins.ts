// SPDX-License-Identifier: Apache-2.0
// The matrix of ranks in bins of several ranks where there is no room for all.

import { addFlow, noFlow, type FlowSums, type Pair } from "./rangeflows";

// Window is the range of ranks shown, the same for senders and receivers.
export interface Window {
  first: number;
  count: number;
}

export interface Bin extends FlowSums {
  most: Pair | undefined; // the pair with the largest shown value
}

export class Bins {
  readonly per: number; // ranks of a bin
  readonly size: number; // bins of a side
  readonly all = new Map<number, Bin>(); // by from * size + to

  constructor(
    readonly window: Window,
    room: number, // bins that fit
    pairs: Iterable<Pair>,
    of: (p: FlowSums) => number,
  ) {
    this.per = Math.max(1, Math.ceil(window.count / Math.max(1, room)));
    this.size = Math.ceil(window.count / this.per);
    for (const p of pairs) {
      const [from, to] = [this.at(p.from), this.at(p.to)];
      if (from < 0 || to < 0) continue;
      const key = from * this.size + to;
      let bin = this.all.get(key);
      if (!bin) this.all.set(key, (bin = { ...noFlow(), most: undefined }));
      addFlow(bin, p);
      if (!bin.most || of(p) > of(bin.most)) bin.most = p;
    }
  }

  private at(rank: number): number {
    const i = rank - this.window.first;
    return rank < 0 || i < 0 || i >= this.window.count ? -1 : Math.floor(i / this.per);
  }

  bin(from: number, to: number): Bin | undefined {
    return this.all.get(from * this.size + to);
  }

  // ranks returns the first and the last rank of a bin.
  ranks(bin: number): [first: number, last: number] {
    const first = this.window.first + bin * this.per;
    return [first, Math.min(first + this.per, this.window.first + this.window.count) - 1];
  }
}

// narrow returns a window with a quarter of the ranks, around both bins if possible, else with at least one rank of
// each; undefined: there is no smaller window.
export function narrow(bins: Bins, from: number, to: number): Window | undefined {
  const { window } = bins;
  const [lo] = bins.ranks(Math.min(from, to));
  const [, hi] = bins.ranks(Math.max(from, to));
  const count = Math.max(Math.min(8, window.count), Math.ceil(window.count / 4), hi - lo + 1);
  if (count >= window.count) return undefined;
  const middle = Math.floor((lo + hi + 1) / 2);
  return { first: Math.max(window.first, Math.min(middle - Math.floor(count / 2), window.first + window.count - count)), count };
}
