// SPDX-License-Identifier: Apache-2.0
// The text about the picture: the visible part of the run, what is left out, and errors.

import { byId } from "./dom";
import * as f from "./format";
import type { Drawn } from "./lines";
import type { Painted } from "./paint";
import type { State } from "./state";

export class Status {
  constructor(private readonly state: State) {
    const { head } = state.store;
    const t = head.totals;
    document.title = `${head.title} – timeline`;
    byId("title").textContent = head.title;
    byId("title").title = head.title;
    byId("totals").textContent = [
      f.plural(head.ranks.length, "rank", "ranks") + (t.hosts > 0 ? ` on ${f.plural(t.hosts, "host", "hosts")}` : ""),
      f.plural(t.comms, "communicator", "communicators"), f.time(head.duration - head.begin), f.plural(t.bars, "region", "regions"),
      ...(head.selection === "" ? [] : [`selection: ${head.selection}`]),
    ].join(" · ");
    state.onError = (text) => {
      byId("busy").textContent = text;
      byId("busy").classList.add("alarm");
    };
  }

  draw(painted: Painted, drawn: Drawn): void {
    const { store, view, errors } = this.state;
    const { from, to } = view;
    const step = 10 ** Math.floor(Math.log10(Math.max(1, (to - from) / 100)));
    const round = (t: number) => f.onRuler(Math.round(Math.max(0, Math.min(store.head.duration, t)) / step) * step, step).replace(/(\.\d+)\u202f(\d+)/g, "$1$2");
    byId("span").textContent = `${round(from)} – ${round(to)} (${f.time(to - from)} shown)`;
    if (errors.length === 0) byId("busy").textContent = store.loading > 0 ? "Unpacking…" : "";
    const empty = store.head.totals.bars === 0 && store.curves.all.length === 0;
    byId("note").textContent = empty
      ? "There are no regions in this archive."
      : drawn.crowded.length > 0 && painted.coarse === 0
        ? `Zoom in for lines of ${drawn.crowded.join(", ")}`
        : "";
  }
}
