// SPDX-License-Identifier: Apache-2.0
// The tip for the object under the pointer.

import { byId, definitions, el } from "./dom";
import * as f from "./format";
import { pick } from "./pick";
import type { RankMap } from "./rankmap";
import type { Stage } from "./stage";
import type { Pointed, State } from "./state";
import type { Tips } from "./tips";

export class Hover {
  private readonly tip = byId("tip");
  private asked = 0; // counts requests for tips

  constructor(
    private readonly state: State,
    private readonly stage: Stage,
    private readonly ranks: RankMap,
    private readonly tips: Tips,
  ) {}

  // at shows what is at a point.
  at(x: number, y: number): void {
    const { state, ranks } = this;
    const { store, view, rows } = state;
    const bar = ranks.on ? -1 : (pick(state, this.stage.painted.boxes, x, y) ?? -1);
    byId("cursor").textContent = f.exact(Math.max(0, Math.min(store.head.duration, view.time(x))));
    if (bar >= 0 && bar === state.hovered) return this.place(x, y);
    const item = ranks.on || bar >= 0 ? undefined : rows.at(y + view.top);
    const curve = item && store.curves.of(item.row);
    const marked = state.hovered !== bar || (state.pointed && !curve); // the dot on a curve moves when its value is known
    state.hovered = bar;
    state.pointed = curve && { curve, time: view.time(x) };
    if (marked) state.onMark();
    if (ranks.on) this.show(x, y, this.rank(x, y));
    else if (bar >= 0) this.show(x, y, this.tips.bar(bar));
    else this.show(x, y, state.pointed ? this.curve(state.pointed) : this.line(x, y));
  }

  // show shows a tip as soon as it is known, if the pointer is still there; undefined: there is none.
  private show(x: number, y: number, content: Promise<HTMLElement[] | undefined>): void {
    const ask = ++this.asked;
    content.then(
      (c) => {
        if (ask !== this.asked) return;
        this.tip.hidden = !c;
        if (!c) return;
        this.tip.replaceChildren(...c);
        this.place(x, y);
      },
      (e: unknown) => this.state.fail(e),
    );
  }

  private place(x: number, y: number): void {
    const { tip } = this;
    const { view } = this.state;
    const [w, h] = [tip.offsetWidth, tip.offsetHeight];
    tip.style.left = Math.max(4, Math.min(x + 14, view.width - w - 6)) + "px";
    tip.style.top = (y + 18 + h > view.height ? Math.max(4, y - h - 12) : y + 18) + "px";
  }

  // line describes the transfer or the part of the critical path that is drawn at a point.
  private async line(x: number, y: number): Promise<HTMLElement[] | undefined> {
    const wire = this.stage.lines.wireAt(x, y);
    const part = wire ? undefined : this.stage.path.at(x, y);
    return wire ? this.tips.transfer(wire.row, wire.index) : part && this.tips.path(part);
  }

  // rank describes a point in the picture of all ranks.
  private async rank(x: number, y: number): Promise<HTMLElement[] | undefined> {
    const r = await this.ranks.reading(x, y);
    if (!r) return undefined;
    const rank = this.state.store.head.ranks[r.rank]!;
    const rows = [[r.name.toLowerCase(), r.text], ["from", f.exact(Math.round(r.from))], ["to", f.exact(Math.round(r.to))]] as const;
    return [el("b", null, rank.name), el("span", { class: "sub" }, rank.host), definitions(rows)];
  }

  // curve describes the value of a curve at a time.
  private async curve(pointed: Pointed): Promise<HTMLElement[] | undefined> {
    const { state } = this;
    const { curves } = state.store;
    const { curve, time } = pointed;
    const half = 0.5 / state.view.scale;
    const [reading, sums] = await Promise.all([curves.reading(curve, time), curves.sums(curve, time - half, time + half)]);
    if (state.pointed !== pointed || !reading) return undefined;
    pointed.value = reading.value;
    state.onMark();
    return this.tips.curve(curve, reading, sums);
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
