// SPDX-License-Identifier: Apache-2.0
// Links from one bar to others: the parts of a collective, and the effects of a bar.

import { el, swatch } from "./dom";
import * as f from "./format";
import type { Head } from "./head";
import type { Host } from "./host";

export class Kin {
  private readonly head: Head;

  constructor(private readonly host: Host) {
    this.head = host.store.head;
  }

  // link creates a link to a bar.
  async link(bar: number): Promise<HTMLElement> {
    const b = await this.host.store.bar(bar);
    return el(
      "button", { class: "link", type: "button", onclick: () => this.host.select(bar, true) },
      el("span", { class: "sub" }, f.time(b.length)), swatch(this.host.colors().css[b.region]!),
      `${this.head.regions[b.region]!.name} · ${this.head.rows[b.lane.row]!.name}`,
    );
  }

  // parts lists when the members of a collective arrived and how long they were in it.
  async parts(parts: { rank: number; bar: number }[], bar: number): Promise<Node[]> {
    const shown = parts.slice(0, 64);
    const bars = await Promise.all(shown.map((p) => this.host.store.bar(p.bar)));
    const first = Math.min(...bars.map((b) => b.start));
    return [
      el(
        "table", null,
        el("tr", null, ...["rank", "arrival", "length", "waited"].map((h) => el("th", { scope: "col" }, h))),
        ...shown.map((p, i) => {
          const b = bars[i]!;
          const name = el("button", { class: "link", type: "button", onclick: () => this.host.select(p.bar, true) }, p.bar === bar ? `${p.rank} (this)` : String(p.rank));
          return el("tr", null, el("td", null, name), el("td", null, "+" + f.time(b.start - first)), el("td", null, f.time(b.length)), el("td", null, b.wait > 0 ? f.time(b.wait) : ""));
        }),
      ),
      parts.length > shown.length ? el("p", { class: "sub" }, `and ${parts.length - shown.length} more ranks`) : "",
    ].map((n) => (typeof n === "string" ? document.createTextNode(n) : n));
  }

  // caused summarizes the effects of a bar.
  async caused(children: number[]): Promise<Node[]> {
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
          el("span", { class: "sub" }, (s.count > 1 ? `${f.count(s.count)} × · ` : "") + f.time(s.time)), swatch(this.host.colors().css[s.region]!),
          `${this.head.regions[s.region]!.name} · ${s.row}`,
        ),
      ),
    ];
  }
}
