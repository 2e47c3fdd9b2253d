// SPDX-License-Identifier: Apache-2.0
// The matrix of ranks: traffic, bandwidth, and waiting between them; in bins if there are many ranks.

import { Bins, narrow, type Window } from "./bins";
import { byId, choice, el, table } from "./dom";
import * as f from "./format";
import { groupsOf, together, type Grouping, type Groups } from "./groups";
import type { Head } from "./head";
import type { Host } from "./host";
import { addFlow, noFlow, sentIn, waitingIn, type FlowSums as Sums, type Pair } from "./rangeflows";
import { Reader, type Scope } from "./scope";

const side = 344; // pixels of the picture, at least
const fewest = 2; // pixels of a bin
const cells = 10; // ranks up to which cells show numbers
const roomyCells = 4; // ranks up to which these have their units

// Measure is the quantity that cells show.
interface Measure {
  name: string;
  of: (s: Sums) => number;
  write: (s: Sums) => string;
  short: (s: Sums) => string;
}

const gigabytes = (s: Sums) => (s.time > 0 ? s.timed / s.time : 0);
const measures = {
  bytes: { name: "Bytes", of: (s: Sums) => s.bytes, write: (s: Sums) => f.bytes(s.bytes), short: (s: Sums) => short(f.bytes(s.bytes)) },
  count: { name: "Transfers", of: (s: Sums) => s.count, write: (s: Sums) => f.plural(s.count, "transfer", "transfers"), short: (s: Sums) => f.count(s.count) },
  operations: { name: "Operations", of: (s: Sums) => s.count, write: (s: Sums) => f.plural(s.count, "operation", "operations"), short: (s: Sums) => f.count(s.count) },
  bandwidth: { name: "Bandwidth", of: gigabytes, write: (s: Sums) => (s.time > 0 ? `${f.digits(gigabytes(s))} GB/s` : "no end was recorded"), short: (s: Sums) => f.digits(gigabytes(s)) },
  under: { name: "Time", of: (s: Sums) => s.time, write: (s: Sums) => (s.time > 0 ? `${f.time(s.time)} in transfers` : "no end was recorded"), short: (s: Sums) => f.time(s.time) },
  waits: { name: "Waits", of: (s: Sums) => s.count, write: (s: Sums) => f.plural(s.count, "wait", "waits"), short: (s: Sums) => f.count(s.count) },
  waited: { name: "Time", of: (s: Sums) => s.time, write: (s: Sums) => `${f.time(s.time)} in ${f.plural(s.count, "wait", "waits")}`, short: (s: Sums) => f.time(s.time) },
} satisfies Record<string, Measure>;

// Kind is the kind of flow between ranks.
interface Kind {
  name: string;
  about: string;
  none: string;
  measures: (keyof typeof measures)[];
  follows: boolean; // what is shown
}

const kinds = {
  network: { name: "Network", about: "Recorded transfers over the network, by sender and receiver", none: "No transfers were recorded: NCCL_OTF2_EVENTS=net records them.", measures: ["bytes", "count", "bandwidth", "under"], follows: true },
  operations: { name: "Operations", about: "Operations of the whole run, by sender and receiver", none: "There are no such operations.", measures: ["bytes", "operations"], follows: false },
  waiting: { name: "Waiting", about: "Who waited (rows) for whom (columns), without the first operation of each communicator", none: "No rank waited for another.", measures: ["waited", "waits"], follows: true },
} satisfies Record<string, Kind>;

export class Matrix {
  private readonly head: Head;
  private kind: keyof typeof kinds;
  private measure: keyof typeof measures = "bytes";
  private window: Window;
  private grouping: Grouping = "ranks";
  private groups: Groups;
  private pairs: Pair[] = []; // of groups
  private remarks: string[] = [];
  private when = ""; // the time of the numbers
  private from = -1; // the begin of that time
  private readonly reader = new Reader("matrix");

  constructor(private readonly host: Host, private readonly scope: Scope) {
    this.head = host.store.head;
    this.kind = this.head.matrix.transfers.length > 0 ? "network" : this.head.matrix.nominal.length > 0 ? "operations" : "network";
    this.groups = groupsOf(this.head.ranks, this.grouping);
    this.window = { first: 0, count: this.head.ranks.length };
    scope.charts.push({ visible: () => !byId("matrix").hidden, update: () => void this.update() });
    void this.update();
  }

  // total sums up all cells, including those of unknown ranks.
  get total(): Sums {
    return this.pairs.reduce<Sums>(addFlow, noFlow());
  }
  get shownFrom(): number {
    return this.from;
  }
  get shown(): Window {
    return this.window;
  }

  // show chooses the kind and measure.
  show(kind: keyof typeof kinds, measure = this.measure): Promise<void> {
    this.kind = kind;
    const known: readonly string[] = kinds[kind].measures;
    this.measure = known.includes(measure) ? measure : kinds[kind].measures[0]!;
    return this.update();
  }

  // group groups ranks.
  group(by: Grouping): Promise<void> {
    this.grouping = by;
    this.groups = groupsOf(this.head.ranks, by);
    this.window = { first: 0, count: this.groups.names.length };
    return this.update();
  }

  // update reads the numbers of the visible time. Those of the whole run come from the report.
  update(): Promise<void> {
    const m = this.head.matrix;
    const { all, range: { from, to }, text } = this.scope;
    const flows = (list: typeof m.transfers): Pair[] => list.map((x) => ({ from: x.from, to: x.to, count: x.count, bytes: x.bytes, time: 0, timed: 0 }));
    this.remarks = this.kind === "waiting" ? [] : m.remarks;
    return this.reader.read(async (going) => {
      let pairs: Pair[] | undefined;
      if (this.kind === "operations") pairs = flows(m.nominal);
      else if (this.kind === "network") pairs = all && this.measure !== "bandwidth" && this.measure !== "under" ? flows(m.transfers) : await sentIn(this.host.store, from, to, going);
      else pairs = (await waitingIn(this.host.store, from, to, going))?.pairs;
      if (!pairs || !going()) return;
      this.pairs = together(pairs, this.groups);
      this.when = text;
      this.from = from;
      this.draw();
    });
  }

  draw(): void {
    const kind: Kind = kinds[this.kind];
    const measure: Measure = measures[this.measure];
    const { names } = this.groups;
    const { pairs, window } = this;
    const head = [
      choice("What the matrix shows", (Object.keys(kinds) as (keyof typeof kinds)[]).map((k) => [k, kinds[k].name]), this.kind, (k) => void this.show(k)),
      el("div", { class: "tools" }, choice("Measure", kind.measures.map((k) => [k, measures[k].name]), this.measure, (k) => void this.show(this.kind, k)), kind.follows && this.scope.choice()),
      choice<Grouping>("Rows and columns", [["ranks", "Ranks"], ["hosts", "Hosts"], ["places", "Places on hosts"]], this.grouping, (k) => void this.group(k)),
    ];
    const about = el("p", { class: "sub" }, kind.follows ? `${kind.about}; what begins in ${this.when}.` : `${kind.about}.`, el("span", { class: "progress" }));
    if (pairs.length === 0) {
      const none = this.kind === "network" && this.head.matrix.transfers.length > 0 ? "No transfer begins in this time." : this.kind === "waiting" && !this.scope.all ? "No rank waits in operations that begin in this time." : kind.none;
      byId("matrix").replaceChildren(...head, el("p", { class: "hint" }, none), about);
      return;
    }
    const { total } = this;
    const lost = pairs.filter((x) => x.from < 0 || x.to < 0);
    const readout = el("p", { class: "hint", role: "status" }, `Point to a cell to see its numbers.${measure === measures.bytes && names.length <= cells && names.length > roomyCells ? " K, M, G are KiB, MiB, GiB." : ""}`);
    const width = Math.max(side, byId("matrix").clientWidth - 30);
    const bins = new Bins(window, Math.floor(width / fewest), pairs, measure.of);
    let most = 0;
    for (const b of bins.all.values()) most = Math.max(most, measure.of(b));
    const say = (from: number, to: number) => void (readout.textContent = this.reading(bins, from, to, measure));
    const body = names.length <= cells ? this.cells(bins, most, measure, say) : this.canvas(bins, most, measure, width, say);
    const whole = window.count === names.length;
    const what = this.grouping === "ranks" ? "ranks" : this.grouping;
    byId("matrix").replaceChildren(
      ...head, el("h2", null, measure.write(total)), about, body, readout,
      whole ? "" : el("button", { class: "link", onclick: () => this.zoom({ first: 0, count: names.length }) }, `All ${what} (shown: ${window.first} to ${window.first + window.count - 1})`),
      bins.per > 1 ? el("p", { class: "sub" }, `Each cell stands for ${bins.per} × ${bins.per} ${what}; click to see fewer.`) : "",
      lost.length > 0 ? el("p", { class: "alarm" }, `${measure.write(lost.reduce<Sums>(addFlow, noFlow()))} belong to unknown ranks.`) : "",
      ...this.remarks.map((r) => el("p", { class: "sub" }, r)),
    );
  }

  private zoom(window: Window): void {
    this.window = window;
    this.draw();
  }

  private reading(bins: Bins, from: number, to: number, measure: Measure): string {
    const { names } = this.groups;
    const name = ([a, b]: [number, number]) => (a === b ? (names[a] ?? "?") : this.grouping === "ranks" ? `Ranks ${a} to ${b}` : `${names[a]} to ${names[b]}`);
    const bin = bins.bin(from, to);
    const between = `${name(bins.ranks(from))} ${this.kind === "waiting" ? "for" : "→"} ${name(bins.ranks(to))}`;
    if (!bin) return `${between}: nothing`;
    const also = measure === measures.bytes && this.kind !== "waiting" ? ` in ${(this.kind === "network" ? measures.count : measures.operations).write(bin)}` : "";
    const m = bin.most!;
    return `${between}: ${measure.write(bin)}${also}` + (bins.per > 1 ? `; the most ${names[m.from]} ${this.kind === "waiting" ? "for" : "→"} ${names[m.to]}: ${measure.write(m)}` : "");
  }

  private cells(bins: Bins, most: number, measure: Measure, say: (from: number, to: number) => void): HTMLElement {
    const { names } = this.groups;
    const roomy = names.length <= roomyCells && measure === measures.bytes;
    const cell = (from: number, to: number) => {
      const bin = bins.bin(from, to);
      const style = bin ? shade(measure.of(bin) / Math.max(most, Number.MIN_VALUE), this.kind) : {};
      return el("td", { style, onmouseenter: () => say(from, to) }, bin ? (roomy ? measure.write : measure.short)(bin) : "");
    };
    const headings = names.map((name, i) => el("th", { scope: "col", title: name }, this.grouping === "hosts" ? name : String(i)));
    return table(
      "cells", [el("th", null, this.kind === "waiting" ? "who ↓ for →" : "from ↓ to →"), ...headings],
      names.map((name, from) => [el("th", { scope: "row", title: name }, name), ...names.map((_, to) => cell(from, to))]),
    );
  }

  private canvas(bins: Bins, most: number, measure: Measure, width: number, say: (from: number, to: number) => void): HTMLElement {
    const n = bins.size;
    const label = `${kinds[this.kind].name}, ${measure.name.toLowerCase()}: ${this.kind === "waiting" ? "who waited from top to bottom, for whom" : "senders from top to bottom, receivers"} from left to right; ${this.strongest(measure)}`;
    const canvas = el("canvas", { role: "img", "aria-label": label });
    const each = Math.max(1, Math.floor(width / n));
    canvas.width = canvas.height = n * each;
    const c = canvas.getContext("2d")!;
    c.fillStyle = this.host.state.colors.stripe;
    c.fillRect(0, 0, n * each, n * each);
    for (const [key, bin] of bins.all) {
      const v = measure.of(bin);
      if (v <= 0) continue;
      c.fillStyle = heat(v / most, this.kind);
      c.fillRect((key % n) * each, Math.floor(key / n) * each, each, each);
    }
    const at = (e: MouseEvent): [number, number] => {
      const box = canvas.getBoundingClientRect();
      const place = (p: number, length: number) => Math.max(0, Math.min(n - 1, Math.floor((p / length) * n)));
      return [place(e.clientY - box.top, box.height), place(e.clientX - box.left, box.width)];
    };
    canvas.addEventListener("mousemove", (e) => say(...at(e)));
    canvas.addEventListener("click", (e) => {
      const next = narrow(bins, ...at(e));
      say(...at(e));
      if (next) this.zoom(next);
    });
    return canvas;
  }

  private strongest(measure: Measure): string {
    const { names } = this.groups;
    const most = this.pairs.filter((p) => p.from >= 0 && p.to >= 0).reduce<Pair | undefined>((a, b) => (a && measure.of(a) >= measure.of(b) ? a : b), undefined);
    return most ? `the most ${names[most.from]} ${this.kind === "waiting" ? "for" : "to"} ${names[most.to]}, ${measure.write(most)}` : "nothing";
  }
}

function short(text: string): string {
  return text.replace(/ ?i?B$/, "").replace(" ", "");
}

// The color depends on the square root of the share, so that small amounts are visible.
function heat(share: number, kind: keyof typeof kinds): string {
  const [h, s, l] = kind === "waiting" ? [28, 90, 48] : [217, 62, 50];
  return `hsl(${h} ${s}% ${l}% / ${(0.14 + 0.86 * Math.sqrt(share)).toFixed(3)})`;
}

function shade(share: number, kind: keyof typeof kinds): Partial<CSSStyleDeclaration> {
  return { background: heat(share, kind), ...(share > 0.3 ? { color: "#fff" } : {}) };
}
