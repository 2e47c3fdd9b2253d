// SPDX-License-Identifier: Apache-2.0
// Searching: what was typed, and going from match to match.

import { byId } from "./dom";
import * as f from "./format";
import { next, parse, waits, type Query } from "./search";
import type { Selection } from "./selection";
import type { State } from "./state";
import type { Toggles } from "./toggles";

const start = { time: -Infinity, bar: -1 };
const end = { time: Infinity, bar: Infinity };

export class Finder {
  constructor(
    private readonly state: State,
    private readonly selection: Selection,
    private readonly toggles: Toggles,
  ) {}

  search(text: string): void {
    const { state } = this;
    const query = (state.query = parse(state.store, text));
    const input = byId<HTMLInputElement>("query");
    if (input.value !== text) input.value = text;
    byId("search").classList.toggle("active", query !== undefined);
    byId("hits").textContent = query ? (query.count > 0 ? f.count(query.count) : query.metrics.length > 0 ? f.plural(query.metrics.length, "metric", "metrics") : "none") : "";
    if (query?.count === 0 && query.metrics.length > 0 && !state.rows.metrics) this.toggles.metrics();
    // A search that chooses rows shows only these.
    state.rows.show(query?.rows);
    state.relayout();
    state.recolour();
  }

  // step goes to the next match.
  async step(forward: boolean, query: Query | undefined = this.state.query): Promise<void> {
    if (!query) return;
    const { state } = this;
    const { store } = state;
    if (query.count === 0 && query.metrics.length > 0) {
      const at = query.metrics.indexOf(state.focus);
      return state.focusRow(query.metrics[(at + (forward ? 1 : query.metrics.length - 1 + Number(at < 0))) % query.metrics.length]!);
    }
    const from = forward ? start : end;
    const selected = state.selected && store.peekBar(state.selected.bar);
    try {
      const bar = (await next(store, query, selected ? { time: selected.start, bar: state.selected!.bar } : from, forward)) ?? (await next(store, query, from, forward));
      if (bar !== undefined) await this.selection.select(bar, "jump");
    } catch (e) {
      state.fail(e);
    }
  }

  stepWait(forward: boolean): Promise<void> {
    return this.step(forward, waits(this.state.store));
  }
}
