// SPDX-License-Identifier: Apache-2.0
// Bandwidth over size: the plot that the tool lays out (internal/report/plot.go), both axes logarithmic, and its table.

import { byId, el, svg, table } from "./dom";
import * as f from "./format";
import type { Plot, PlotLine, PlotPoint, Tick } from "./head";
import type { Host } from "./host";

// Size of the picture and of the plot in it, in its own units: px where the panel is as wide as on large screens.
const width = 320;
const height = 250;
const left = 36;
const right = width - 10;
const top = 10;
const bottom = height - 26;

const x = (share: number) => (left + share * (right - left)).toFixed(1);
const y = (share: number) => (bottom - share * (bottom - top)).toFixed(1);

// fillBandwidth shows the tab, unless no operation was recorded with two sizes.
export function fillBandwidth(host: Host): void {
  const plot = host.store.head.bandwidth;
  byId("tab-bandwidth").hidden = plot === undefined;
  if (!plot) return;
  const readout = el("p", { class: "hint" }, "Point to a mark to see its figures.");
  const say = (line: PlotLine, p: PlotPoint) => void (readout.textContent = `${line.name}: ${figures(p)}`);
  byId("bandwidth").replaceChildren(
    el("h2", null, "Bus bandwidth over size"),
    el("p", { class: "sub" }, "GB/s by the size of an operation, medians, start-up left out. Both axes are logarithmic."),
    picture(plot, say), readout, names(plot),
    plot.left > 0 && el("p", { class: "sub" }, `${f.plural(plot.left, "more curve", "more curves")} of fewer bytes are not drawn.`) || "",
    el("details", null, el("summary", null, "Figures"), numbers(plot)),
  );
}

function figures(p: PlotPoint): string {
  return `${p.size}, ${p.busbw} GB/s (algorithm bandwidth ${p.algbw}), ${f.plural(p.operations, "operation", "operations")}`;
}

// describe returns the plot in words.
export function describe(plot: Plot): string {
  const ends = plot.lines
    .filter((l) => l.points.length > 0)
    .map((l) => {
      const [first, last] = [l.points[0]!, l.points.at(-1)!];
      return `${l.name}: ${first.busbw} GB/s at ${first.size}` + (first === last ? "" : `, ${last.busbw} GB/s at ${last.size}`);
    });
  return `Bus bandwidth over size. ${ends.join("; ")}. All figures are in the table below.`;
}

// colored gives an element the line's colors; style.css takes that of the theme.
function colored<E extends HTMLElement | SVGElement>(e: E, line: PlotLine): E {
  e.style.setProperty("--light", line.colors[0]);
  e.style.setProperty("--dark", line.colors[1]);
  return e;
}

const stroke = (line: PlotLine) => (line.replayed ? "line replayed" : "line");

function picture(plot: Plot, say: (line: PlotLine, p: PlotPoint) => void): SVGElement {
  const grid = (d: string) => svg("path", { class: "grid", d });
  const half = 24; // of the widest text below the picture
  const sizeLabel = (t: Tick) => (Number(x(t.at)) > width - half ? label(String(width), String(bottom + 16), "end", t.text) : label(x(t.at), String(bottom + 16), "middle", t.text));
  const label = (x: string, y: string, anchor: string, text: string) => svg("text", { x, y, "text-anchor": anchor }, text);
  return svg(
    "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe(plot) },
    ...plot.sizes.flatMap((t) => [grid(`M${x(t.at)} ${top}V${bottom}`), sizeLabel(t)]),
    ...plot.bandwidths.flatMap((t) => [grid(`M${left} ${y(t.at)}H${right}`), label(String(left - 5), String(Number(y(t.at)) + 4), "end", t.text)]),
    svg("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }),
    ...plot.lines.map((line) =>
      colored(
        svg(
          "g", { class: "curve" },
          line.points.length > 1 && svg("path", { class: stroke(line), d: "M" + line.points.map((p) => `${x(p.x)} ${y(p.y)}`).join("L") }),
          ...line.points.map((p) => mark(line, p, say)),
        ),
        line,
      ),
    ),
  );
}

// mark draws a point with a target large enough for fingers.
function mark(line: PlotLine, p: PlotPoint, say: (line: PlotLine, p: PlotPoint) => void): SVGElement {
  const g = svg("g", { class: "mark", transform: `translate(${x(p.x)} ${y(p.y)})` }, svg("circle", { class: "room", r: "9" }), svg("path", { d: line.mark }));
  for (const event of ["mouseenter", "click"]) g.addEventListener(event, () => say(line, p));
  return g;
}

function names(plot: Plot): HTMLElement {
  return el(
    "ul", { class: "curves" },
    ...plot.lines.map((line) => {
      const key = svg("svg", { viewBox: "-15 -7 30 14", width: "30", height: "14", "aria-hidden": "true" }, svg("path", { class: stroke(line), d: "M-15 0H15" }), svg("path", { d: line.mark }));
      key.setAttribute("class", "curve");
      return el("li", null, colored(key, line), el("span", null, line.name));
    }),
  );
}

function numbers(plot: Plot): HTMLElement {
  const rows = plot.lines.flatMap((line) => [
    [el("th", { scope: "rowgroup", colspan: "4" }, line.name)], ...line.points.map((p) => [el("th", { scope: "row" }, p.size), p.busbw, p.algbw, f.count(p.operations)]),
  ]);
  return table("", ["size", "GB/s", "algorithm", "operations"], rows);
}
