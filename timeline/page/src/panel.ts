// SPDX-License-Identifier: Apache-2.0
// What stands beside the picture: the selected bar, a range of time, waits by rank, the message matrix, the archive.

import { byId, el, swatch } from "./dom";
import * as f from "./format";
import type { Attribute, Flow, Head } from "./head";
import type { Family } from "./lines";
import { lowerBound } from "./lines";
import type { Curve, Reading, Sums } from "./metrics";
import type { Note } from "./columns";
import type { Store } from "./store";
import type { Colours } from "./theme";

export interface Host {
  store: Store;
  colours: () => Colours;
  select(bar: number, go: boolean): void;
  go(from: number, to: number): void;
  focus(row: number): void;
  highlight(category: number): void;
  highlighted(): number;
}

const tabs = ["details", "range", "waits", "matrix", "about"] as const;
export type Tab = (typeof tabs)[number];

export class Panel {
  private readonly head: Head;
  private readonly attributes = new Map<number, Attribute>();
  private asked = 0;
  private nominal: boolean;

  constructor(private readonly host: Host) {
    this.head = host.store.head;
    this.head.attributes.forEach((a) => this.attributes.set(a.id, a));
    this.nominal = this.head.matrix.transfers.length === 0;
    for (const name of tabs) {
      const tab = byId("tab-" + name);
      byId(name).dataset["title"] = tab.textContent ?? "";
      tab.addEventListener("click", () => this.show(name));
      tab.addEventListener("keydown", (e) => {
        const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
        if (step === 0) return;
        e.stopPropagation();
        const to = tabs[(tabs.indexOf(name) + step + tabs.length) % tabs.length]!;
        this.show(to);
        byId("tab-" + to).focus();
      });
    }
    this.show("details");
    this.empty();
    this.noRange();
    this.waits();
    this.matrix();
    this.about();
  }

  show(name: Tab): void {
    for (const t of tabs) {
      byId("tab-" + t).setAttribute("aria-selected", String(t === name));
      byId("tab-" + t).tabIndex = t === name ? 0 : -1;
      byId(t).hidden = t !== name;
    }
  }

  // repaint follows a change of colours.
  repaint(): void {
    if (byId("details").classList.contains("empty")) this.empty();
    this.matrix();
  }

  // empty is shown when no bar is selected: what the colours mean, and how much there is of each.
  empty(): void {
    this.asked++;
    const colours = this.host.colours();
    const sums = this.head.categories.map(() => ({ count: 0, time: 0 }));
    for (const lane of this.host.store.lanes) {
      if (this.host.store.repeats(lane)) continue;
      for (const s of lane.sums) {
        const sum = sums[this.head.regions[s.region]!.category]!;
        sum.count += s.count;
        sum.time += s.time;
      }
    }
    const entries = this.head.categories.map((name, i) => ({ name, i, ...sums[i]! })).filter((e) => e.count > 0);
    const legend = entries.map((e) =>
      el(
        "button",
        { class: "legend", type: "button", "aria-pressed": String(this.host.highlighted() === e.i), title: "Highlight these", onclick: () => this.host.highlight(e.i) },
        swatch(colours.category[e.i]!), e.name, el("span", { class: "sub" }, `${f.count(e.count)} · ${f.time(e.time)}`),
      ),
    );
    const section = byId("details");
    section.classList.add("empty");
    section.replaceChildren(
      el("p", { class: "hint" }, "Click a bar for all that is known of it. Shift and drag, or drag on the ruler, for statistics of a range. ? for all keys."),
      el("h3", null, "Regions"),
      ...(legend.length > 0 ? legend : [el("p", { class: "sub" }, "The archive has no regions.")]),
      el("h3", null, "Marks"),
      this.mark(colours.wait, "waiting for another rank"),
      this.mark(colours.collective, "parts of one collective"),
      this.mark(colours.message, "message, sender to receiver"),
      this.mark(colours.transfer, "transfer over the network"),
      this.mark(colours.parent, "call to what it caused"),
      ...(this.host.store.curves.all.length > 0 ? [this.mark("var(--metric)", "metric; pale: least to greatest of a pixel")] : []),
    );
  }

  private mark(colour: string, text: string): HTMLElement {
    return el("div", { class: "legend" }, swatch(colour), text);
  }

  private value(note: Note): string {
    const a = this.attributes.get(note.id);
    const type = a?.type ?? "";
    if (/string/i.test(type)) return this.head.texts[String(note.value)] ?? `string ${note.value}`;
    if (/ADDRESS|_ID$|^STREAM$/.test(a?.name ?? "") && note.value > 0xffffn) return "0x" + note.value.toString(16);
    const bits = new DataView(new ArrayBuffer(8));
    bits.setBigUint64(0, note.value);
    if (/double/i.test(type)) return String(bits.getFloat64(0));
    if (/^float/i.test(type)) return String(bits.getFloat32(4));
    if (/^int/i.test(type)) return String(BigInt.asIntN(64, note.value));
    if (/bytes/i.test(a?.name ?? "")) return `${f.bytes(Number(note.value))} (${note.value})`;
    if (/, ns\b|\(ns\)/.test(a?.description ?? "")) return f.exact(Number(note.value));
    return f.group(String(note.value));
  }

  // notes lists attributes in the order of their definitions.
  private notes(notes: Note[], leave: string[] = []): HTMLElement[] {
    return [...notes]
      .filter((n) => !leave.includes(this.attributes.get(n.id)?.name ?? ""))
      .sort((a, b) => a.id - b.id)
      .flatMap((n) => {
        const a = this.attributes.get(n.id);
        const name = a?.name ?? `attribute ${n.id}`;
        return [el("dt", { title: a?.description ?? name }, readable(name)), el("dd", null, this.value(n))];
      });
  }

  private path(row: number): string {
    const names: string[] = [];
    for (let r = row; r >= 0; r = this.head.rows[r]!.parent) names.unshift(this.head.rows[r]!.name);
    return names.join(" › ");
  }

  // tip is the short form for hovering.
  async tip(bar: number): Promise<HTMLElement[]> {
    const { store } = this.host;
    const b = await store.bar(bar);
    const at = bar - b.lane.first;
    const chunk = this.head.chunk;
    const notes = await store.notes(b.lane, Math.floor(at / chunk));
    const wait = notes.waits.get(at % chunk);
    const out = [
      el("b", null, this.head.regions[b.region]!.name),
      el("span", { class: "sub" }, this.path(b.lane.row)),
      el(
        "dl", null,
        el("dt", null, "begin"), el("dd", null, f.exact(b.start)),
        el("dt", null, "length"), el("dd", null, f.exact(b.length)),
        ...(wait ? [el("dt", null, "waited"), el("dd", { class: "alarm" }, `${f.time(b.wait)} for ${this.head.ranks[wait.rank]?.name ?? "?"}`)] : []),
        ...this.notes(notes.attributes.of(at % chunk)),
      ),
    ];
    return out;
  }

  // transferTip is the short form of a transfer; it is unpacked, or it would not be drawn.
  transferTip(row: number, index: number): HTMLElement[] {
    const chunk = this.head.chunk;
    const t = this.host.store.peekTransfers(row, Math.floor(index / chunk));
    if (!t) return [];
    const i = index % chunk;
    const length = t.length[i]!;
    return [
      el("b", null, "Transfer"),
      el("span", { class: "sub" }, `${this.path(row)} → ${t.row[i]! >= 0 ? this.path(t.row[i]!) : "?"}`),
      el(
        "dl", null,
        el("dt", null, "bytes"), el("dd", null, f.bytes(t.bytes[i]!)),
        el("dt", null, "begin"), el("dd", null, f.exact(t.start[i]!)),
        el("dt", null, "length"), el("dd", null, length < 0 ? "its end was not recorded" : f.exact(length)),
        ...(length > 0 ? [el("dt", null, "bandwidth"), el("dd", null, `${f.digits(t.bytes[i]! / length)} GB/s`)] : []),
        ...this.notes(t.attributes.of(i)),
      ),
    ];
  }

  // curveTip is what a curve says of a moment, in short. pixel: what it is around there.
  curveTip(curve: Curve, reading: Reading, pixel: Sums | undefined): HTMLElement[] {
    const write = (v: number) => this.host.store.curves.write(curve, v);
    const { metric } = curve;
    const integral = metric.type !== "DOUBLE";
    const rows: [string, string][] = [];
    if (metric.timing === "rate") {
      rows.push(["mean", write(reading.value)]);
      if (integral) rows.push(["counter", `${f.group(reading.stored)} → ${f.group(reading.after)}`]);
    } else {
      const stored = metric.timing === "last" ? reading.after : reading.stored;
      const exact = integral && metric.factor === 1 && metric.divisor === 1 && Math.abs(reading.value) >= 1000 ? ` (${f.group(stored)})` : "";
      rows.push(["value", write(reading.value) + exact]);
    }
    rows.push(["since", f.exact(reading.from)], ["for", f.exact(reading.to - reading.from)]);
    if (pixel && pixel.count > 1 && pixel.min < pixel.max) rows.push(["around", `${write(pixel.min)} to ${write(pixel.max)}, mean ${this.host.store.curves.mean(curve, pixel)}`]);
    return [
      el("b", null, this.head.rows[curve.row]!.name),
      el("span", { class: "sub" }, this.path(this.head.rows[curve.row]!.parent)),
      el("dl", null, ...rows.flatMap(([k, v]) => [el("dt", null, k), el("dd", null, v)])),
    ];
  }

  // curve shows all that is known of a metric.
  curve(curve: Curve, reading: Reading | undefined, whole: Sums): void {
    this.asked++;
    const write = (v: number) => this.host.store.curves.write(curve, v);
    const { metric, series } = curve;
    const section = byId("details");
    section.classList.remove("empty");
    section.replaceChildren(
      el("h2", null, swatch("var(--metric)"), this.head.rows[curve.row]!.name),
      el("p", { class: "sub" }, this.path(this.head.rows[curve.row]!.parent)),
      ...(metric.description ? [el("p", null, metric.description)] : []),
      ...(reading ? [el("h3", null, "Here"), ...this.curveTip(curve, reading, undefined).slice(2)] : []),
      el("h3", null, "In the whole run"),
      el(
        "dl", null,
        ...(
          [
            ["least", write(whole.min)],
            ["mean", this.host.store.curves.mean(curve, whole)],
            ["greatest", write(whole.max)],
            ["values", f.count(series.count - (series.closed ? 1 : 0))],
            ["unit", curve.unit || "–"],
            ["mode", `${metric.mode}: ${modes[metric.timing]}`],
          ] as const
        ).flatMap(([k, v]) => [el("dt", null, k), el("dd", null, v)]),
      ),
    );
    section.scrollTop = 0;
  }

  async details(bar: number, family: Family): Promise<void> {
    const ask = ++this.asked;
    const { store } = this.host;
    const b = await store.bar(bar);
    const at = bar - b.lane.first;
    const chunk = this.head.chunk;
    const notes = await store.notes(b.lane, Math.floor(at / chunk));
    const operations = await store.operations(b.lane.row, bar);
    const parents = await Promise.all(family.parents.map((p) => this.link(p)));
    const children = await this.kin(family.children);
    const sections: Node[] = [];
    if (operations) {
      const first = lowerBound(operations.bar, bar);
      for (let i = first; i < operations.bar.length && operations.bar[i] === bar && i - first < 32; i++) {
        const instance = family.instances[i - first]!;
        const rank = instance.parts.find((p) => p.bar === bar)?.rank ?? -1;
        const comm = this.head.comms[instance.comm]?.name ?? "?";
        const other = instance.parts.find((p) => p.bar !== bar);
        const fn = this.head.functions[instance.fn] ?? "?";
        const rows: [string, string][] = [
          ["communicator", comm],
          ["rank", String(rank)],
          ["number", f.count(instance.ordinal)],
        ];
        if (instance.message) rows.push(["bytes", f.bytes(operations.sent[i]!)]);
        else {
          rows.push(["sent", f.bytes(operations.sent[i]!)], ["received", f.bytes(operations.received[i]!)]);
          if (operations.root[i]! >= 0) rows.push(["root", String(operations.root[i])]);
        }
        if (instance.unlike) rows.push(["not matched", "the ranks did not record this operation alike"]);
        else if (instance.parts.length < instance.expected) rows.push(["parts", `${instance.parts.length} of ${instance.expected} are there`]);
        const name = instance.message ? (instance.parts[0]!.bar === bar && instance.parts[0]!.rank === rank && fn === "Send" ? "Send" : fn) : fn;
        sections.push(
          el("h3", null, instance.message ? "Message" : "Collective"),
          el("h2", null, name),
          el("dl", null, ...rows.flatMap(([k, v]) => [el("dt", null, k), el("dd", null, v)]), ...this.notes(operations.attributes.of(i))),
          ...(instance.message ? (other ? [await this.link(other.bar)] : []) : await this.parts(instance.parts, bar)),
        );
      }
      if (family.instances.length > 32) sections.push(el("p", { class: "sub" }, `and ${family.instances.length - 32} more operations`));
    }
    const wait = notes.waits.get(at % chunk);
    if (ask !== this.asked) return;
    const section = byId("details");
    section.classList.remove("empty");
    section.replaceChildren(
      el("h2", null, swatch(this.host.colours().css[b.region]!), this.head.regions[b.region]!.name),
      el("p", { class: "sub" }, this.path(b.lane.row)),
      el(
        "dl", null,
        el("dt", null, "begin"), el("dd", null, f.exact(b.start)),
        el("dt", null, "end"), el("dd", null, f.exact(b.start + b.length)),
        el("dt", null, "length"), el("dd", null, f.exact(b.length)),
        ...(wait
          ? [
              el("dt", null, "waited"),
              el("dd", { class: "alarm" }, `${f.exact(b.wait)} (${f.percent(b.wait, b.length)}) for ${this.head.ranks[wait.rank]?.name ?? "?"}`),
              el("dt", null, "cause"),
              el("dd", null, (this.head.waitKinds[wait.kind] ?? "?") + (wait.first ? ", starting up" : "")),
            ]
          : []),
        el("dt", null, "group"), el("dd", null, this.head.categories[this.head.regions[b.region]!.category] ?? "?"),
        ...(this.head.realtime ? [el("dt", null, "clock"), el("dd", null, this.clock(b.start))] : []),
      ),
      ...sections,
      ...(notes.attributes.of(at % chunk).length > 0 ? [el("h3", null, "Attributes"), el("dl", null, ...this.notes(notes.attributes.of(at % chunk)))] : []),
      ...(parents.length > 0 ? [el("h3", null, "Caused by"), ...parents] : []),
      ...children,
    );
    section.scrollTop = 0;
  }

  private clock(ns: number): string {
    const t = BigInt(this.head.origin) + BigInt(Math.round(ns));
    return `${new Date(Number(t / 1_000_000n)).toISOString().slice(0, 19).replace("T", " ")}.${String(t % 1_000_000_000n).padStart(9, "0")} UTC`;
  }

  private async link(bar: number): Promise<HTMLElement> {
    const b = await this.host.store.bar(bar);
    return el(
      "button", { class: "link", type: "button", onclick: () => this.host.select(bar, true) },
      el("span", { class: "sub" }, f.time(b.length)), swatch(this.host.colours().css[b.region]!),
      `${this.head.regions[b.region]!.name} · ${this.head.rows[b.lane.row]!.name}`,
    );
  }

  // parts lists when the members of a collective came and how long they were in it.
  private async parts(parts: { rank: number; bar: number }[], bar: number): Promise<Node[]> {
    const shown = parts.slice(0, 64);
    const bars = await Promise.all(shown.map((p) => this.host.store.bar(p.bar)));
    const first = Math.min(...bars.map((b) => b.start));
    return [
      el(
        "table", null,
        el("tr", null, ...["rank", "came", "length", "waited"].map((h) => el("th", { scope: "col" }, h))),
        ...shown.map((p, i) => {
          const b = bars[i]!;
          const name = el("button", { class: "link", type: "button", onclick: () => this.host.select(p.bar, true) }, p.bar === bar ? `${p.rank} (this)` : String(p.rank));
          return el("tr", null, el("td", null, name), el("td", null, "+" + f.time(b.start - first)), el("td", null, f.time(b.length)), el("td", null, b.wait > 0 ? f.time(b.wait) : ""));
        }),
      ),
      parts.length > shown.length ? el("p", { class: "sub" }, `and ${parts.length - shown.length} more ranks`) : "",
    ].map((n) => (typeof n === "string" ? document.createTextNode(n) : n));
  }

  // kin sums up what a bar caused.
  private async kin(children: number[]): Promise<Node[]> {
    if (children.length === 0) return [];
    const sums = new Map<string, { bar: number; region: number; row: string; count: number; time: number }>();
    for (const c of children.slice(0, 5000)) {
      const b = await this.host.store.bar(c);
      const key = `${b.region} ${b.lane.row}`;
      const s = sums.get(key) ?? { bar: c, region: b.region, row: this.head.rows[b.lane.row]!.name, count: 0, time: 0 };
      s.count++;
      s.time += b.length;
      sums.set(key, s);
    }
    return [
      el("h3", null, `Caused (${f.count(children.length)})`),
      ...[...sums.values()].slice(0, 60).map((s) =>
        el(
          "button", { class: "link", type: "button", onclick: () => this.host.select(s.bar, true) },
          el("span", { class: "sub" }, (s.count > 1 ? `${f.count(s.count)} × · ` : "") + f.time(s.time)), swatch(this.host.colours().css[s.region]!),
          `${this.head.regions[s.region]!.name} · ${s.row}`,
        ),
      ),
    ];
  }

  noRange(): void {
    byId("range").replaceChildren(el("p", { class: "hint" }, "No range is selected. Drag on the ruler, or hold Shift and drag in the picture; on a touch screen press long, then drag."));
  }

  rangeUnderWay(share: number): void {
    byId("range").replaceChildren(el("p", { class: "sub" }, `Reading… ${Math.round(100 * share)} %`));
  }

  range(r: RangeSums): void {
    const colours = this.host.colours();
    const span = r.to - r.from;
    const rows = [...r.regions.entries()].sort((a, b) => b[1].time - a[1].time);
    byId("range").replaceChildren(
      el("h2", null, f.time(span)),
      el("p", { class: "sub" }, `${f.exact(r.from)} to ${f.exact(r.to)}, ${r.scope}`),
      el(
        "dl", null,
        el("dt", null, "regions"), el("dd", null, f.count(r.count)),
        el("dt", null, "waiting"), el("dd", null, f.time(r.waited)),
      ),
      el("button", { type: "button", class: "link", onclick: () => this.host.go(r.from, r.to) }, "Zoom to the range"),
      ...(rows.length === 0
        ? [el("p", { class: "hint" }, "Nothing happened in this range.")]
        : [
            el("h3", null, "By region"),
            el(
              "table", null,
              el("tr", null, ...["region", "count", "time", "mean", "max"].map((h) => el("th", { scope: "col" }, h))),
              ...rows.map(([region, s]) =>
                el(
                  "tr", null, el("td", null, swatch(colours.css[region]!), this.head.regions[region]!.name), el("td", null, f.count(s.count)), el("td", null, f.time(s.time)),
                  el("td", null, f.time(s.whole / s.count)), el("td", null, f.time(s.max)),
                ),
              ),
            ),
            el("p", { class: "sub" }, "Time is what lies in the range; mean and max are of whole regions that touch it. Regions within others count in both."),
          ]),
      ...this.metricSums(r.metrics),
    );
  }

  private metricSums(all: RangeSums["metrics"]): HTMLElement[] {
    if (all.length === 0) return [];
    return [
      el("h3", null, "By metric"),
      el(
        "table", { class: "metrics" },
        el("tr", null, ...["metric", "min", "mean", "max"].map((h) => el("th", { scope: "col" }, h))),
        ...all.map(({ curve, sums }) => {
          const row = this.head.rows[curve.row]!;
          const { curves } = this.host.store;
          const texts = sums.min <= sums.max ? [curves.write(curve, sums.min), curves.mean(curve, sums), curves.write(curve, sums.max)] : ["–", "–", "–"];
          const name = el("td", null, row.name, el("span", { class: "sub" }, this.head.rows[row.parent]?.name ?? ""));
          return el("tr", null, name, ...texts.map((text) => el("td", null, text)));
        }),
      ),
      el("p", { class: "sub" }, "Of the metrics that are shown; means are over time."),
    ];
  }

  private waits(): void {
    const ranks = this.head.ranks;
    const most = Math.max(1, ...ranks.map((r) => Math.max(r.waited, r.caused)));
    const section = byId("waits");
    if (!ranks.some((r) => r.waited > 0 || r.caused > 0)) {
      const why = this.head.totals.collectives > 0 ? "No rank waited for another." : "Nothing could be compared: waits need operations whose times two ranks have from their GPUs or networks.";
      section.replaceChildren(el("p", { class: "hint" }, why));
      return;
    }
    const culprit = ranks.reduce((a, b) => (b.caused > a.caused ? b : a));
    const total = ranks.reduce((n, r) => n + r.waited, 0);
    const shown = ranks.length > 64 ? [...ranks].sort((a, b) => b.caused + b.waited - a.caused - a.waited).slice(0, 64) : ranks;
    section.replaceChildren(
      el("h2", null, `Others waited ${f.time(culprit.caused)} for ${culprit.name}`),
      el("p", { class: "sub" }, `${f.percent(culprit.caused, total)} of all waiting (${f.time(total)}), without the first collective of each communicator.`),
      el("p", null, swatch("var(--wait)"), "waited for others ", swatch("var(--caused)"), "wait caused"),
      ...shown.map((r) => {
        const meter = (kind: string, v: number) => {
          const m = el("span", { class: "meter " + kind });
          m.style.width = `${(100 * v) / most}%`;
          m.hidden = v === 0;
          return m;
        };
        return el(
          "button",
          {
            class: "wait-row", type: "button", title: r.worst > 0 ? `Go to the longest wait that it caused: ${f.time(r.worst)}` : "Show its row",
            onclick: () => {
              if (r.row >= 0) this.host.focus(r.row);
              if (r.worst > 0) this.host.go(r.worstAt - 3 * r.worst, r.worstAt + 2 * r.worst);
            },
          },
          el("span", { class: "numbers" }, `${f.time(r.waited)} · ${f.time(r.caused)}`), ranks.length > 1 ? `${r.name} ` : r.name, el("span", { class: "sub" }, r.host),
          meter("waited", r.waited), meter("caused", r.caused),
        );
      }),
      shown.length < ranks.length ? el("p", { class: "sub" }, `The ${shown.length} of ${ranks.length} ranks with the most waiting.`) : "",
    );
  }

  private matrix(): void {
    const m = this.head.matrix;
    const flows: Flow[] = this.nominal ? m.nominal : m.transfers;
    const section = byId("matrix");
    const choice = el(
      "div", { class: "choice" },
      ...[false, true].map((nominal) =>
        el(
          "button",
          {
            type: "button", "aria-pressed": String(this.nominal === nominal),
            onclick: () => {
              this.nominal = nominal;
              this.matrix();
            },
          },
          nominal ? "Operations" : "Network",
        ),
      ),
    );
    const about = this.nominal
      ? "What each rank would send every other if operations were carried out without intermediaries, of communicators without recorded transfers."
      : "Bytes of the transfers over the network that were recorded, sender by receiver.";
    if (flows.length === 0) {
      const why = this.nominal ? "There are no such operations." : "No transfers were recorded: NCCL_OTF2_EVENTS=net records them.";
      section.replaceChildren(choice, el("p", { class: "hint" }, why));
      return;
    }
    const ranks = this.head.ranks;
    const known = flows.filter((x) => x.from >= 0 && x.to >= 0);
    const lost = flows.filter((x) => x.from < 0 || x.to < 0).reduce((n, x) => n + x.bytes, 0);
    const most = Math.max(1, ...known.map((x) => x.bytes));
    const total = flows.reduce((n, x) => n + x.bytes, 0);
    const body: Node[] = [];
    const readout = el("p", { class: "hint" }, "Point at a cell for its numbers.");
    const say = (from: number, to: number) => {
      const x = known.find((k) => k.from === from && k.to === to);
      readout.textContent = `${ranks[from]?.name ?? "?"} → ${ranks[to]?.name ?? "?"}: ${x ? `${f.bytes(x.bytes)} in ${f.plural(x.count, this.nominal ? "operation" : "transfer", this.nominal ? "operations" : "transfers")}` : "nothing"}`;
    };
    if (ranks.length <= 10) {
      const table = el("table", { class: "cells" }, el("tr", null, el("th", null, "from ↓ to →"), ...ranks.map((_, i) => el("th", { scope: "col" }, String(i)))));
      ranks.forEach((r, from) => {
        table.append(
          el(
            "tr", null, el("th", { scope: "row", title: r.name }, r.name),
            ...ranks.map((_, to) => {
              const x = known.find((k) => k.from === from && k.to === to);
              const cell = el("td", null, x ? short(x.bytes) : "");
              if (x) shade(cell, x.bytes / most);
              cell.addEventListener("mouseenter", () => say(from, to));
              return cell;
            }),
          ),
        );
      });
      body.push(table);
    } else {
      const n = ranks.length;
      const canvas = el("canvas", { role: "img", "aria-label": "Message matrix: senders from top to bottom, receivers from left to right" });
      canvas.width = canvas.height = n;
      const c = canvas.getContext("2d")!;
      c.fillStyle = this.host.colours().stripe;
      c.fillRect(0, 0, n, n);
      for (const x of known) {
        c.fillStyle = heat(x.bytes / most);
        c.fillRect(x.to, x.from, 1, 1);
      }
      canvas.addEventListener("mousemove", (e) => {
        const box = canvas.getBoundingClientRect();
        say(Math.floor(((e.clientY - box.top) / box.height) * n), Math.floor(((e.clientX - box.left) / box.width) * n));
      });
      body.push(canvas);
    }
    section.replaceChildren(
      choice, el("h2", null, f.bytes(total)), el("p", { class: "sub" }, about), ...body, readout,
      lost > 0 ? el("p", { class: "alarm" }, `${f.bytes(lost)} are of ranks that are not known.`) : "", ...m.remarks.map((r) => el("p", { class: "sub" }, r)),
    );
  }

  private about(): void {
    const h = this.head;
    byId("about").replaceChildren(
      el("h2", null, h.title),
      el("p", { class: "sub" }, `${h.tool}; time 0 is ${this.head.realtime ? this.clock(0) : h.origin}`),
      el("dl", null, ...h.facts.flatMap((x) => [el("dt", null, x.name), el("dd", x.alarm ? { class: "alarm" } : null, x.text)])),
      ...(h.problems.length > 0 ? [el("h3", null, "Problems"), ...h.problems.map((p) => el("p", { class: "alarm" }, p))] : []),
      ...(h.markers.length > 0
        ? [
            el("h3", null, `Markers (${h.markers.length})`),
            ...h.markers.slice(0, 200).map((m) =>
              el(
                "button",
                { class: "link", type: "button", onclick: () => this.host.go(m.time - this.head.duration / 200, m.time + m.length + this.head.duration / 200) },
                el("span", { class: "sub" }, f.time(m.time)), m.text || m.kind,
              ),
            ),
          ]
        : []),
    );
  }
}

// RangeSums are the statistics of a range of time.
export interface RangeSums {
  from: number;
  to: number;
  scope: string;
  count: number;
  waited: number;
  regions: Map<number, { count: number; time: number; whole: number; max: number }>;
  metrics: { curve: Curve; sums: Sums }[];
}

// What the modes of metrics mean for what is shown.
const modes = {
  next: "a value holds until the next one",
  last: "a value is of the time since the one before",
  rate: "the counter's growth per second between two values",
};

function readable(name: string): string {
  return name.toLowerCase().replaceAll("_", " ").replace(/^buff /, "buffer ");
}

function short(n: number): string {
  return f.bytes(n).replace(/ ?i?B$/, "").replace(" ", "");
}

// The share is shown by its root, so that small amounts are seen.
function heat(share: number): string {
  return `hsl(217 62% 50% / ${(0.12 + 0.88 * Math.sqrt(share)).toFixed(3)})`;
}

function shade(cell: HTMLElement, share: number): void {
  cell.style.background = heat(share);
  if (share > 0.3) cell.style.color = "#fff";
}
