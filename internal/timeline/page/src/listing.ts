// SPDX-License-Identifier: Apache-2.0
// Lists of the operations that begin in a range of time.

import { placesOf, type BarNotes } from "./blocks";
import { lowerBound } from "./bounds";
import type { Note } from "./columns";
import type { Filter, Subject } from "./filter";
import type { Lane, Store } from "./store";
import { Words } from "./words";

// Operation is a part of a collective, or an end of a message, on one rank.
export interface Operation {
  bar: number;
  row: number;
  rank: number; // of the job, index into ranks; −1: not known
  comm: number;
  fn: string;
  ordinal: number;
  size: number;
  start: number;
  length: number;
  wait: number;
  waitFor: number; // rank of the job that was waited for; −1: none
  startUp: boolean; // the wait is in the first operation of the communicator
  together: number; // operations of the bar; more than one: the times are of all of them
  notes: () => Note[];
}

export interface Listing {
  from: number;
  to: number;
  all: Operation[];
  looked: number; // at operations
  left: boolean; // there are more than requested
}

const atOnce = 32; // lanes

// mostRows is the number of rows that are listed without confirmation: each row's bars are in blocks of its own.
export const mostRows = 2048;

export class Lister {
  private readonly words: Words;

  constructor(private readonly store: Store) {
    this.words = new Words(store.head);
  }

  // list lists at most most operations that match a filter, rank by rank. It stops when going returns false.
  async list(from: number, to: number, filter: Filter, most: number, going: (share: number) => boolean = () => true): Promise<Listing | undefined> {
    const out: Listing = { from, to, all: [], looked: 0, left: false };
    const lanes = this.store.operationLanes(filter);
    let shown = performance.now();
    for (const [n, lane] of lanes.entries()) {
      if (n % atOnce === 0) await this.store.ahead(lanes.slice(n, n + atOnce), from, to, { operations: true, notes: true }); // for whom was waited is in these
      await this.lane(lane, filter, most, out);
      if (out.left) break;
      if (performance.now() - shown > 50) {
        if (!going(n / lanes.length)) return undefined;
        await new Promise((done) => setTimeout(done, 0)); // lets pictures be drawn
        shown = performance.now();
      }
    }
    return out;
  }

  private async lane(lane: Lane, filter: Filter, most: number, out: Listing): Promise<void> {
    const { store } = this;
    const { chunk, leaf, comms, functions } = store.head;
    const level = lane.levels[0]!;
    const rank = this.store.rankOf(lane.row);
    const first = Math.max(0, lowerBound(level.start, out.from) - 1);
    for (let k = Math.floor((first * leaf) / chunk); k * chunk < lane.count; k++) {
      if (level.start[(k * chunk) / leaf]! >= out.to) return;
      const bars = await store.bars(lane, k).promise;
      let notes: BarNotes | undefined;
      for (let i = lowerBound(bars.start, out.from); i < bars.start.length && bars.start[i]! < out.to; i++) {
        const bar = lane.first + k * chunk + i;
        const entry = store.operations(lane.row, bar);
        if (!entry) continue;
        const o = entry.value ?? (await entry.promise); // does not wait for what is there
        const places = placesOf(o, bar);
        if (places.length === 0) continue;
        if (filter.attributes || bars.wait[i]! > 0) notes ??= await store.notes(lane, k).promise;
        for (const j of places) {
          const instance = store.peekInstance(o.instance[j]!) ?? (await store.instance(o.instance[j]!));
          const index = i;
          const wait = notes?.waits.get(i);
          const own = o.attributes;
          const of: Operation = {
            bar, row: lane.row, rank, comm: instance.comm, fn: functions[instance.fn] ?? "?", ordinal: instance.ordinal, size: o.size[j]!, start: bars.start[i]!, length: bars.length[i]!,
            wait: bars.wait[i]!, waitFor: wait?.rank ?? -1, startUp: wait?.first ?? false, together: places.length,
            notes: () => [...own.of(j), ...(store.notes(lane, k).value?.attributes.of(index) ?? [])],
          };
          out.looked++;
          if (!filter.meets(this.subject(of, comms[of.comm]?.name ?? ""))) continue;
          if (out.all.length === most) {
            out.left = true;
            return;
          }
          out.all.push(of);
        }
      }
    }
  }

  private subject(o: Operation, comm: string): Subject {
    return {
      name: `${o.fn} ${comm} ${this.store.head.rows[o.row]!.name}`.toLowerCase(), comm: comm.toLowerCase(), rank: o.rank, number: o.ordinal, size: o.size, time: o.length, wait: o.wait, begin: o.start,
      attribute: (name) => this.attribute(o, name),
    };
  }

  // attribute returns the attributes of an operation whose name begins with name, in lower case.
  attribute(o: Operation, name: string): string[] {
    const { attributes } = this.store.head;
    return o.notes().filter((n) => attributes.find((a) => a.id === n.id)?.name.toLowerCase().startsWith(name)).map((n) => this.words.plain(n).toLowerCase());
  }
}
