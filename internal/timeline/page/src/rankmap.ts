// SPDX-License-Identifier: Apache-2.0
// The picture of all ranks: rank by time, in place of the rows.

import { byId, el, select } from "./dom";
import * as f from "./format";
import { Heat, measures, type Cells, type Measure } from "./heat";
import { mostRows } from "./listing";
import { byCommunicator, byLikeness } from "./rankorders";
import { orders, RankRows, type Order } from "./rankrows";
import type { State } from "./state";

interface Scale {
  name: string;
  light: [number, number, number];
  dark: [number, number, number];
  write: (v: number) => string;
  asks: string;
}

const share = (v: number) => f.percent(v, 1);

const scales: Record<Measure, Scale> = {
  waiting: { name: "Waiting", light: [214, 96, 0], dark: [255, 159, 67], write: share, asks: "Who waits, and when?" },
  operations: { name: "Time in operations", light: [24, 78, 168], dark: [126, 170, 255], write: share, asks: "Who communicates, and when?" },
  bandwidth: { name: "Bus bandwidth", light: [140, 40, 96], dark: [232, 142, 188], write: (v) => f.quantity(v, "B/s"), asks: "Who is slow, and when?" },
  late: { name: "Late by", light: [150, 30, 24], dark: [246, 116, 98], write: f.time, asks: "Who comes late, and by how much?" },
};

const orderNames: Record<Order, string> = { rank: "rank", host: "host", waiting: "waiting", caused: "wait caused", back: "caused by what they did", role: "communicator", likeness: "likeness" };
const cell = 2; // pixels of a column
const manyRanks = 128;

export class RankMap {
  on = false;
  measure: Measure = "waiting";
  readonly rows: RankRows;
  readonly heat: Heat;
  pixels = 0; // cells with a value above 0
  private lines: (Float64Array | Float32Array)[] = []; // by line of the picture
  private waits: Float32Array | undefined; // of all ranks, if they could be read from the waits sorted by time
  private cells: Cells = { from: 0, to: 1, columns: 1 };
  private rough = ""; // key of lines drawn from sums
  private top = 0; // greatest value of the scale
  private late: { key: string; lines: Float64Array[] | undefined } | undefined;
  private looking = ""; // key of the lines being computed
  private drawn: Measure | undefined; // measure in the picture; undefined: none yet
  private asked = 0;
  private timer = 0;
  private readonly image = document.createElement("canvas");
  private readonly bar = byId("rank-bar");
  private readonly legend = el("span", { class: "scale" });
  private readonly note = el("span", { class: "sub" });
  private readonly everybody = el("button", { onclick: () => this.all() }, "All ranks");
  private readonly choose: HTMLSelectElement;
  private readonly sorts: HTMLSelectElement;

  constructor(private readonly state: State) {
    const { head } = state.store;
    this.rows = new RankRows(head.ranks);
    this.heat = new Heat(state.store);
    this.choose = select("What is shown of each rank", measures.filter((m) => this.heat.has(m)).map((m) => [m, scales[m].name]), this.measure, (v) => this.show(v as Measure, this.rows.by));
    this.sorts = select("Order of the ranks", orders.map((o) => [o, orderNames[o]]), this.rows.by, (v) => this.show(this.measure, v as Order));
    this.bar.replaceChildren(el("label", null, "Show ", this.choose), el("label", null, "by ", this.sorts), this.legend, this.note, this.everybody);
    byId("show-ranks").hidden = head.ranks.length === 0 || !this.heat.has("waiting");
  }

  // toggle switches between the ranks and the rows.
  toggle(on = !this.on): void {
    this.on = on && !byId("show-ranks").hidden;
    this.bar.hidden = !this.on;
    byId("show-ranks").setAttribute("aria-pressed", String(this.on));
    document.body.classList.toggle("ranks", this.on);
    this.state.onChange();
  }

  show(measure: Measure, order: Order): void {
    this.measure = measure;
    this.choose.value = measure;
    this.sorts.value = order;
    this.rows.sort(order, order === "role" ? byCommunicator(this.state.store) : order === "likeness" ? byLikeness(this.heat, this.measure, this.state.view) : undefined);
    this.state.onChange();
  }

  // place is the state in the address; "": the rows are shown.
  get place(): string {
    return this.on ? [this.measure, this.rows.by, ...(this.rows.whole ? [] : [this.rows.first, this.rows.count])].join(",") : "";
  }

  // restore restores the state from an address.
  restore(place: string | undefined): void {
    const [measure, order, first, count] = (place ?? "").split(",");
    const m = measures.find((x) => x === measure);
    if (m && this.heat.has(m)) {
      this.show(m, orders.find((o) => o === order) ?? "rank");
      this.rows.all();
      if (/^\d{1,7}$/.test(first ?? "") && /^\d{1,7}$/.test(count ?? "")) {
        this.rows.first = Number(first);
        this.rows.count = Number(count);
      }
    }
    this.toggle(m !== undefined);
  }

  all(): void {
    this.rows.all();
    this.state.onChange();
  }

  draw(c: CanvasRenderingContext2D, ratio: number): void {
    const { view, colors } = this.state;
    const { rows } = this;
    rows.fit(view.height);
    const cells: Cells = { from: view.from, to: view.to, columns: Math.max(1, Math.ceil(view.width / cell)) };
    this.cells = cells;
    const shown = rows.order.slice(rows.first, rows.first + rows.count);
    this.heat.begin(shown);
    this.compute(cells);
    const scale = scales[this.measure];
    this.top = this.measure === "waiting" || this.measure === "operations" ? 1 : greatest(this.lines);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = colors.paper;
    c.fillRect(0, 0, view.width, view.height);
    if (this.lines.length > 0) {
      const image = this.paint(cells.columns, colors.mode === "dark" ? scale.dark : scale.light);
      this.image.width = cells.columns;
      this.image.height = this.lines.length;
      this.image.getContext("2d")!.putImageData(image, 0, 0);
      c.imageSmoothingEnabled = false;
      c.drawImage(this.image, 0, 0, cells.columns, this.lines.length, 0, 0, cells.columns * cell, this.lines.length * rows.height);
      if (rows.height >= 6) {
        c.fillStyle = colors.paper;
        for (let i = 1; i < this.lines.length; i++) c.fillRect(0, i * rows.height - 0.5, view.width, 1);
      }
    }
    this.say(scale);
  }

  // compute computes the lines: of several ranks the greatest value, of bandwidths the least.
  private compute(cells: Cells): void {
    const { rows, measure } = this;
    const late = measure === "late" ? this.lateLines(cells) : undefined;
    this.drawn = measure === "late" && this.late?.key !== keyOf(cells) ? undefined : measure;
    if (measure === "late" && !late) {
      this.lines = [];
      this.pixels = 0;
      return;
    }
    this.waits = measure === "waiting" && this.many ? this.heat.waits(cells) : undefined;
    // The picture does not change until all data are loaded.
    const key = `${keyOf(cells)} ${measure} ${rows.by} ${rows.first} ${rows.count} ${rows.per}`;
    if (this.many && !this.waits && this.heat.coarse > 0 && this.rough === key) return;
    this.rough = this.waits ? "" : key;
    this.lines = Array.from({ length: rows.lines }, (_, i) => {
      let out: Float64Array | Float32Array | undefined;
      for (const rank of rows.of(i)) {
        const one = late ? late[rank]! : this.line(rank, measure as Exclude<Measure, "late">, cells);
        if (!out) out = rows.per > 1 ? one.slice() : one;
        else for (let k = 0; k < out.length; k++) if (Number.isNaN(out[k]!) || (measure === "bandwidth" ? one[k]! < out[k]! : one[k]! > out[k]!)) out[k] = one[k]!;
      }
      return out!;
    });
  }

  // many reports that reading all ranks would take too many blocks for one picture.
  private get many(): boolean {
    return this.state.store.head.ranks.length > manyRanks;
  }

  // line returns a rank's line.
  private line(rank: number, measure: Exclude<Measure, "late">, cells: Cells): Float64Array | Float32Array {
    return this.waits ? this.waits.subarray(rank * cells.columns, (rank + 1) * cells.columns) : this.heat.line(rank, measure, cells);
  }

  // lateLines returns the lines of the visible time if they are computed, and otherwise starts computing them.
  private lateLines(cells: Cells): Float64Array[] | undefined {
    const key = keyOf(cells);
    if (this.late?.key === key) return this.late.lines;
    if (this.looking === key) return undefined; // is being computed already
    this.looking = key;
    const ask = ++this.asked;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.heat.late(cells, () => ask === this.asked).then(
        (lines) => {
          if (ask !== this.asked) return;
          this.looking = "";
          this.late = { key, lines };
          this.state.onChange();
        },
        (e: unknown) => ((this.looking = ""), this.state.fail(e)),
      );
    }, 80) as unknown as number;
    return undefined;
  }

  // pending reports that the picture does not show the chosen measure yet.
  get pending(): boolean {
    return this.on && this.drawn !== this.measure;
  }

  private paint(columns: number, [r, g, b]: [number, number, number]): ImageData {
    const image = new ImageData(columns, this.lines.length);
    const words = new Uint32Array(image.data.buffer);
    const rgb = (b << 16) | (g << 8) | r;
    const gray = (34 << 24) | (128 << 16) | (128 << 8) | 128;
    this.pixels = 0;
    this.lines.forEach((line, y) => {
      for (let x = 0; x < columns; x++) {
        const v = line[x]!;
        if (Number.isNaN(v)) words[y * columns + x] = gray;
        else if (v > 0) {
          this.pixels++;
          words[y * columns + x] = (Math.round(255 * (0.06 + 0.94 * Math.sqrt(Math.min(1, v / this.top)))) << 24) | rgb;
        }
      }
    });
    return image;
  }

  private say(scale: Scale): void {
    const { mode } = this.state.colors;
    const [r, g, b] = mode === "dark" ? scale.dark : scale.light;
    const gradient = el("i", { style: { background: `linear-gradient(to right, rgb(${r} ${g} ${b} / .06), rgb(${r} ${g} ${b} / .4) 15%, rgb(${r} ${g} ${b}))` } });
    this.legend.replaceChildren("0", gradient, this.top > 0 ? scale.write(this.top) : "–");
    const { per, whole, count } = this.rows;
    const several = per > 1 ? `each line: the ${this.measure === "bandwidth" ? "least" : "most"} of ${per} ranks; click to see fewer` : "";
    const missing = this.measure === "late" && this.late && !this.late.lines && !this.pending ? (this.rows.order.length > mostRows ? "Too many ranks: the tab Waits shows for whom others waited" : "Too many operations: zoom in") : this.pending ? "Reading…" : "";
    this.note.textContent = [whole ? "" : `${f.count(count)} of ${f.plural(this.rows.order.length, "rank", "ranks")}`, missing || several].filter((s) => s).join(" · ");
    this.everybody.hidden = whole;
    byId("base").setAttribute("aria-label", this.on ? `All ranks over time: ${scale.name}. ${scale.asks} The tab Waits has the sums by rank.` : rowsLabel);
  }

  // click zooms into a line of several ranks; it returns the rank of a line with one.
  click(y: number): number | undefined {
    const line = this.rows.at(y);
    if (line < 0) return undefined;
    const ranks = this.rows.of(line);
    if (ranks.length === 1) return ranks[0]!;
    this.state.onJump();
    this.rows.narrow(line, this.state.view.height);
    this.state.onChange();
    return undefined;
  }

  scroll(dy: number): void {
    const { rows } = this;
    if (rows.whole) return;
    rows.move(Math.sign(dy) * Math.max(1, Math.round(Math.abs(dy) / rows.height)), this.state.view.height);
    this.state.onChange();
  }

  // reading describes a point: the rank with the greatest value of the line, and that exact value.
  async reading(x: number, y: number): Promise<{ rank: number; from: number; to: number; text: string; name: string } | undefined> {
    const { measure, cells } = this;
    const line = this.rows.at(y);
    const column = Math.floor(x / cell);
    const value = this.lines[line]?.[column];
    if (value === undefined) return undefined;
    const each = (cells.to - cells.from) / cells.columns;
    const [from, to] = [cells.from + column * each, cells.from + (column + 1) * each];
    const scale = scales[measure];
    const ranks = this.rows.of(line);
    const of = (rank: number) => (measure === "late" ? this.late!.lines![rank]! : this.line(rank, measure, cells))[column]!;
    const rank = ranks.length === 1 ? ranks[0]! : (ranks.find((r) => of(r) === value) ?? ranks[0]!);
    let text = Number.isNaN(value) ? "nothing was measured" : scale.write(value);
    if (measure === "waiting" || measure === "operations") {
      const ns = await this.heat.exact(rank, measure, from, to);
      text = `${f.time(ns)} of ${f.time(each)} (${f.percent(ns, each)})`;
    }
    return { rank, from, to, text, name: scale.name };
  }
}

function greatest(lines: ArrayLike<number>[]): number {
  let top = 0;
  for (const l of lines) for (let i = 0; i < l.length; i++) if (l[i]! > top) top = l[i]!;
  return top;
}

const keyOf = (c: Cells) => `${c.from} ${c.to} ${c.columns}`;

const rowsLabel = "Timeline. Arrow keys move, plus and minus zoom, period selects a bar, question mark for help.";
