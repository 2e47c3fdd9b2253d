// SPDX-License-Identifier: Apache-2.0
// The details of the selected bar or curve.

import { placesOf } from "./blocks";
import type { Curve, Reading, Sums } from "./curves";
import { byId, definitions, el, swatch, table } from "./dom";
import { statesOf, type Family } from "./family";
import * as f from "./format";
import type { Head } from "./head";
import type { Host } from "./host";
import type { Tips } from "./tips";
import type { Words } from "./words";

export class Details {
  private readonly head: Head;
  private asked = 0;

  constructor(private readonly host: Host, private readonly words: Words, private readonly tips: Tips) {
    this.head = host.store.head;
  }

  // forget cancels pending lookups when the selection changes.
  forget(): void {
    this.asked++;
  }

  // curve shows the details of a metric.
  curve(curve: Curve, reading: Reading | undefined, whole: Sums): void {
    this.asked++;
    const write = (v: number) => this.host.store.curves.write(curve, v);
    const { metric, series } = curve;
    const section = byId("details");
    section.classList.remove("empty");
    section.replaceChildren(
      el("h2", null, swatch("var(--metric)"), this.head.rows[curve.row]!.name),
      el("p", { class: "sub" }, this.words.path(this.head.rows[curve.row]!.parent)),
      ...(metric.description ? [el("p", null, metric.description)] : []),
      ...(reading ? [el("h3", null, "Here"), ...this.tips.curve(curve, reading, undefined).slice(2)] : []),
      el("h3", null, "In the whole run"),
      definitions([
        ["least", write(whole.min)],
        ["mean", this.host.store.curves.mean(curve, whole)],
        ["greatest", write(whole.max)],
        ["values", f.count(series.count - (series.closed ? 1 : 0))],
        ["unit", curve.unit || "–"],
        ["mode", `${metric.mode}: ${modes[metric.timing]}`],
      ]),
    );
    section.scrollTop = 0;
  }

  // bar shows the details of a bar.
  async bar(bar: number, family: Family): Promise<void> {
    const ask = ++this.asked;
    const { store } = this.host;
    const b = await store.bar(bar);
    const { chunk, at } = store.placeOf(bar);
    const notes = await store.notes(b.lane, chunk).promise;
    const operations = await store.operations(b.lane.row, bar)?.promise;
    const parents = await Promise.all(family.parents.map((p) => this.link(p)));
    const isEvent = this.head.rows[b.lane.row]!.kind === "event";
    const children = await this.caused(isEvent ? family.children.filter((c) => store.laneOf(c).row !== b.lane.row) : family.children);
    const states = isEvent && b.lane.depth === 0 ? await this.states(await statesOf(store, b.lane.row, b.start, b.start + b.length), b.start) : [];
    const sections: Node[] = [];
    if (operations) {
      for (const [n, i] of placesOf(operations, bar).slice(0, 32).entries()) {
        const instance = family.instances[n]!;
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
        if (instance.unlike) rows.push(["not matched", "the ranks' records of this operation are not consistent"]);
        else if (instance.parts.length < instance.expected) rows.push(["members", `${instance.parts.length} of ${instance.expected} were recorded`]);
        const name = instance.message ? (instance.parts[0]!.bar === bar && instance.parts[0]!.rank === rank && fn === "Send" ? "Send" : fn) : fn;
        sections.push(
          el("h3", null, instance.message ? "Message" : "Collective"),
          el("h2", null, name),
          definitions(rows, ...this.words.notes(operations.attributes.of(i))),
          ...(instance.message ? (other ? [await this.link(other.bar)] : []) : await this.parts(instance.parts, bar)),
        );
      }
      if (family.instances.length > 32) sections.push(el("p", { class: "sub" }, `and ${family.instances.length - 32} more operations`));
    }
    const wait = notes.waits.get(at);
    if (ask !== this.asked) return;
    const section = byId("details");
    section.classList.remove("empty");
    section.replaceChildren(
      el("h2", null, swatch(this.host.state.colors.css[b.region]!), this.head.regions[b.region]!.name),
      el("p", { class: "sub" }, this.words.path(b.lane.row)),
      definitions([
        ...(isEvent ? [["type", this.head.regions[b.region]!.name.replace(/^ncclProfiler?/, "")] as const] : []),
        ["begin", f.exact(b.start)],
        ["end", f.exact(b.start + b.length)],
        ["length", f.exact(b.length)],
        ...(wait
          ? ([
              ["waited", `${f.exact(b.wait)} (${f.percent(b.wait, b.length)}) for ${this.head.ranks[wait.rank]?.name ?? "?"}`, "alarm"],
              ["cause", (this.head.waitKinds[wait.kind] ?? "?") + (wait.first ? ", starting up" : "")],
            ] as const)
          : []),
        ["group", this.head.categories[this.head.regions[b.region]!.category] ?? "?"],
        ...(this.head.realtime ? [["clock", this.words.clock(b.start)] as const] : []),
      ]),
      ...sections,
      ...(notes.attributes.of(at).length > 0 ? [el("h3", null, "Attributes"), definitions([], ...this.words.notes(notes.attributes.of(at)))] : []),
      ...states,
      ...(parents.length > 0 ? [el("h3", null, isEvent ? (b.lane.depth > 0 ? "State of" : "Parent") : "Caused by"), ...parents] : []),
      ...children,
    );
    section.scrollTop = 0;
  }

  // link creates a link to a bar.
  private async link(bar: number): Promise<HTMLElement> {
    const b = await this.host.store.bar(bar);
    return this.linkTo(bar, f.time(b.length), b.region, ` · ${this.head.rows[b.lane.row]!.name}`);
  }

  // linkTo creates a link to a bar of a region, after a figure and with what follows the region's name.
  private linkTo(bar: number, figure: string, region: number, more = "", className = "link"): HTMLElement {
    const name = this.head.regions[region]!.name;
    return el("button", { class: className, onclick: () => this.host.select(bar) }, el("span", { class: "sub" }, figure), swatch(this.host.state.colors.css[region]!), name + more);
  }

  // parts lists when the members of a collective arrived and how long they were in it.
  private async parts(parts: { rank: number; bar: number }[], bar: number): Promise<Node[]> {
    const shown = parts.slice(0, 64);
    const bars = await Promise.all(shown.map((p) => this.host.store.bar(p.bar)));
    const first = Math.min(...bars.map((b) => b.start));
    const rows = shown.map((p, i) => {
      const b = bars[i]!;
      const name = el("button", { class: "link", onclick: () => this.host.select(p.bar) }, p.bar === bar ? `${p.rank} (this)` : String(p.rank));
      return [name, "+" + f.time(b.start - first), f.time(b.length), b.wait > 0 ? f.time(b.wait) : ""];
    });
    const more = parts.length - shown.length;
    return [table("", ["rank", "arrival", "length", "waited"], rows), ...(more > 0 ? [el("p", { class: "sub" }, `and ${more} more ranks`)] : [])];
  }

  // caused summarizes the effects of a bar.
  private async caused(children: number[]): Promise<Node[]> {
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
      ...[...sums.values()].slice(0, 60).map((s) => this.linkTo(s.bar, (s.count > 1 ? `${f.count(s.count)} × · ` : "") + f.time(s.time), s.region, ` · ${s.row}`)),
    ];
  }

  // states lists the states of an event that begins at a given time.
  private async states(bars: number[], begin: number): Promise<Node[]> {
    if (bars.length === 0) return [];
    const found = await Promise.all(bars.map((bar) => this.host.store.bar(bar)));
    return [el("h3", null, `States (${bars.length})`), ...found.map((s, i) => this.linkTo(bars[i]!, "+" + f.time(s.start - begin), s.region, "", "link state"))];
  }
}

// Descriptions of the modes of metrics.
const modes = {
  next: "a value holds until the next one",
  last: "a value is for the time since the one before",
  rate: "the counter's growth per second between two values",
};

// showLegend shows the colors and how much of each there is, while nothing is selected.
export function showLegend(host: Host): void {
  const head = host.store.head;
  const colors = host.state.colors;
  const sums = head.categories.map(() => ({ count: 0, time: 0 }));
  for (const lane of host.store.lanes) {
    if (host.store.repeats(lane)) continue;
    for (const s of lane.sums) {
      const sum = sums[head.regions[s.region]!.category]!;
      sum.count += s.count;
      sum.time += s.time;
    }
  }
  const entries = head.categories.map((name, i) => ({ name, i, ...sums[i]! })).filter((e) => e.count > 0);
  const legend = entries.map((e) => {
    const options = { class: "legend", "aria-pressed": String(host.state.category === e.i), title: "Highlight these regions", onclick: () => host.highlight(e.i) };
    return el("button", options, swatch(colors.category[e.i]!), e.name, el("span", { class: "sub" }, `${f.count(e.count)} · ${f.time(e.time)}`));
  });
  const section = byId("details");
  section.classList.add("empty");
  section.replaceChildren(
    el("p", { class: "hint" }, "Click a bar to see all that is known about it. Drag on the ruler, or drag with Shift, for statistics of a range. Press ? for all keys."),
    el("h3", null, "Regions"),
    ...(legend.length > 0 ? legend : [el("p", { class: "sub" }, "The archive has no regions.")]),
    el("h3", null, "Marks"),
    mark(colors.wait, "waiting for another rank"),
    mark(colors.collective, "members of one collective"),
    mark(colors.message, "message, sender to receiver"),
    mark(colors.transfer, "transfer over the network"),
    mark(colors.parent, "call to what it caused"),
    ...(head.path ? [mark(colors.path, "critical path (V)")] : []),
    ...(host.store.curves.all.length > 0 ? [mark("var(--metric)", "metric; pale: lowest to highest value within a pixel")] : []),
  );
}

function mark(color: string, text: string): HTMLElement {
  return el("div", { class: "legend" }, swatch(color), text);
}
