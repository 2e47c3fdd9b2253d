// SPDX-License-Identifier: Apache-2.0
// Places in ascending lists.

// lowerBound is the first index whose entry is not less than v.
export function lowerBound(list: ArrayLike<number>, v: number): number {
  let lo = 0;
  let hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (list[mid]! < v) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

// firstAfter is the first index whose entry is greater than v.
export function firstAfter(list: ArrayLike<number>, v: number): number {
  let lo = 0;
  let hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (list[mid]! <= v) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

// lastAtMost is the index of the last entry that is not greater than v, −1: none.
export function lastAtMost(list: ArrayLike<number>, v: number): number {
  return firstAfter(list, v) - 1;
}
