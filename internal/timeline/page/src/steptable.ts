// SPDX-License-Identifier: Apache-2.0
// The application's phases: their durations, and the causes of differences.

import { sized } from "./canvas";
import { byId, el, select, table, type Cell } from "./dom";
import * as f from "./format";
import type { Phase } from "./head";
import type { Host } from "./host";
import { mostRows } from "./listing";
import { pathIn, type PathSums } from "./path";
import { ownOf } from "./pathtable";
import type { PhaseBand } from "./phaseband";
import { chargesIn, greatestOf, waitingIn, type Backs, type Waiting } from "./rangeflows";
import { addLane, type RangeSums } from "./rangesums";
import { Reader, type Going } from "./scope";
import type { Store } from "./store";

// StepSums is the composition of a phase.
interface StepSums {
  phase: Phase;
  waiting: Waiting;
  backs: Backs;
  path: PathSums | undefined; // undefined: unknown
  regions: RangeSums["regions"] | undefined; // of operations; undefined: they are on too many rows, and nobody asked for them
}

// stepSums sums up a phase; all: also the operations if they are on too many rows for that without confirmation.
async function stepSums(store: Store, phase: Phase, all: boolean, going: Going): Promise<StepSums | undefined> {
  const { from, to } = phase;
  const waiting = await waitingIn(store, from, to, going);
  const backs = await chargesIn(store, from, to, () => going(0.5));
  if (!waiting || !backs) return undefined;
  const path = store.head.path ? await pathIn(store, from, to, () => going(0.5)) : undefined;
  const sums: RangeSums = { from, to, scope: "", count: 0, waited: 0, regions: new Map(), metrics: [] };
  const lanes = store.operationLanes();
  if (lanes.length > mostRows && !all) return { phase, waiting, backs, path, regions: undefined };
  for (const [n, lane] of lanes.entries()) {
    if (n % 32 === 0) {
      if (!going(0.5 + (0.5 * n) / lanes.length)) return undefined;
      await store.ahead(lanes.slice(n, n + 32), from, to);
    }
    await addLane(sums, store, lane);
  }
  return { phase, waiting, backs, path, regions: sums.regions };
}

const listed = 12; // longest phases
const regions = 10; // regions with the greatest differences
const height = 96; // of the chart, pixels

export class StepTable {
  private readonly kinds: string[];
  private kind: string;
  private all: Phase[] = []; // of the kind
  private readonly reader = new Reader("versus");
  private everything = false; // operations are summed up on any number of rows
  compared: [StepSums, StepSums] | undefined;
  readonly pair: (Phase | undefined)[] = [undefined, undefined];
  onPair: (pair: Phase[]) => void = () => {};

  constructor(private readonly host: Host, band: PhaseBand) {
    const phases = host.store.head.phases ?? [];
    this.kinds = [...new Set(phases.map((p) => p.kind))];
    this.kind = this.kinds[0] ?? "";
    byId("tab-steps").hidden = phases.length === 0;
    if (phases.length === 0) return;
    this.chooseKind(this.kind);
    band.onChoose = (p, second) => {
      if (p.kind !== this.kind) this.chooseKind(p.kind);
      this.choose(second ? 1 : 0, p);
      host.tab("steps");
    };
    this.onPair = (pair) => {
      band.chosen = pair;
      host.state.onChange();
    };
  }

  // chooseKind compares the longest phase of a kind with the median one.
  private chooseKind(kind: string): void {
    this.kind = kind;
    this.all = (this.host.store.head.phases ?? []).filter((p) => p.kind === kind);
    const sorted = [...this.all].sort((a, b) => b.time / b.count - a.time / a.count);
    this.pair[0] = sorted[0];
    this.pair[1] = sorted[Math.floor(sorted.length / 2)];
  }

  choose(which: 0 | 1, phase: Phase): void {
    this.pair[which] = phase;
    this.update();
  }

  update(): void {
    if (this.all.length === 0) return;
    this.draw();
    void this.compare();
  }

  private draw(): void {
    const { head } = this.host.store;
    const section = byId("steps");
    const kinds = select("Which phases", this.kinds.map((k) => [k, k]), this.kind, (kind) => (this.chooseKind(kind), this.update()));
    const names = el("datalist", { id: "step-names" }, ...this.all.slice(0, 2000).map((p) => el("option", { value: p.name })));
    const longest = [...this.all].sort((a, b) => b.time / b.count - a.time / a.count).slice(0, listed);
    section.replaceChildren(
      this.kinds.length > 1 ? el("label", null, "Phases ", kinds) : el("h2", null, this.kind), names,
      el("p", { class: "sub" }, `${f.plural(this.all.length, "phase", "phases")}: the mean time of the ranks, and above it the time of the slowest. Click a phase to compare it with the second one; Shift and click to make it the second one.`),
      this.chart(), el("div", { class: "versus" }, this.input(0), el("span", null, "and"), this.input(1)), el("div", { id: "versus", role: "status" }, el("p", { class: "sub progress" }, "Reading…")),
      el("h3", null, "The longest"),
      table(
        "", ["phase", "mean", "slowest", "rank"],
        longest.map((p) => [
          el("button", { class: "sentence", title: "Show and compare it", onclick: () => (this.go(p), this.choose(0, p)) }, p.name), f.time(p.time / p.count), f.time(p.most), head.ranks[p.slowest]?.name ?? "?",
        ]),
      ),
    );
    this.onPair(this.pair.filter((p): p is Phase => p !== undefined));
  }

  private go(p: Phase): void {
    this.host.state.jump(p.from - 0.02 * (p.to - p.from), p.to + 0.02 * (p.to - p.from));
  }

  private input(which: 0 | 1): HTMLElement {
    const find = (): void => {
      const found = this.all.find((p) => p.name === input.value.trim());
      if (found) this.choose(which, found);
      else input.setAttribute("aria-invalid", "true");
    };
    const label = which === 0 ? "Phase to compare" : "Phase to compare it with";
    const input = el("input", { class: "filter", type: "search", "aria-label": label, list: "step-names", value: this.pair[which]?.name ?? "", onchange: find });
    return input;
  }

  private chart(): HTMLElement {
    const top = this.all.reduce((n, p) => Math.max(n, p.most), 1);
    const at = (x: number) => this.all[Math.min(this.all.length - 1, Math.max(0, Math.floor((x / Math.max(1, canvas.clientWidth)) * this.all.length)))]!;
    const say = (p: Phase) => void (canvas.title = `${p.name}: mean ${f.time(p.time / p.count)}, slowest ${f.time(p.most)}`);
    const canvas = el("canvas", {
      class: "steps-chart", role: "img", "aria-label": `Time of each phase, in order of time; the longest ${this.pair[0]?.name ?? ""}. The longest are in the table below.`,
      onmousemove: (e) => say(at(e.offsetX)), onclick: (e) => this.choose(e.shiftKey ? 1 : 0, at(e.offsetX)),
    });
    requestAnimationFrame(() => {
      const width = canvas.clientWidth;
      const { c } = sized(canvas, width, height);
      const colors = this.host.state.colors;
      c.clearRect(0, 0, width, height);
      const each = width / this.all.length;
      this.all.forEach((p, i) => {
        const x = i * each;
        const w = Math.max(1, each > 3 ? each - 1 : each);
        const y = (ns: number) => height - (ns / top) * (height - 4);
        c.fillStyle = this.pair.includes(p) ? colors.collective : colors.category[0] ?? colors.faint;
        c.globalAlpha = this.pair.includes(p) ? 1 : 0.55;
        c.fillRect(x, y(p.time / p.count), w, height);
        c.globalAlpha = 1;
        c.fillStyle = colors.wait;
        c.fillRect(x, y(p.most) - 1, w, 2);
      });
    });
    return canvas;
  }

  private addUpAll(): void {
    this.everything = true;
    byId("versus").append(el("p", { class: "sub progress" }, "Reading…"));
    void this.compare();
  }

  private compare(): Promise<void> {
    const [a, b] = this.pair;
    const { store } = this.host;
    return this.reader.read(async (going) => {
      if (!a || !b) return;
      const first = await stepSums(store, a, this.everything, (share) => going(share && share / 2));
      const second = first && (await stepSums(store, b, this.everything, (share) => going(share && (1 + share) / 2)));
      if (!first || !second || !going()) return;
      this.compared = [first, second];
      byId("versus").replaceChildren(this.comparison(first, second));
    });
  }

  private comparison(a: StepSums, b: StepSums): HTMLElement {
    const { store } = this.host;
    const { ranks, regions: names } = store.head;
    const row = (name: string, x: number, y: number, note = ""): Cell[] => [[name, note && el("span", { class: "sub" }, note)], f.time(x), f.time(y), signed(x - y)];
    const rank = (r: number) => ranks[r]?.name ?? "nobody";
    const backs = [greatestOf(a.backs.by), greatestOf(b.backs.by)] as const;
    const sums = (s: StepSums) => (s.path ? ownOf(store, s.path) : { own: 0, operations: 0 });
    const [p, q] = [sums(a), sums(b)];
    const of = (s: StepSums, region: number) => s.regions?.get(region)?.time ?? 0;
    const differ = [...new Set([...(a.regions?.keys() ?? []), ...(b.regions?.keys() ?? [])])].sort((x, y) => Math.abs(of(a, y) - of(b, y)) - Math.abs(of(a, x) - of(b, x)) || x - y);
    const left = a.regions ? "" : el("p", { class: "sub" }, "The times of operations are not added up, because they are on many rows: the tab Range shows those of the chosen row, or ", el("button", { class: "sentence", onclick: () => this.addUpAll() }, "add up all of them"), ".");
    return el("div", null, table("compared", ["", a.phase.name, b.phase.name, "difference"], [
      row("first begin to last end", a.phase.to - a.phase.from, b.phase.to - b.phase.from),
      row("mean of the ranks", a.phase.time / a.phase.count, b.phase.time / b.phase.count),
      row("slowest rank", a.phase.most, b.phase.most, `${rank(a.phase.slowest)}; ${rank(b.phase.slowest)}`),
      row("waited, all ranks", a.waiting.total, b.waiting.total),
      row("largest part caused by one rank", a.backs.by[backs[0]] ?? 0, b.backs.by[backs[1]] ?? 0, `${rank(backs[0])}; ${rank(backs[1])}`),
      ...(a.path ? [row("critical path: ranks' own", p.own, q.own), row("critical path: operations", p.operations, q.operations)] : []),
      ...differ.slice(0, regions).map((r) => row(`${names[r]!.name}, all ranks`, of(a, r), of(b, r))),
    ]), left);
  }
}

function signed(ns: number): string {
  return ns > 0 ? `+${f.time(ns)}` : ns < 0 ? `−${f.time(-ns)}` : "0";
}
