// SPDX-License-Identifier: Apache-2.0
// The composition of the critical path by activity, rank and operation: of the whole run, or of the visible time.

import { byId, el, table } from "./dom";
import * as f from "./format";
import type { Host } from "./host";
import { isOwn, pathIn, type PathSums } from "./path";
import { Reader, type Scope } from "./scope";

const most = 20; // rows of a table

// classes of colors of activities.
const kinds: Record<string, string> = { application: "application", "NCCL call": "call", GPU: "gpu", own: "own", operation: "operation" };

export class PathTable {
  private readonly reader = new Reader("path");
  shown: (PathSums & { from: number }) | undefined;

  constructor(private readonly host: Host, private readonly scope: Scope) {
    byId("tab-path").hidden = !host.store.head.path;
    if (host.store.head.path) scope.charts.push({ visible: () => !byId("path").hidden, update: () => void this.update() });
  }

  update(): Promise<void> {
    const { range: { from, to }, text } = this.scope;
    return this.reader.read(async (going) => {
      const sums = await pathIn(this.host.store, from, to, going);
      if (sums && going()) this.draw(sums, text, from);
    });
  }

  private draw(sums: PathSums, text: string, from: number): void {
    this.shown = { ...sums, from };
    const { what } = this.host.store.head.path!;
    const activities = new Map<string, number>();
    what.forEach((w, i) => activities.set(w.activity, (activities.get(w.activity) ?? 0) + sums.what[i]!));
    const on = [...activities].filter(([, ns]) => ns > 0).sort((a, b) => b[1] - a[1]);
    const counted = on.filter(([name]) => name in kinds);
    const all = counted.reduce((n, [, ns]) => n + ns, 0);
    const label = counted.map(([name, ns]) => `${name} ${f.percent(ns, all)}`).join(", ");
    const bar = el("div", { class: "stack", role: "img", "aria-label": label }, ...counted.map(([name, ns]) => el("span", { class: kinds[name]!, style: { width: `${(100 * ns) / all}%` } })));
    byId("path").replaceChildren(
      this.scope.choice(), el("h2", null, `Critical path of ${f.time(all)}`),
      el("p", { class: "sub" }, `The chain of activities, without waiting, that determines when the run ends, in ${text}.`),
      el("button", { class: "link", "aria-pressed": String(this.host.pathShown()), onclick: () => (this.host.showPath(), void this.update()) }, this.host.pathShown() ? "Do not draw it (V)" : "Draw it (V)"),
      bar,
      table("", ["activity", "time", "share"], on.map(([name, ns]) => [[el("i", { class: `swatch ${kinds[name] ?? ""}`, "aria-hidden": "true" }), name], f.time(ns), name in kinds ? f.percent(ns, all) : "–"])),
      ...this.ranks(sums, all), ...this.operations(sums, all),
    );
  }

  private ranks(sums: PathSums, all: number): Node[] {
    const { head } = this.host.store;
    const { what } = head.path!;
    const rows = [...sums.ranks].sort((a, b) => b[1] - a[1]).map(([key, ns]) => ({ rank: Math.floor(key / what.length), name: what[key % what.length]!.activity, ns }));
    if (rows.length === 0) return [];
    const cells = rows.slice(0, most).map((r) => {
      const rank = head.ranks[r.rank];
      const name = rank && rank.row >= 0 ? el("button", { class: "sentence", title: "Show its row", onclick: () => this.host.state.focusRow(rank.row) }, rank.name) : (rank?.name ?? `Rank ${r.rank}`);
      return [name, r.name, f.time(r.ns), f.percent(r.ns, all)];
    });
    return [
      el("h3", null, "Ranks"), table("", ["rank", "activity", "time", "share"], cells),
      ...(rows.length > most ? [el("p", { class: "sub" }, `The ${most} of ${f.count(rows.length)} with the most time.`)] : []),
    ];
  }

  private operations(sums: PathSums, all: number): Node[] {
    const { head } = this.host.store;
    const rows = head.path!.what
      .map((w, i) => ({ w, ns: sums.what[i]! }))
      .filter(({ w, ns }) => w.activity === "operation" && ns > 0)
      .sort((a, b) => b.ns - a.ns);
    if (rows.length === 0) return [];
    const cells = rows.slice(0, most).map(({ w, ns }) => [w.operation ?? "not compared", head.comms[w.comm]?.name ?? "", f.time(ns), f.percent(ns, all)]);
    return [el("h3", null, "Operations, from their last arrivals on"), table("", ["operation", "communicator", "time", "share"], cells)];
  }
}

// ownOf returns the times of ranks' own activities and of operations in sums.
export function ownOf(store: Host["store"], sums: PathSums): { own: number; operations: number } {
  let [own, operations] = [0, 0];
  store.head.path!.what.forEach((w, i) => {
    if (isOwn(w.activity)) own += sums.what[i]!;
    if (w.activity === "operation") operations += sums.what[i]!;
  });
  return { own, operations };
}
