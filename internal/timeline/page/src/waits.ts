// SPDX-License-Identifier: Apache-2.0
// Waiting between ranks: for the whole run as in the report, or for the visible time.

import { byId, el, swatch, table } from "./dom";
import * as f from "./format";
import type { Host } from "./host";
import { chargesIn, greatestOf, waitingIn, type WaitingOf } from "./rangeflows";
import { Reader, type Scope } from "./scope";

const most = 64; // ranks that are shown
const mostOperations = 20;

export interface Sums {
  waited: ArrayLike<number>;
  caused: ArrayLike<number>;
  back: ArrayLike<number>; // waiting caused by each rank
  kinds: ArrayLike<number>[]; // the same by kind of delay, as the head lists these
  total: number;
  startUp: number; // −1: unknown
  of: WaitingOf[]; // those with the most waiting first
}

export class Waits {
  private readonly reader = new Reader("waits");
  shown: Sums & { from: number } = { waited: [], caused: [], back: [], kinds: [], of: [], total: 0, startUp: -1, from: 0 };

  constructor(private readonly host: Host, private readonly scope: Scope) {
    scope.charts.push({ visible: () => !byId("waits").hidden, ofRow: host.store.head.ranks.length > most, update: () => void this.update() });
    this.draw(this.whole());
  }

  // whole returns the figures of the report.
  private whole(): Sums {
    const { ranks } = this.host.store.head;
    return { waited: ranks.map((r) => r.waited), caused: ranks.map((r) => r.caused), back: ranks.map((r) => r.back), kinds: (this.host.store.head.charges?.kinds ?? []).map((_, k) => ranks.map((r) => r.backBy?.[k] ?? 0)), of: this.host.store.head.waiting ?? [], total: ranks.reduce((n, r) => n + r.waited, 0), startUp: -1 };
  }

  // update sums up the waits that begin in the visible time. Those of the whole run come from the report.
  update(): Promise<void> {
    const { store } = this.host;
    const { all, range: { from, to }, text } = this.scope;
    return this.reader.read(async (going) => {
      if (all) return this.draw(this.whole(), text, from);
      const sums = await waitingIn(store, from, to, going);
      const backs = sums && (await chargesIn(store, from, to, going));
      if (backs && going()) this.draw({ ...sums, back: backs.by, kinds: backs.kinds }, text, from);
    });
  }

  private draw(sums: Sums, when = this.scope.text, from = this.scope.range.from): void {
    this.shown = { ...sums, from };
    const { head } = this.host.store;
    const { ranks } = head;
    const section = byId("waits");
    const choice = this.scope.choice();
    choice.append(el("span", { class: "sub progress" }));
    if (sums.total === 0) {
      const why = !this.scope.all
        ? "No rank waits in operations that begin in this time."
        : head.totals.collectives > 0 ? "No rank waited for another." : "No operation could be compared: this needs times of two or more of its ranks, from their GPUs or networks.";
      section.replaceChildren(choice, el("p", { class: "hint" }, why));
      return;
    }
    const weight = (r: number) => sums.caused[r]! + sums.waited[r]! + sums.back[r]!;
    const all = ranks.map((_, i) => i);
    const culprit = all.reduce((a, b) => (sums.caused[b]! > sums.caused[a]! ? b : a));
    const greatest = Math.max(1, ...all.map((r) => Math.max(sums.waited[r]!, sums.caused[r]!, sums.back[r]!)));
    const chosen = this.host.store.rankOf(this.host.state.focus);
    const worst = ranks.length > most ? [...all].sort((a, b) => weight(b) - weight(a)).slice(0, most) : all;
    const shown = chosen < 0 || worst.includes(chosen) ? worst : [chosen, ...worst];
    const without = sums.startUp <= 0 ? "without the first collective of each communicator" : `without ${f.time(sums.startUp)} in the first operations of communicators`;
    section.replaceChildren(
      choice, el("h2", null, `Others waited ${f.time(sums.caused[culprit]!)} for ${ranks[culprit]!.name}`),
      el("p", { class: "sub" }, `${f.percent(sums.caused[culprit]!, sums.total)} of the waiting (${f.time(sums.total)}, summed over ${f.plural(ranks.length, "rank", "ranks")}) in operations that begin in ${when}, ${without}.`),
      ...this.origin(sums),
      el("p", { class: "keys" }, ...[["--wait", "waited for others"], ["--faint", "wait caused, as it came last"], ["--path", "caused by what it did itself"]].map(([color, text]) => el("span", null, swatch(`var(${color})`), text!))),
      ...shown.map((r) => this.row(r, sums, greatest)),
      ...this.operations(sums),
      worst.length < ranks.length ? el("p", { class: "sub" }, `The ${worst.length} of ${f.count(ranks.length)} ranks with the most waiting${shown.length > worst.length ? ", and above them the one whose row is chosen" : "; one whose row is chosen stands above them"}.`) : "",
    );
  }

  // origin names the rank that caused the most waiting: the one that came last may have waited itself.
  private origin(sums: Sums): HTMLElement[] {
    const rank = greatestOf(sums.back);
    if (rank < 0) return [el("p", { class: "sub" }, "It is not known which rank caused it.")];
    return [el("p", { class: "origin" }, `${this.host.store.head.ranks[rank]!.name} caused the largest part of it: ${f.time(sums.back[rank]!)}, ${f.percent(Math.min(sums.back[rank]!, sums.total), sums.total)}${this.lateIn(rank, sums)}.`)];
  }

  // lateIn returns the kind of delay of a rank; "": it caused no waiting.
  private lateIn(rank: number, sums: Sums): string {
    const names = this.host.store.head.charges?.kinds ?? [];
    const parts = names.map((name, k) => ({ name: f.cause(name), ns: sums.kinds[k]![rank]! })).filter((p) => p.ns > 0).sort((a, b) => b.ns - a.ns);
    if (parts.length === 0) return "";
    return parts.length === 1 ? `, ${parts[0]!.name}` : `; ${parts.map((p) => `${p.name} ${f.time(p.ns)}`).join(", ")}`;
  }

  // operations lists the operations with the most waiting.
  private operations(sums: Sums): Node[] {
    const { comms } = this.host.store.head;
    const all = sums.of;
    if (all.length === 0) return [];
    const rows = all.slice(0, mostOperations).map((o) => [o.name, comms[o.comm]?.name ?? "?", f.count(o.waits), f.time(o.waited), f.percent(o.waited, sums.total)]);
    return [
      el("h3", null, "By operation and communicator"), table("", ["operation", "communicator", "waits", "waited", "share"], rows),
      ...(all.length > mostOperations ? [el("p", { class: "sub" }, `The ${mostOperations} with the most waiting.`)] : []),
    ];
  }

  private row(rank: number, sums: Sums, greatest: number): HTMLElement {
    const r = this.host.store.head.ranks[rank]!;
    const meter = (kind: string, v: number) => el("span", { class: "meter " + kind, hidden: v === 0, style: { width: `${(100 * v) / greatest}%` } });
    return el(
      "button",
      {
        class: "wait-row", title: `${r.worst > 0 ? `Go to the longest wait for it in the run: ${f.time(r.worst)}` : "Show its row"}${sums.back[rank]! > 0 ? `. Caused by what it did itself: ${f.time(sums.back[rank]!)}${this.lateIn(rank, sums)}` : ""}`,
        onclick: () => {
          if (r.worst > 0) this.host.state.jump(r.worstAt - 3 * r.worst, r.worstAt + 2 * r.worst);
          if (r.row >= 0) this.host.state.focusRow(r.row);
        },
      },
      el("span", { class: "numbers" }, `${f.time(sums.waited[rank]!)} · ${f.time(sums.caused[rank]!)} · ${f.time(sums.back[rank]!)}`), `${r.name} `, el("span", { class: "sub" }, r.host),
      meter("waited", sums.waited[rank]!), meter("caused", sums.caused[rank]!), meter("back", sums.back[rank]!),
    );
  }
}
