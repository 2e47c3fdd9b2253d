// SPDX-License-Identifier: Apache-2.0
// The details of the selected bar or curve.

import { lowerBound } from "./bounds";
import type { Curve, Reading, Sums } from "./curves";
import { byId, el, swatch } from "./dom";
import type { Family } from "./family";
import * as f from "./format";
import type { Head } from "./head";
import type { Host } from "./host";
import { Kin } from "./relations";
import { statesOf } from "./states";
import type { Tips } from "./tips";
import type { Words } from "./words";

export class Details {
  private readonly head: Head;
  private readonly kin: Kin;
  private asked = 0;

  constructor(
    private readonly host: Host,
    private readonly words: Words,
    private readonly tips: Tips,
  ) {
    this.head = host.store.head;
    this.kin = new Kin(host);
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

  // bar shows the details of a bar.
  async bar(bar: number, family: Family): Promise<void> {
    const ask = ++this.asked;
    const { store } = this.host;
    const b = await store.bar(bar);
    const at = bar - b.lane.first;
    const chunk = this.head.chunk;
    const notes = await store.notes(b.lane, Math.floor(at / chunk));
    const operations = await store.operations(b.lane.row, bar);
    const parents = await Promise.all(family.parents.map((p) => this.kin.link(p)));
    const isEvent = this.head.rows[b.lane.row]!.kind === "event";
    const children = await this.kin.caused(isEvent ? family.children.filter((c) => store.laneOf(c).row !== b.lane.row) : family.children);
    const states = isEvent && b.lane.depth === 0 ? await this.states(await statesOf(store, b.lane.row, b.start, b.start + b.length), b.start) : [];
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
        if (instance.unlike) rows.push(["not matched", "the ranks' records of this operation are not consistent"]);
        else if (instance.parts.length < instance.expected) rows.push(["members", `${instance.parts.length} of ${instance.expected} were recorded`]);
        const name = instance.message ? (instance.parts[0]!.bar === bar && instance.parts[0]!.rank === rank && fn === "Send" ? "Send" : fn) : fn;
        sections.push(
          el("h3", null, instance.message ? "Message" : "Collective"),
          el("h2", null, name),
          el("dl", null, ...rows.flatMap(([k, v]) => [el("dt", null, k), el("dd", null, v)]), ...this.words.notes(operations.attributes.of(i))),
          ...(instance.message ? (other ? [await this.kin.link(other.bar)] : []) : await this.kin.parts(instance.parts, bar)),
        );
      }
      if (family.instances.length > 32) sections.push(el("p", { class: "sub" }, `and ${family.instances.length - 32} more operations`));
    }
    const wait = notes.waits.get(at % chunk);
    if (ask !== this.asked) return;
    const section = byId("details");
    section.classList.remove("empty");
    section.replaceChildren(
      el("h2", null, swatch(this.host.colors().css[b.region]!), this.head.regions[b.region]!.name),
      el("p", { class: "sub" }, this.words.path(b.lane.row)),
      el(
        "dl", null,
        ...(isEvent ? [el("dt", null, "type"), el("dd", null, this.head.regions[b.region]!.name.replace(/^ncclProfiler?/, ""))] : []),
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
        ...(this.head.realtime ? [el("dt", null, "clock"), el("dd", null, this.words.clock(b.start))] : []),
      ),
      ...sections,
      ...(notes.attributes.of(at % chunk).length > 0 ? [el("h3", null, "Attributes"), el("dl", null, ...this.words.notes(notes.attributes.of(at % chunk)))] : []),
      ...states,
      ...(parents.length > 0 ? [el("h3", null, isEvent ? (b.lane.depth > 0 ? "State of" : "Parent") : "Caused by"), ...parents] : []),
      ...children,
    );
    section.scrollTop = 0;
  }

  // states lists the states of an event that begins at a given time.
  private async states(bars: number[], begin: number): Promise<Node[]> {
    if (bars.length === 0) return [];
    const found = await Promise.all(bars.map((bar) => this.host.store.bar(bar)));
    return [
      el("h3", null, `States (${bars.length})`),
      ...found.map((s, i) =>
        el(
          "button", { class: "link state", type: "button", onclick: () => this.host.select(bars[i]!, true) },
          el("span", { class: "sub" }, "+" + f.time(s.start - begin)), swatch(this.host.colors().css[s.region]!), this.head.regions[s.region]!.name,
        ),
      ),
    ];
  }
}

// Descriptions of the modes of metrics.
const modes = {
  next: "a value holds until the next one",
  last: "a value is for the time since the one before",
  rate: "the counter's growth per second between two values",
};
