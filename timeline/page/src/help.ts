// SPDX-License-Identifier: Apache-2.0

import { byId, el } from "./dom";

const topics: [string, [string[], string][]][] = [
  [
    "Move",
    [
      [["drag"], "move in time and over the rows"],
      [["wheel"], "over the rows; with Shift in time"],
      [["Ctrl wheel", "pinch"], "zoom at the pointer"],
      [["←", "→", "A", "D"], "move in time; with Shift further"],
      [["↑", "↓"], "row before, after"],
      [["+", "−", "W", "S"], "zoom in, out"],
      [["0", "1"], "show the whole run; without its start-up"],
      [["Z", "F"], "zoom to the selection, or the range"],
      [["Alt ←", "Alt →"], "what was shown before, after (of the browser)"],
      [["double click"], "zoom to a bar"],
    ],
  ],
  [
    "Select",
    [
      [["click", "tap"], "a bar: everything that is known of it; a curve: its value"],
      [[",", "."], "bar before, after on the row; at first the first one in sight"],
      [["U"], "what caused the selected bar"],
      [["J"], "the first thing that it caused"],
      [["Shift drag"], "a range of time, with statistics; also on the ruler"],
      [["Esc"], "select nothing"],
    ],
  ],
  [
    "Find",
    [
      [["/"], "search: words in names of regions, groups, rows, communicators and metrics"],
      [["N"], "next match; with Shift the one before"],
      [["X"], "next wait; with Shift the one before"],
    ],
  ],
  [
    "Show",
    [
      [["G"], "all ranks in one picture, or rows"],
      [["H"], "waiting"],
      [["C"], "collectives and messages"],
      [["T"], "transfers"],
      [["P"], "calls to what they caused"],
      [["V"], "the critical path"],
      [["M"], "metrics"],
      [["Enter"], "open or close the row; of a metric: what it is"],
      [["O"], "pin the row, and what is in it, above all others; again: no longer"],
      [["K"], "hide the row, and what is in it; with Shift all that is hidden comes back"],
      [["R"], "open or close all rows"],
      [["L"], "dark or light"],
      [["I"], "panel"],
      [["E"], "save what is shown as PNG; with Shift as SVG"],
    ],
  ],
];

export function fillHelp(): void {
  byId("help-body").append(
    ...topics.map(([title, keys]) =>
      el("section", null, el("h3", null, title), el("dl", null, ...keys.flatMap(([names, text]) => [el("dt", null, ...names.flatMap((n, i) => [i > 0 ? " " : "", el("kbd", null, n)])), el("dd", null, text)]))),
    ),
  );
}
