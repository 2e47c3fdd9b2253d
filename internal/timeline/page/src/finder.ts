// SPDX-License-Identifier: Apache-2.0
// The search: the text entered, and stepping from match to match.

import { byId, tell } from "./dom";
import { parseFilter, type Filter } from "./filter";
import * as f from "./format";
import { Lister, type Operation } from "./listing";
import { next, parse, waits, type Place, type Query } from "./search";
import type { Selection } from "./selection";
import type { State } from "./state";
import type { Toggles } from "./toggles";

const start = { time: -Infinity, bar: -1 };
const end = { time: Infinity, bar: Infinity };
const none = new Set<number>();
const mostFound = 100_000; // operations found by conditions, at most

export class Finder {
  private readonly lister: Lister;
  private asked = 0;
  private found: Operation[] | undefined; // that meet conditions, in the order of their begins; undefined: nobody asked, or they are being looked for

  constructor(private readonly state: State, private readonly selection: Selection, private readonly toggles: Toggles) {
    this.lister = new Lister(state.store);
  }

  // search looks for names or, if the text has conditions, for operations (filter.ts). For these nothing is faded: only
  // some operations of a name match.
  search(text: string): void {
    const { state } = this;
    const ask = ++this.asked;
    const filter = parseFilter(text);
    const all = { text, regions: new Set(state.store.head.regions.keys()), on: () => none, rows: undefined, count: 0, metrics: [] };
    const query = filter.conditional ? all : parse(state.store, text);
    this.found = undefined;
    state.query = query;
    const input = byId<HTMLInputElement>("query");
    if (input.value !== text) input.value = text;
    byId("search").classList.toggle("active", query !== undefined);
    const metrics = query?.count === 0 ? query.metrics.length : 0;
    byId("hits").textContent = filter.conditional ? "…" : !query ? "" : query.count > 0 ? f.count(query.count) : metrics > 0 ? f.plural(metrics, "metric", "metrics") : "none";
    if (metrics > 0 && !state.rows.metrics) this.toggles.metrics();
    // A search for rows shows only the rows found.
    state.rows.show(query?.rows);
    state.relayout();
    state.recolor();
    if (filter.conditional) void this.findOperations(filter, ask);
  }

  private async findOperations(filter: Filter, ask: number): Promise<void> {
    const { head } = this.state.store;
    try {
      const list = await this.lister.list(head.begin, head.duration + 1, filter, mostFound, (share) => {
        if (ask === this.asked) byId("hits").textContent = `${Math.round(100 * share)} %`;
        return ask === this.asked;
      });
      if (!list || ask !== this.asked) return;
      this.found = list.all.sort((a, b) => a.start - b.start || a.bar - b.bar);
      const n = this.found.length;
      byId("hits").textContent = filter.wrong.length > 0 ? `not understood: ${filter.wrong.join(" ")}` : n === 0 ? "none" : `${list.left ? "> " : ""}${f.count(n)}`;
    } catch (e) {
      this.state.fail(e);
    }
  }

  // meeting returns the next operation found.
  private meeting(found: Operation[], after: Place, forward: boolean): number | undefined {
    const later = (o: Operation) => o.start > after.time || (o.start === after.time && o.bar > after.bar);
    const earlier = (o: Operation) => o.start < after.time || (o.start === after.time && o.bar < after.bar);
    return (forward ? found.find(later) : [...found].reverse().find(earlier))?.bar;
  }

  // begin returns where to start: at the selected bar if it is visible, else at the begin (backwards the end)
  // shown.
  private begin(forward: boolean): Place {
    const { selected, store, view } = this.state;
    const b = selected && store.peekBar(selected.bar);
    if (b && b.start + b.length >= view.from && b.start <= view.to) return { time: b.start, bar: selected!.bar };
    return forward ? { time: view.from, bar: -1 } : { time: view.to, bar: Infinity };
  }

  // step goes to the next match after the selection or the visible time, and wraps around at the end.
  async step(forward: boolean, query: Query | undefined = this.state.query): Promise<void> {
    if (!query) return;
    const { state } = this;
    const { store } = state;
    const find = (after: Place) => (this.found && query === state.query ? Promise.resolve(this.meeting(this.found, after, forward)) : next(store, query, after, forward));
    if (query.count === 0 && query.metrics.length > 0) {
      const at = query.metrics.indexOf(state.focus);
      return state.focusRow(query.metrics[(at + (forward ? 1 : query.metrics.length - 1 + Number(at < 0))) % query.metrics.length]!);
    }
    try {
      const bar = (await find(this.begin(forward))) ?? (await find(forward ? start : end));
      if (bar === undefined) tell("There is no match");
      else await this.selection.select(bar, "jump");
    } catch (e) {
      state.fail(e);
    }
  }

  stepWait(forward: boolean): Promise<void> {
    return this.step(forward, waits(this.state.store));
  }
}
