// SPDX-License-Identifier: Apache-2.0

import { byId, el } from "./dom";

const topics: Record<string, [keys: string[], text: string][]> = {
  Move: [
    [["drag"], "move in time and over the rows"],
    [["wheel"], "over the rows; with Shift in time"],
    [["Ctrl wheel", "pinch"], "zoom at the pointer"],
    [["←", "→", "A", "D"], "move in time; with Shift further"],
    [["↑", "↓"], "previous row, next row"],
    [["+", "−", "W", "S"], "zoom in, out"],
    [["0", "1"], "show the whole run; without its start-up"],
    [["Z", "F"], "zoom to the selection, or the range"],
    [["Alt ←", "Alt →"], "previous view, next view (in the browser's history)"],
    [["double click"], "zoom to a bar"],
  ],
  Select: [
    [["click", "tap"], "a bar, to see all that is known about it; a curve, for its value"],
    [[",", "."], "previous bar, next bar on the row; if none is selected, the first one in view"],
    [["U"], "what caused the selected bar"],
    [["J"], "the first thing that it caused"],
    [["Shift drag"], "a range of time, with statistics; also on the ruler"],
    [["Esc"], "select nothing"],
  ],
  Find: [
    [["/"], "search: words in names of regions, groups, rows, communicators and metrics"],
    [["N"], "next match; with Shift the previous one"],
    [["X"], "next wait; with Shift the previous one"],
  ],
  Show: [
    [["G"], "all ranks in one picture, or rows"],
    [["H"], "waiting"],
    [["C"], "collectives and messages"],
    [["T"], "transfers"],
    [["P"], "lines from calls to what they caused"],
    [["V"], "the critical path"],
    [["M"], "metrics"],
    [["Enter"], "open or close the row; on a metric, show what it is"],
    [["O"], "pin the row, with what is in it, above all others; press again to unpin it"],
    [["K"], "hide the row, with what is in it; with Shift, show all hidden rows"],
    [["R"], "open or close all rows"],
    [["L"], "dark or light"],
    [["I"], "panel"],
    [["E"], "save what is shown as PNG; with Shift as SVG"],
  ],
};

export function fillHelp(): void {
  byId("help-body").append(
    ...Object.entries(topics).map(([title, keys]) =>
      el("section", null, el("h3", null, title), el("dl", null, ...keys.flatMap(([names, text]) => [el("dt", null, ...names.flatMap((n, i) => [i > 0 && " ", el("kbd", null, n)])), el("dd", null, text)]))),
    ),
  );
}
