// SPDX-License-Identifier: Apache-2.0
// Colors: a hue for each group of regions, and shades of it for its regions.

import type { Head } from "./head";

export type Mode = "light" | "dark";

// useMode sets the style sheet's color mode.
export function useMode(mode: Mode): void {
  document.documentElement.dataset["theme"] = mode;
}

// Regions of waiting and idling are pale.
const quiet = /\b(wait|idle|sleep)\b/i;

type RGB = [red: number, green: number, blue: number];

// Hues by group, with the lightness in both modes.
const hues: Record<string, { h: number; s: number; light: number; dark: number }> = {
  "NCCL collectives": { h: 217, s: 58, light: 50, dark: 60 },
  "NCCL point-to-point": { h: 172, s: 52, light: 36, dark: 46 },
  "NCCL API": { h: 222, s: 12, light: 54, dark: 52 },
  "NCCL enqueue": { h: 222, s: 16, light: 70, dark: 44 },
  "NCCL network": { h: 95, s: 34, light: 45, dark: 48 },
  "NCCL proxy": { h: 220, s: 8, light: 78, dark: 32 },
  "CUDA kernels": { h: 268, s: 42, light: 58, dark: 64 },
  "CUDA memory": { h: 300, s: 30, light: 58, dark: 60 },
  COMPILER: { h: 215, s: 9, light: 68, dark: 42 },
  MPI: { h: 217, s: 58, light: 50, dark: 60 },
  Application: { h: 20, s: 22, light: 64, dark: 44 },
  Other: { h: 220, s: 6, light: 62, dark: 46 },
};
const spare = [330, 195, 140, 250, 350, 60];

function hslToRGB(h: number, s: number, l: number): RGB {
  const a = (s / 100) * Math.min(l / 100, 1 - l / 100);
  const f = (n: number) => {
    const k = (n + h / 30) % 12;
    return Math.round(255 * (l / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [f(0), f(8), f(4)];
}

const css = ([r, g, b]: RGB) => `rgb(${r},${g},${b})`;

// curveColors returns a color as CSS, and words of pixels for range, fill, both, and line.
function curveColors(rgb: RGB) {
  const word = (alpha: number) => ((alpha << 24) | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0]) >>> 0;
  return { css: css(rgb), words: [word(70), word(56), word(105), word(255)] as const };
}

export type Colors = ReturnType<typeof colors>;

// colors computes the palette. shown selects the regions that are not faded; undefined: all.
export function colors(head: Head, mode: Mode, shown?: (region: number) => boolean) {
  const dark = mode === "dark";
  const paper: RGB = dark ? [21, 24, 30] : [255, 255, 255];
  let next = 0;
  const hueOf = head.categories.map((name) => hues[name] ?? { h: spare[next++ % spare.length]!, s: 34, light: 52, dark: 56 });
  const seen = head.categories.map(() => 0);
  const out = {
    mode,
    css: [] as string[], // by region
    rgb: new Uint8Array(3 * head.regions.length), // by region, three each
    text: [] as string[], // by region: text color that is readable on it
    faded: new Uint8Array(head.regions.length), // by region: 1 if it is faded
    category: hueOf.map((c) => css(hslToRGB(c.h, c.s, dark ? c.dark : c.light))),
    paper: css(paper),
    stripe: dark ? "#1a1e25" : "#f7f8fa",
    line: dark ? "#2a303a" : "#e3e6eb",
    grid: dark ? "rgba(255,255,255,.055)" : "rgba(20,30,50,.06)",
    ink: dark ? "#e6e9ee" : "#1d2430",
    faint: dark ? "#8b94a3" : "#68717f",
    wait: dark ? "#ff9f43" : "#e8790c",
    waitRGB: (dark ? [255, 159, 67] : [232, 121, 12]) as RGB,
    collective: dark ? "#8db4ff" : "#1f4fa8",
    parent: dark ? "#c9cfda" : "#4a5260",
    transfer: dark ? "#a6d178" : "#4c7a22",
    message: dark ? "#5fd3bf" : "#0f766a",
    select: dark ? "#ffffff" : "#10151d",
    range: dark ? "rgba(141,180,255,.16)" : "rgba(31,79,168,.10)",
    path: dark ? "#ff6b8b" : "#c4123f",
    phase: dark ? ["#262c36", "#323a47"] : ["#e9edf3", "#d8dfe9"], // alternating
    phaseChosen: dark ? "#3f5f99" : "#b3cdf5",
    metric: curveColors(dark ? [222, 132, 178] : [168, 62, 118]),
  };
  head.regions.forEach((region, i) => {
    const c = hueOf[region.category] ?? hues["Other"]!;
    const n = seen[region.category] ?? 0;
    seen[region.category] = n + 1;
    // Neighbors in the list differ in lightness, and slightly in hue.
    const shade = [0, -9, 8, -4, 12, -13, 4][n % 7]!;
    let l = (dark ? c.dark : c.light) + shade;
    let s = c.s;
    if (quiet.test(region.name)) {
      l = dark ? 30 + shade / 4 : 84 + shade / 4;
      s *= 0.6;
    }
    let rgb = hslToRGB((c.h + [0, 10, -10, 5, -14, 14, 18][n % 7]! + 360) % 360, s, Math.max(16, Math.min(90, l)));
    const faded = shown !== undefined && !shown(i);
    out.faded[i] = faded ? 1 : 0;
    if (faded) rgb = rgb.map((v, k) => Math.round(paper[k]! + (0.3 * v + 0.7 * 128 - paper[k]!) * 0.16)) as RGB;
    out.css.push(css(rgb));
    out.rgb.set(rgb, 3 * i);
    const luminance = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
    out.text.push(faded ? out.faint : luminance > 140 ? "#10151d" : "#ffffff");
  });
  return out;
}
