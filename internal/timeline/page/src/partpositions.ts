// SPDX-License-Identifier: Apache-2.0
// The positions of a collective's parts among the shown rows. A collective can have ten thousand parts, each with its
// bar in a block of its own, so only those in the picture are unpacked.

import type { Instance } from "./blocks";
import { lowerBound } from "./bounds";
import type { Rows } from "./rows";
import type { Lane, Store } from "./store";

interface Course {
  bars: number[]; // from top to bottom
  heights: Float64Array; // of the bars, from the top of all rows
}

export class Courses {
  private items: unknown; // layout for which the courses hold
  private known = new WeakMap<Instance, Course | false>();

  constructor(
    private readonly store: Store,
    private readonly rows: Rows,
  ) {}

  // height is the distance of a lane, or of the closed group around it, from the top of all rows, at its middle.
  height(lane: Lane): number | undefined {
    const item = this.rows.of(lane.row);
    if (!item) return undefined;
    const at = item.lanes.find((l) => l.lane === lane);
    return item.y + (at ? at.y + at.height / 2 : item.height / 2);
  }

  // between returns a collective's parts between two heights, and one above and below; undefined: one is not
  // shown.
  between(i: Instance, top: number, bottom: number): { bar: number; y: number }[] | undefined {
    const course = this.of(i);
    if (!course) return undefined;
    const { bars, heights } = course;
    const first = Math.max(0, lowerBound(heights, top) - 1);
    return bars.slice(first, lowerBound(heights, bottom) + 1).map((bar, k) => ({ bar, y: heights[first + k]! }));
  }

  private of(i: Instance): Course | false {
    if (this.items !== this.rows.items) {
      this.items = this.rows.items;
      this.known = new WeakMap();
    }
    let course = this.known.get(i);
    if (course === undefined) this.known.set(i, (course = this.make(i)));
    return course;
  }

  private make(i: Instance): Course | false {
    const all: [number, number][] = [];
    for (const { bar } of i.parts) {
      const y = this.height(this.store.laneOf(bar));
      if (y === undefined) return false;
      all.push([bar, y]);
    }
    all.sort((p, q) => p[1] - q[1]);
    return { bars: all.map((p) => p[0]), heights: Float64Array.from(all, (p) => p[1]) };
  }
}
