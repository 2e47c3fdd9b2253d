// SPDX-License-Identifier: Apache-2.0
// A cache that unpacks blocks on demand and keeps those that pictures need.

import { Columns } from "./columns";
import type { Head } from "./head";
import type { Source } from "./source";

// atOnce is how many blocks are unpacked at a time from a source that delivers one at a time.
const atOnce = 4;

export interface Entry<T> {
  value?: T;
  promise: Promise<T>;
  used: number;
  size: number;
}

// Cache unpacks blocks.
export class Cache {
  readonly head: Head;
  onLoad: () => void = () => {};
  onError: (e: unknown) => void = () => {};
  loading = 0;
  budget = 8_000_000; // of bars that are unpacked at the same time, beyond those in the picture
  held = 0; // bars, or as much as
  private readonly cache = new Map<number, Entry<unknown>>();
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private tick = 0;

  constructor(private readonly source: Source) {
    this.head = source.head;
  }

  // raw returns a block unpacked without keeping it.
  protected raw(block: number): Promise<Uint8Array> {
    return this.source.block(block);
  }

  load<T>(block: number, size: number, make: (c: Columns) => T): Entry<T> {
    let e = this.cache.get(block) as Entry<T> | undefined;
    if (!e) {
      this.loading++;
      const entry: Entry<T> = {
        used: 0,
        size,
        promise: this.turn(() => this.source.block(block)).then((bytes) => {
          entry.value = make(new Columns(bytes));
          this.loading--;
          this.onLoad();
          return entry.value;
        }),
      };
      entry.promise.catch((err) => {
        this.loading--;
        this.onError(err);
      });
      e = entry;
      this.cache.set(block, e as Entry<unknown>);
      this.held += size;
    }
    e.used = this.tick;
    return e;
  }

  // turn limits how many blocks are unpacked at a time. The latest requests come first, because earlier ones may
  // have scrolled out of the picture, and pictures are drawn in between.
  private turn(what: () => Promise<Uint8Array>): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.waiting.push(() => {
        this.running++;
        what()
          .then(resolve, reject)
          .finally(() => {
            this.running--;
            this.waiting.pop()?.();
          });
      });
      if (this.running < (this.source.atOnce ?? atOnce)) this.waiting.pop()!();
    });
  }

  // frame starts a new picture: blocks that the pictures before it did not need may be dropped.
  frame(): void {
    this.tick++;
    if (this.held <= this.budget) return;
    const old = [...this.cache].filter(([, e]) => e.value !== undefined && e.used < this.tick - 1).sort((a, b) => a[1].used - b[1].used);
    for (const [block, e] of old) {
      if (this.held <= this.budget * 0.8) break;
      this.cache.delete(block);
      this.held -= e.size;
    }
  }
}
