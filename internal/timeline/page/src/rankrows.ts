// SPDX-License-Identifier: Apache-2.0
// The positions of ranks in the picture of all ranks: in an order, several per line if there is not enough room.

import type { Rank } from "./head";

export const orders = ["rank", "host", "waiting", "caused", "back", "role", "likeness"] as const;
export type Order = (typeof orders)[number];

const least = 2; // pixels of a line
const most = 24;

export class RankRows {
  order: number[] = []; // ranks, from the top
  first = 0; // index in order of the first visible rank
  count = 0; // number of visible ranks
  per = 1; // ranks of a line
  height = least; // of a line, pixels
  by: Order = "rank";
  private places = new Int32Array(0); // by rank: place in order

  constructor(private readonly ranks: Rank[]) {
    this.sort("rank");
    this.all();
  }

  // sort sorts the ranks by an order; equal ones stay sorted by number. "role" and "likeness" need places.
  sort(by: Order, places?: ArrayLike<number>): void {
    this.by = by;
    const { ranks } = this;
    const weight = (r: number) => (by === "waiting" ? -ranks[r]!.waited : by === "caused" ? -ranks[r]!.caused : by === "back" ? -ranks[r]!.back : (places?.[r] ?? 0));
    const hosts = new Map([...new Set(ranks.map((r) => r.host))].map((h, i) => [h, i]));
    const host = (r: number) => (by === "host" ? hosts.get(ranks[r]!.host)! : 0);
    this.places = new Int32Array(0);
    this.order = ranks.map((_, r) => r).sort((a, b) => host(a) - host(b) || weight(a) - weight(b) || a - b);
  }

  all(): void {
    this.first = 0;
    this.count = this.order.length;
  }

  get whole(): boolean {
    return this.count === this.order.length;
  }

  // fit distributes the lines over a height.
  fit(room: number): void {
    this.count = Math.max(1, Math.min(this.count, this.order.length));
    this.first = Math.max(0, Math.min(this.first, this.order.length - this.count));
    const lines = Math.max(1, Math.floor(room / least));
    this.per = Math.ceil(this.count / lines);
    this.height = this.per > 1 ? least : Math.max(least, Math.min(most, Math.floor(room / Math.max(1, this.count))));
  }

  get lines(): number {
    return Math.ceil(this.count / this.per);
  }

  // of returns the ranks of a line.
  of(line: number): number[] {
    const from = this.first + line * this.per;
    return this.order.slice(from, Math.min(from + this.per, this.first + this.count));
  }

  // lineOf returns the line of a rank; undefined: it is not visible.
  lineOf(rank: number): number | undefined {
    if (this.places.length !== this.order.length) {
      this.places = new Int32Array(this.order.length);
      this.order.forEach((r, i) => (this.places[r] = i));
    }
    const at = (this.places[rank] ?? -1) - this.first;
    return at < 0 || at >= this.count ? undefined : Math.floor(at / this.per);
  }

  // at returns the line at a height; −1: none.
  at(y: number): number {
    const line = Math.floor(y / this.height);
    return line >= 0 && line < this.lines ? line : -1;
  }

  // narrow shows fewer ranks, around a line, so that each gets the given number of pixels.
  narrow(line: number, room: number, pixels = 12): void {
    const middle = this.first + (line + 0.5) * this.per;
    this.count = Math.max(1, Math.min(this.count, Math.floor(room / pixels)));
    this.first = Math.round(middle - this.count / 2);
    this.fit(room);
  }

  // move scrolls by a number of ranks.
  move(ranks: number, room: number): void {
    this.first += ranks;
    this.fit(room);
  }
}
