// SPDX-License-Identifier: Apache-2.0
// Finding the bar at a point of the picture.

import { firstAfter } from "./bounds";
import type { Box } from "./boxes";
import type { State } from "./state";
import type { Lane } from "./store";

// pick returns the bar at a point, or the nearest one within some pixels; undefined: there is none.
export function pick(state: State, boxes: Box[], x: number, y: number, within = 4): number | undefined {
  const { rows, view } = state;
  const item = rows.at(y + view.top);
  const inside = y + view.top - (item?.y ?? 0);
  const lanes = item?.lanes.filter((l) => inside >= l.y - 1 && inside <= l.y + l.height + 1) ?? [];
  for (const { lane } of lanes.filter((l) => l.marks)) {
    const mark = nearest(state, lane, x, Math.min(within, 3));
    if (mark !== undefined) return mark;
  }
  const lane = lanes[0]?.lane;
  if (!lane) return undefined;
  let best: number | undefined;
  let distance = within + 1;
  for (const b of boxes) {
    if (b.bar < lane.first || b.bar >= lane.first + lane.count) continue;
    const d = Math.max(b.x - x, x - b.x - b.width, 0);
    if (d < distance || (d === distance && d === 0)) {
      distance = d;
      best = b.bar;
    }
  }
  return best ?? small(state, lane, x, within);
}

// small returns the longest bar near a point among those narrower than a pixel.
function small(state: State, lane: Lane, x: number, within: number): number | undefined {
  return look(state, lane, x, within, (_, length) => length);
}

// nearest returns the mark nearest to a point.
function nearest(state: State, lane: Lane, x: number, within: number): number | undefined {
  const at = state.view.time(x);
  return look(state, lane, x, within, (start) => -Math.abs(start - at));
}

function look({ store, view }: State, lane: Lane, x: number, within: number, worth: (start: number, length: number) => number): number | undefined {
  const from = view.time(x - within);
  const to = view.time(x + within);
  const level = lane.levels[0]!;
  const { leaf, chunk } = store.head;
  let found: number | undefined;
  let most = -Infinity;
  let looked = 0;
  for (let n = firstAfter(level.end, from); n < level.start.length && level.start[n]! <= to && looked < 4000; n++) {
    const bars = store.bars(lane, Math.floor((n * leaf) / chunk)).value;
    if (!bars) continue;
    const first = (n * leaf) % chunk;
    for (let i = first; i < Math.min(first + leaf, bars.start.length); i++, looked++) {
      const s = bars.start[i]!;
      if (s + bars.length[i]! < from || s > to || worth(s, bars.length[i]!) <= most) continue;
      most = worth(s, bars.length[i]!);
      found = lane.first + n * leaf + i - first;
    }
  }
  return found;
}
