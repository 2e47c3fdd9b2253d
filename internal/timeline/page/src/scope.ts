// SPDX-License-Identifier: Apache-2.0
// The time covered by charts beside the picture: the selected range, the visible time, or on request the whole run.

import { byId, choice, el, message } from "./dom";
import * as f from "./format";
import type { Range } from "./rangesums";
import type { State } from "./state";

// Scoped is a chart that follows the visible time.
export interface Scoped {
  visible(): boolean;
  update(): void;
  ofRow?: boolean; // it also depends on the chosen row
}

const calm = 150; // ms without a change after which charts follow

export class Scope {
  readonly charts: Scoped[] = [];
  whole = false; // charts cover the whole run
  private timer = 0;
  private last = "";
  private row = -1; // the row chosen at that time

  constructor(private readonly state: State) {}

  // range is the time covered, within the run.
  get range(): Range {
    const { view, range, store } = this.state;
    if (this.whole) return { from: store.head.begin, to: store.head.duration + 1 };
    if (range) return range;
    return { from: Math.max(store.head.begin, view.from), to: Math.min(store.head.duration + 1, view.to) };
  }

  // all reports whether that is the whole run.
  get all(): boolean {
    const { from, to } = this.range;
    return from <= this.state.store.head.begin && to >= this.state.store.head.duration;
  }

  get text(): string {
    const { from, to } = this.range;
    const what = this.whole ? "the whole run" : this.state.range ? "the selected range" : "the part shown";
    return `${what}, ${f.time(from)} to ${f.time(Math.max(from, to - (this.whole ? 1 : 0)))}`;
  }

  // choice creates the buttons for it.
  choice(): HTMLElement {
    const choose = (whole: boolean) => {
      this.whole = whole;
      this.update();
    };
    return choice("Part of the run", [[false, this.state.range ? "Range" : "Shown", "The selected range, or else the part shown"], [true, "Whole run", "Everything on the page"]], this.whole, choose);
  }

  // follow notes a change of the visible time.
  follow(): void {
    const { from, to } = this.range;
    const key = `${from} ${to}`;
    const { focus } = this.state;
    if (key === this.last) {
      if (focus === this.row) return;
      this.row = focus;
      for (const c of this.charts) if (c.ofRow && c.visible()) c.update();
      return;
    }
    this.last = key;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), calm) as unknown as number;
  }

  // update updates the visible charts.
  update(): void {
    clearTimeout(this.timer);
    const { from, to } = this.range;
    this.last = `${from} ${to}`;
    this.row = this.state.focus;
    for (const c of this.charts) if (c.visible()) c.update();
  }
}

// Going is called with the share that is done; when it returns false, what is read is no longer wanted.
export type Going = (share?: number) => boolean;

// Reader reads what a chart shows. Only what was asked for last counts.
export class Reader {
  private asked = 0;

  constructor(private readonly section: string) {}

  // read shows how far the work is and, if it fails, why.
  async read(work: (going: Going) => Promise<void>): Promise<void> {
    const ask = ++this.asked;
    const section = byId(this.section);
    try {
      await work((share) => {
        if (share !== undefined && ask === this.asked) section.querySelector(".progress")?.replaceChildren(`Reading… ${Math.round(100 * share)} %`);
        return ask === this.asked;
      });
    } catch (e) {
      section.replaceChildren(el("p", { class: "alarm" }, message(e)));
    }
  }
}
