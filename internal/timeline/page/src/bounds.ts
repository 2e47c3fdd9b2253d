// SPDX-License-Identifier: Apache-2.0
// Binary searches in ascending lists.

function bound(list: ArrayLike<number>, before: (entry: number) => boolean): number {
  let lo = 0;
  let hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (before(list[mid]!)) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

// lowerBound returns the first index whose entry is not less than v.
export function lowerBound(list: ArrayLike<number>, v: number): number {
  return bound(list, (entry) => entry < v);
}

// firstAfter returns the first index whose entry is greater than v.
export function firstAfter(list: ArrayLike<number>, v: number): number {
  return bound(list, (entry) => entry <= v);
}

// lastAtMost returns the index of the last entry that is not greater than v; −1: none.
export function lastAtMost(list: ArrayLike<number>, v: number): number {
  return firstAfter(list, v) - 1;
}
