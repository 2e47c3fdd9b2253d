// SPDX-License-Identifier: Apache-2.0
// Short descriptions for tips.

import type { Curve, Reading, Sums } from "./curves";
import { definitions, el } from "./dom";
import * as f from "./format";
import type { Head } from "./head";
import type { Part } from "./path";
import type { Store } from "./store";
import type { Words } from "./words";

export class Tips {
  private readonly head: Head;

  constructor(private readonly store: Store, private readonly words: Words) {
    this.head = store.head;
  }

  // bar describes a bar.
  async bar(bar: number): Promise<HTMLElement[]> {
    const { store } = this;
    const b = await store.bar(bar);
    const { chunk, at } = store.placeOf(bar);
    const notes = await store.notes(b.lane, chunk).promise;
    const wait = notes.waits.get(at);
    return [
      el("b", null, this.head.regions[b.region]!.name),
      el("span", { class: "sub" }, this.words.path(b.lane.row)),
      definitions(
        [["begin", f.exact(b.start)], ["length", f.exact(b.length)], ...(wait ? [["waited", `${f.time(b.wait)} for ${this.head.ranks[wait.rank]?.name ?? "?"}`, "alarm"] as const] : [])],
        ...this.words.notes(notes.attributes.of(at)),
      ),
    ];
  }

  // transfer describes a transfer; a transfer that is drawn is unpacked.
  transfer(row: number, index: number): HTMLElement[] {
    const chunk = this.head.chunk;
    const t = this.store.transfers(row, Math.floor(index / chunk)).value;
    if (!t) return [];
    const i = index % chunk;
    const length = t.length[i]!;
    return [
      el("b", null, "Transfer"),
      el("span", { class: "sub" }, `${this.words.path(row)} → ${t.row[i]! >= 0 ? this.words.path(t.row[i]!) : "?"}`),
      definitions(
        [
          ["bytes", f.bytes(t.bytes[i]!)], ["begin", f.exact(t.start[i]!)], ["length", length < 0 ? "its end was not recorded" : f.exact(length)],
          ...(length > 0 ? [["bandwidth", `${f.digits(t.bytes[i]! / length)} GB/s`] as const] : []),
        ],
        ...this.words.notes(t.attributes.of(i)),
      ),
    ];
  }

  // path describes a part of the critical path.
  path(part: Part): HTMLElement[] {
    const what = this.head.path!.what[part.what]!;
    const name = what.operation ? `${what.operation}${what.comm >= 0 ? ` on ${this.head.comms[what.comm]!.name}` : ""}` : what.activity;
    return [
      el("b", null, `Critical path: ${name}`), el("span", { class: "sub" }, this.head.ranks[part.rank]?.name ?? ""),
      definitions([["begin", f.exact(part.start)], ["length", f.exact(part.length)]]),
    ];
  }

  // curve describes the value of a curve at a moment. pixel: its range around there.
  curve(curve: Curve, reading: Reading, pixel: Sums | undefined): HTMLElement[] {
    const write = (v: number) => this.store.curves.write(curve, v);
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
    if (pixel && pixel.count > 1 && pixel.min < pixel.max) rows.push(["around", `${write(pixel.min)} to ${write(pixel.max)}, mean ${this.store.curves.mean(curve, pixel)}`]);
    return [
      el("b", null, this.head.rows[curve.row]!.name),
      el("span", { class: "sub" }, this.words.path(this.head.rows[curve.row]!.parent)),
      definitions(rows),
    ];
  }
}
