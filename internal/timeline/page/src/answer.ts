// SPDX-License-Identifier: Apache-2.0
// The report's answer below its verdict: when ranks waited, where the waiting went, which operations cost the most.
// Each sentence links to its place.

import { byId, el, svg } from "./dom";
import * as f from "./format";
import type { Said, Window, Worst } from "./head";
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
  const back = w.rank >= 0 && w.waited > 0 ? `, ${f.percent(Math.min(w.back, w.waited), w.waited)} of it goes back to ${host.store.head.ranks[w.rank]!.name}` : "";
  return `${f.time(w.from)} to ${f.time(w.to)}: ranks waited ${f.percent(w.share, 1)} of the time${back}`;
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
    g.addEventListener("click", () => host.go(w.from, w.to));
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
  const go = l.to !== undefined ? () => host.go(l.from ?? 0, l.to!) : l.search !== undefined ? () => host.list(l.search!) : undefined;
  const text = go ? el("button", { type: "button", class: "sentence", title: l.to !== undefined ? "Show that time" : "List these operations", onclick: go }, l.text) : el("span", null, l.text);
  return [el("span", { class: "sub" }, l.name), text];
}

// worst lists the operations with the most waiting. A click shows one and selects it on the rank that arrived last.
function worst(host: Host): Node[] {
  const { answer, ranks } = host.store.head;
  if (answer.worst.length === 0) return [];
  const phases = answer.worst.some((w) => w.phase);
  const head = (text: string) => el("th", { scope: "col" }, text);
  return [
    el("h3", null, "What cost the most"),
    el(
      "table", { class: "worst" }, el("tr", null, head("operation"), head("waited for"), head("all waited"), el("th", { scope: "col", title: "The uncertainty of the waiting, as far as that of the times is known" }, "±")),
      ...answer.worst.map((w) =>
        el(
          "tr", null,
          el(
            "td", null, el("button", { type: "button", class: "sentence", title: `Go to ${f.exact(w.at)}`, onclick: () => go(host, w) }, `${w.operation} ${f.count(w.ordinal)}`),
            el("span", { class: "sub" }, [w.comm, phases && w.phase, f.time(w.at)].filter((s) => s).join(" · ")),
          ),
          el("td", null, w.rank >= 0 ? ranks[w.rank]!.name : "?"), el("td", null, f.time(w.caused)), el("td", null, w.uncertainty === null ? "?" : f.time(w.uncertainty)),
        ),
      ),
    ),
  ];
}

function go(host: Host, w: Worst): void {
  const skew = Math.max(1000, w.at - w.since);
  host.go(w.since - 0.5 * skew, w.at + skew);
  const row = host.store.head.ranks[w.rank]?.row ?? -1;
  if (row >= 0) host.selectAt(row, w.at);
}

function more(host: Host): Node[] {
  const link = (text: string, tab: "waits" | "path" | "steps" | "bandwidth") => el("button", { type: "button", class: "link", onclick: () => host.tab(tab) }, text);
  const { head } = host.store;
  return [el("h3", null, "More"), link("Waiting by rank", "waits"), ...(head.path ? [link("Critical path by rank and operation", "path")] : []), ...((head.phases ?? []).length > 0 ? [link("Phases, and a comparison of two", "steps")] : []), ...(head.bandwidth ? [link("Bandwidth over size", "bandwidth")] : [])];
}
