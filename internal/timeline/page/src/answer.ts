// SPDX-License-Identifier: Apache-2.0
// The report's verdict and, below it, its answer: when ranks waited, where the waiting went, which operations cost the most.
// Each sentence links to its place.

import { byId, el, svg, table } from "./dom";
import * as f from "./format";
import type { Culprit, Said, Window, Worst } from "./head";
import type { Host } from "./host";

// Size of the picture of waiting over time, in its own units.
const width = 344;
const height = 54;

export function fillAnswer(host: Host): void {
  const { answer } = host.store.head;
  byId("answer").replaceChildren(
    ...overTime(host), el("h3", null, "In short"), el("div", { class: "said" }, ...answer.lines.flatMap((l) => said(host, l))), ...worst(host), ...more(host),
  );
}

// place is the text of a window: when, and how much was waited.
function place(host: Host, w: Window): string {
  const caused = w.rank >= 0 && w.waited > 0 ? `, ${f.percent(Math.min(w.back, w.waited), w.waited)} of it caused by ${host.store.head.ranks[w.rank]!.name}` : "";
  return `${f.time(w.from)} to ${f.time(w.to)}: ranks waited ${f.percent(w.share, 1)} of the time${caused}`;
}

// overTime draws the share of the ranks' time that was waiting, by window.
function overTime(host: Host): Node[] {
  const { answer, begin, duration } = host.store.head;
  const windows = answer.windows;
  const most = Math.max(0, ...windows.map((w) => w.share));
  if (windows.length < 2 || most === 0) return [];
  const worst = windows.reduce((a, b) => (b.share > a.share ? b : a));
  const readout = el("p", { class: "hint" }, place(host, worst));
  const x = (t: number) => ((t - begin) / Math.max(1, duration - begin)) * width;
  const bars = windows.map((w) => {
    const [a, b] = [Math.max(0, x(w.from)), Math.min(width, x(w.to))];
    const g = svg(
      "g", { class: "window" },
      svg("rect", { class: "room", x: a.toFixed(2), y: "0", width: Math.max(0.5, b - a).toFixed(2), height: String(height) }),
      w.share > 0 && svg("rect", { class: "waited", x: a.toFixed(2), y: (height * (1 - w.share / most)).toFixed(2), width: Math.max(1, b - a - 0.6).toFixed(2), height: ((height * w.share) / most).toFixed(2) }),
    );
    g.addEventListener("mouseenter", () => void (readout.textContent = place(host, w)));
    g.addEventListener("click", () => host.state.jump(w.from, w.to));
    return g;
  });
  const label = `Waiting over time, at most ${f.percent(most, 1)} of the ranks' time: ${place(host, worst)}`;
  return [
    el("h3", null, "Waiting over time"),
    svg("svg", { class: "over-time", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...bars, svg("path", { class: "axis", d: `M0 ${height}H${width}` })),
    readout,
  ];
}

function said(host: Host, l: Said): HTMLElement[] {
  const go = l.to !== undefined ? () => host.state.jump(l.from ?? 0, l.to!) : l.search !== undefined ? () => host.list(l.search!) : undefined;
  const text = go ? el("button", { class: "sentence", title: l.to !== undefined ? "Show that time" : "List these operations", onclick: go }, l.text) : el("span", null, l.text);
  return [el("span", { class: "sub" }, l.name), text];
}

// worst lists the operations with the most waiting. A click shows one and selects it on the rank that arrived last.
function worst(host: Host): Node[] {
  const { answer, ranks } = host.store.head;
  if (answer.worst.length === 0) return [];
  const phases = answer.worst.some((w) => w.phase);
  const rows = answer.worst.map((w) => [
    [
      el("button", { class: "sentence", title: `Go to ${f.exact(w.at)}`, onclick: () => go(host, w) }, `${w.operation} ${f.count(w.ordinal)}`),
      el("span", { class: "sub" }, [w.comm, phases && w.phase, f.time(w.at)].filter((s) => s).join(" · ")),
    ],
    w.rank >= 0 ? ranks[w.rank]!.name : "?", f.time(w.caused), w.uncertainty === null ? "?" : f.time(w.uncertainty),
  ]);
  const uncertainty = el("th", { scope: "col", title: "The uncertainty of the waiting, as far as that of the times is known" }, "±");
  return [el("h3", null, "What cost the most"), table("worst", ["operation", "waited for", "all waited", uncertainty], rows)];
}

function go(host: Host, w: Worst): void {
  const skew = Math.max(1000, w.at - w.since);
  host.state.jump(w.since - 0.5 * skew, w.at + skew);
  const row = host.store.head.ranks[w.rank]?.row ?? -1;
  if (row >= 0) host.selectAt(row, w.at);
}

function more(host: Host): Node[] {
  const link = (text: string, tab: "waits" | "path" | "steps" | "bandwidth") => el("button", { class: "link", onclick: () => host.tab(tab) }, text);
  const { head } = host.store;
  return [el("h3", null, "More"), link("Waiting by rank", "waits"), ...(head.path ? [link("Critical path by rank and operation", "path")] : []), ...((head.phases ?? []).length > 0 ? [link("Phases, and a comparison of two", "steps")] : []), ...(head.bandwidth ? [link("Bandwidth over size", "bandwidth")] : [])];
}

// fillVerdict shows the verdict on what made the ranks wait: its sentence, and each culprit with the evidence. If files of
// the archive are damaged or missing, that comes first, because the page is then incomplete.
export function fillVerdict(host: Host): void {
  const { verdict, problems } = host.store.head;
  const section = byId("verdict");
  section.hidden = verdict.text === "" && problems.length === 0;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more, see About)` : "";
  const damage = problems.length > 0 ? [el("p", { class: "damage alarm", role: "alert" }, `Not all of the archive is shown: ${problems[0]}${more}`)] : [];
  section.replaceChildren(...damage, el("p", { class: verdict.stands_out ? "answer found" : "answer" }, verdict.text), ...verdict.culprits.map((c) => culprit(host, c)));
}

function culprit(host: Host, c: Culprit): HTMLElement {
  const rank = host.store.head.ranks[c.rank];
  const name = rank?.name ?? `Rank ${c.rank}`;
  const figures = [
    f.cause(c.kind),
    c.caused > 0 && `${f.percent(c.caused, 1)} of all waiting`,
    Math.round(100 * c.share) < Math.round(100 * c.caused) && `${f.percent(c.share, 1)} explained by its longer work`,
    c.time_share > 0 && `${f.percent(c.time_share, 1)} of the run`,
    c.pattern !== "" && c.pattern,
    `confidence ${c.confidence > 0.999 ? "> 99.9 %" : f.percent(c.confidence, 1)}`,
  ].filter((s) => s !== false);
  return el(
    "button",
    {
      class: "culprit", title: c.late > 0 ? `Go to where it cost the most: ${f.time(c.late)} late` : "Show its row",
      onclick: () => {
        if (c.late > 0) host.state.jump(c.at - 3 * c.late, c.at + 2 * c.late);
        if (rank && rank.row >= 0) host.state.focusRow(rank.row);
      },
    },
    el("b", null, name), el("span", { class: "figures" }, figures.join(" · ")), !host.store.head.verdict.text.includes(c.evidence) && el("span", { class: "sub" }, c.evidence),
  );
}
