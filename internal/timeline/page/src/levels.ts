// SPDX-License-Identifier: Apache-2.0
// Levels of detail of a lane.

// Level sums up a lane: each entry stands for consecutive bars, in the lowest level for head.leaf bars each, in the
// others for fan entries of the level below.
export interface Level {
  start: Float64Array;
  end: Float64Array;
  busy: Float32Array; // share of the time
  wait: Float32Array; // share of the busy time
  region: Uint32Array;
}

export const fan = 8;

export function emptyLevel(n: number): Level {
  return { start: new Float64Array(n), end: new Float64Array(n), busy: new Float32Array(n), wait: new Float32Array(n), region: new Uint32Array(n) };
}

// pyramid sums up levels until one entry remains.
export function pyramid(lowest: Level): Level[] {
  const all = [lowest];
  for (let below = lowest; below.start.length > 1; ) {
    const n = Math.ceil(below.start.length / fan);
    const level = emptyLevel(n);
    const times = new Map<number, number>();
    for (let i = 0; i < n; i++) {
      const from = i * fan;
      const to = Math.min(from + fan, below.start.length);
      let end = 0;
      let busy = 0;
      let waiting = 0;
      times.clear();
      for (let j = from; j < to; j++) {
        end = Math.max(end, below.end[j]!);
        const time = (below.end[j]! - below.start[j]!) * below.busy[j]!;
        busy += time;
        waiting += time * below.wait[j]!;
        const r = below.region[j]!;
        times.set(r, (times.get(r) ?? 0) + time + 1);
      }
      let most = -1;
      for (const [r, time] of times) {
        if (time > most) {
          most = time;
          level.region[i] = r;
        }
      }
      const start = below.start[from]!;
      level.start[i] = start;
      level.end[i] = end;
      level.busy[i] = end > start ? Math.min(1, busy / (end - start)) : 1;
      level.wait[i] = busy > 0 ? waiting / busy : 0;
    }
    all.push(level);
    below = level;
  }
  return all;
}
