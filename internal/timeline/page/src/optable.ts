// SPDX-License-Identifier: Apache-2.0
// The table of operations that begin in the visible time: filtered, sorted, and linked with the picture.

import { csvOf } from "./csv";
import { byId, el, message, table, tell } from "./dom";
import { parseFilter } from "./filter";
import * as f from "./format";
import type { Host } from "./host";
import { Lister, mostRows, type Listing, type Operation } from "./listing";
import type { Scope } from "./scope";

const page = 200; // rows shown at first and added each time
const most = 20_000; // rows that are kept
const tooMany = 400_000; // operations that are read without confirmation

export class OperationTable {
  private readonly lister: Lister;
  private readonly query = el("input", {
    type: "search", class: "filter", id: "operations-query", placeholder: "AllReduce >1MiB rank:3 wait>1ms algo:ring", "aria-label": "Filter operations", autocomplete: "off", spellcheck: "false",
    oninput: () => void this.update(), onkeydown: (e) => e.stopPropagation(),
  });
  private readonly said = el("p", { class: "sub", role: "status" });
  private readonly body = el("div", { class: "wide" });
  private readonly copies = el("button", { onclick: () => void this.copy() }, "Copy as CSV");
  private readonly tools = el("div", { class: "tools" }, this.copies);
  private listing: Listing | undefined;
  private sorted: Operation[] = [];
  private by = "begin";
  private falling = false;
  private shown = page;
  private step = 1; // precision of begins, ns
  private asked = 0;
  private selected = -1;
  private readonly columns: Record<string, (o: Operation) => number | string>; // what they are sorted by

  constructor(private readonly host: Host, private readonly scope: Scope) {
    const { head } = host.store;
    this.lister = new Lister(host.store);
    this.columns = {
      begin: (o) => o.start,
      operation: (o) => o.fn,
      communicator: (o) => head.comms[o.comm]?.name ?? "?",
      rank: (o) => o.rank,
      number: (o) => o.ordinal,
      size: (o) => o.size,
      algorithm: (o) => this.lister.attribute(o, "algo")[0] ?? "",
      time: (o) => o.length,
      wait: (o) => o.wait,
    };
    byId("operations").replaceChildren(this.query, this.tools, this.said, this.body);
    scope.charts.push({ visible: () => !byId("operations").hidden, update: () => void this.update() });
  }

  get text(): string {
    return this.query.value;
  }

  // filter lists the operations that match; all: without a limit on what is read.
  filter(text: string, all = false): Promise<Listing | undefined> {
    this.query.value = text;
    return this.update(all);
  }

  // csv returns the whole table as it is sorted.
  async csv(): Promise<string> {
    const { ranks, comms } = this.host.store.head;
    await this.unpack(this.sorted);
    const attribute = (o: Operation, name: string) => this.lister.attribute(o, name)[0] ?? "";
    return csvOf(
      ["begin_ns", "operation", "communicator", "rank", "row", "number", "size", "algorithm", "protocol", "time_ns", "waited_ns", "waited_for", "start_up", "launched_together"],
      this.sorted.map((o) => [
        o.start, o.fn, comms[o.comm]?.name ?? "", o.rank < 0 ? "" : o.rank, this.host.store.head.rows[o.row]!.name, o.ordinal, o.size, attribute(o, "algo").toUpperCase(), attribute(o, "proto").toUpperCase(), o.length, o.wait,
        o.waitFor < 0 ? "" : (ranks[o.waitFor]?.name ?? ""), o.startUp ? 1 : 0, o.together,
      ]),
    );
  }

  private async copy(): Promise<void> {
    const text = await this.csv();
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = el("textarea", { class: "unseen" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    this.say(`${f.plural(this.sorted.length, "row is", "rows are")} on the clipboard`);
    tell(this.said.textContent ?? "");
  }

  // select marks the rows of a bar; below 0: none.
  select(bar: number): void {
    this.selected = bar;
    for (const row of this.body.querySelectorAll<HTMLElement>("tr[data-bar]")) row.classList.toggle("chosen", Number(row.dataset["bar"]) === bar);
  }

  // update lists the operations again. all: without a limit on what is read.
  async update(all = false): Promise<Listing | undefined> {
    const ask = ++this.asked;
    const { from, to } = this.scope.range;
    const when = this.scope.text;
    const filter = parseFilter(this.query.value);
    this.tools.replaceChildren(this.scope.choice(), this.copies);
    const about = this.host.store.countOperations(from, to, filter);
    if (!all && (about.operations > tooMany || about.rows > mostRows)) {
      this.listing = undefined;
      this.sorted = [];
      this.say(`About ${f.plural(about.operations, "operation", "operations")} on ${f.plural(about.rows, "row", "rows")} begin in ${when}: zoom in, choose ranks (rank:0-7), or `);
      this.said.append(el("button", { class: "sentence", onclick: () => void this.update(true) }, "read all of them"));
      this.body.replaceChildren();
      return undefined;
    }
    try {
      const listing = await this.lister.list(from, to, filter, most, (share) => {
        if (ask === this.asked) this.say(`Reading… ${Math.round(100 * share)} %`);
        return ask === this.asked;
      });
      if (!listing || ask !== this.asked) return undefined;
      this.listing = listing;
      this.shown = page;
      const wrong = filter.wrong.length > 0 ? ` Not understood: ${filter.wrong.join(", ")}.` : "";
      const found = listing.left ? `The first ${f.count(most)} operations, rank by rank` : listing.all.length === listing.looked ? f.plural(listing.looked, "operation", "operations") : `${f.count(listing.all.length)} of ${f.plural(listing.looked, "operation", "operations")}`;
      this.say(`${found} that begin in ${when}.${wrong}`);
      await this.sort();
      return listing;
    } catch (e) {
      this.say(message(e));
      return undefined;
    }
  }

  private say(text: string): void {
    this.said.textContent = text;
  }

  // sort sorts by a column; on the second call, in reverse.
  private async sort(): Promise<void> {
    const ask = this.asked;
    const all = [...(this.listing?.all ?? [])];
    if (this.by === "algorithm") await this.unpack(all);
    if (ask !== this.asked) return;
    const keys = new Map(all.map((o) => [o, this.columns[this.by]!(o)]));
    const sign = this.falling ? -1 : 1;
    all.sort((a, b) => {
      const [x, y] = [keys.get(a)!, keys.get(b)!];
      return sign * (x < y ? -1 : x > y ? 1 : 0) || a.start - b.start || a.bar - b.bar;
    });
    this.sorted = all;
    await this.draw();
  }

  // unpack loads the attributes of operations.
  private async unpack(all: Operation[]): Promise<void> {
    const { store } = this.host;
    const places = new Map(all.map((o) => store.placeOf(o.bar)).map((p) => [p.lane.block + 2 * p.chunk, p]));
    for (const { lane, chunk } of places.values()) await store.notes(lane, chunk).promise;
  }

  private async draw(): Promise<void> {
    const ask = this.asked;
    const rows = this.sorted.slice(0, this.shown);
    await this.unpack(rows);
    if (ask !== this.asked) return;
    if (rows.length === 0) return this.body.replaceChildren();
    const left = this.sorted.length - rows.length;
    this.step = 10 ** Math.floor(Math.log10(Math.max(1, (this.listing!.to - this.listing!.from) / 1000)));
    this.body.replaceChildren(
      table("operations", this.headings(), rows.map((o) => this.row(o))),
      left > 0 && el("button", { class: "link", onclick: () => ((this.shown += page), void this.draw()) }, `${f.count(left)} more`) || "",
    );
  }

  private headings(): HTMLElement[] {
    const sort = (name: string) => {
      this.falling = this.by === name ? !this.falling : ["size", "time", "wait"].includes(name);
      this.by = name;
      void this.sort();
    };
    const button = (name: string) => el("button", { class: "sort", title: `Sort by ${name}`, onclick: () => sort(name) }, name, this.by === name && (this.falling ? " ↓" : " ↑"));
    const heading = (...names: string[]) => {
      const th = el("th", { scope: "col" }, ...names.map(button));
      if (names.includes(this.by)) th.setAttribute("aria-sort", this.falling ? "descending" : "ascending");
      return th;
    };
    return [heading("operation", "number", "communicator", "algorithm"), ...["begin", "rank", "size", "time", "wait"].map((name) => heading(name))];
  }

  private row(o: Operation): HTMLElement {
    const { head } = this.host.store;
    const under = [head.comms[o.comm]?.name ?? "?", this.lister.attribute(o, "algo")[0]?.toUpperCase(), o.together > 1 && `launched with ${o.together - 1} more`].filter((s) => s);
    const go = () => this.host.select(o.bar);
    return el(
      "tr", { class: o.bar === this.selected ? "chosen" : "", "data-bar": String(o.bar) },
      el("td", null, el("button", { class: "sentence", title: "Select it in the picture", onclick: go }, `${o.fn} ${f.count(o.ordinal)}`), el("span", { class: "sub" }, under.join(" · "))),
      el("td", null, f.onRuler(o.start, this.step)), el("td", null, o.rank < 0 ? "?" : String(o.rank)), el("td", null, f.bytes(o.size)), el("td", null, f.time(o.length)),
      el("td", o.wait > 0 ? { class: "waited", title: o.waitFor < 0 ? "" : `for ${head.ranks[o.waitFor]?.name ?? "?"}${o.startUp ? ", starting up" : ""}` } : null, o.wait > 0 ? f.time(o.wait) : "–"),
    );
  }
}
