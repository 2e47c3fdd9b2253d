// SPDX-License-Identifier: Apache-2.0
// The tip for the object under the pointer.

import type { Curve } from "./curves";
import { byId, definitions, el } from "./dom";
import * as f from "./format";
import { pick } from "./pick";
import type { RankMap } from "./rankmap";
import type { Stage } from "./stage";
import type { Pointed, State } from "./state";
import type { Tips } from "./tips";

export class Hover {
  private readonly tip = byId("tip");
  private asked = 0; // counts requests to the picture of all ranks

  constructor(
    private readonly state: State,
    private readonly stage: Stage,
    private readonly ranks: RankMap,
    private readonly tips: Tips,
  ) {}

  at(x: number, y: number): void {
    const { state, tip } = this;
    const { store, view, rows } = state;
    const bar = this.ranks.on ? -1 : (pick(state, this.stage.painted.boxes, x, y) ?? -1);
    byId("cursor").textContent = f.exact(Math.max(0, Math.min(store.head.duration, view.time(x))));
    const place = () => {
      const w = tip.offsetWidth;
      const h = tip.offsetHeight;
      tip.style.left = Math.max(4, Math.min(x + 14, view.width - w - 6)) + "px";
      tip.style.top = (y + 18 + h > view.height ? Math.max(4, y - h - 12) : y + 18) + "px";
    };
    if (this.ranks.on) return this.rank(x, y, place);
    if (bar >= 0) return this.bar(bar, place);
    if (state.hovered >= 0 || state.pointed) {
      state.hovered = -1;
      state.pointed = undefined;
      state.onMark();
    }
    const item = rows.at(y + view.top);
    const curve = item && store.curves.of(item.row);
    if (curve) return this.curve(curve, x, place);
    const wire = this.stage.lines.wireAt(x, y);
    const part = wire ? undefined : this.stage.path.at(x, y);
    tip.hidden = !wire && !part;
    if (wire) tip.replaceChildren(...this.tips.transfer(wire.row, wire.index));
    else if (part) tip.replaceChildren(...this.tips.path(part));
    else return;
    place();
  }

  // rank shows the tip of a point in the picture of all ranks.
  private rank(x: number, y: number, place: () => void): void {
    const { state, tip } = this;
    const ask = ++this.asked;
    this.ranks.reading(x, y).then(
      (r) => {
        if (ask !== this.asked) return;
        tip.hidden = r === undefined;
        if (!r) return;
        const rank = state.store.head.ranks[r.rank]!;
        const rows: [string, string][] = [[r.name.toLowerCase(), r.text], ["from", f.exact(Math.round(r.from))], ["to", f.exact(Math.round(r.to))]];
        tip.replaceChildren(el("b", null, rank.name), el("span", { class: "sub" }, rank.host), definitions(rows));
        place();
      },
      (e: unknown) => state.fail(e),
    );
  }

  private bar(bar: number, place: () => void): void {
    const { state, tip } = this;
    state.pointed = undefined;
    if (bar === state.hovered) return place();
    state.hovered = bar;
    state.onMark();
    this.tips.bar(bar).then(
      (content) => {
        if (state.hovered !== bar) return;
        tip.replaceChildren(...content);
        tip.hidden = false;
        place();
      },
      (e: unknown) => state.fail(e),
    );
  }

  // curve shows the value of a curve at x.
  private curve(curve: Curve, x: number, place: () => void): void {
    const { state, tip } = this;
    const { view, store } = state;
    const pointed: Pointed = { curve, time: view.time(x) };
    state.pointed = pointed;
    const half = 0.5 / view.scale;
    Promise.all([store.curves.reading(curve, pointed.time), store.curves.sums(curve, pointed.time - half, pointed.time + half)]).then(
      ([reading, sums]) => {
        if (state.pointed !== pointed) return;
        tip.hidden = reading === undefined;
        if (!reading) return;
        pointed.value = reading.value;
        state.onMark();
        tip.replaceChildren(...this.tips.curve(curve, reading, sums));
        place();
      },
      (e: unknown) => state.fail(e),
    );
  }

  leave(): void {
    this.asked++;
    this.state.hovered = -1;
    this.state.pointed = undefined;
    this.tip.hidden = true;
    byId("cursor").textContent = "";
    this.state.onMark();
  }
}
