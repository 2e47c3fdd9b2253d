// SPDX-License-Identifier: Apache-2.0
// An order of ranks in which similar ranks are near each other.

const rounds = 24;

// likeness returns for each line of numbers (all of one length) its position along the direction in which the lines
// differ most: the first principal component, by power iteration. Similar lines get similar positions. NaN counts as
// the mean of its column.
export function likeness(lines: ArrayLike<number>[]): Float64Array {
  const out = new Float64Array(lines.length);
  const columns = lines[0]?.length ?? 0;
  const mean = new Float64Array(columns);
  for (let c = 0; c < columns; c++) {
    let [sum, n] = [0, 0];
    for (const l of lines) if (!Number.isNaN(l[c]!)) (sum += l[c]!), n++;
    mean[c] = n > 0 ? sum / n : 0;
  }
  const at = (l: ArrayLike<number>, c: number) => (Number.isNaN(l[c]!) ? 0 : l[c]! - mean[c]!);
  // It starts with the line farthest from the mean, so that the result is deterministic.
  let far = 0;
  let axis = new Float64Array(columns);
  for (const l of lines) {
    let d = 0;
    for (let c = 0; c < columns; c++) d += at(l, c) ** 2;
    if (d > far) {
      far = d;
      axis = Float64Array.from({ length: columns }, (_, c) => at(l, c));
    }
  }
  if (far === 0) return out;
  for (let i = 0; i < rounds; i++) {
    const next = new Float64Array(columns);
    lines.forEach((l, r) => {
      let p = 0;
      for (let c = 0; c < columns; c++) p += at(l, c) * axis[c]!;
      out[r] = p;
      for (let c = 0; c < columns; c++) next[c]! += p * at(l, c);
    });
    const length = Math.hypot(...next);
    if (length === 0) break;
    axis = next.map((v) => v / length);
  }
  return out;
}
