// SPDX-License-Identifier: Apache-2.0
// The visible part of an archive and the selection. Nothing here draws.

import type { Curve } from "./curves";
import type { Family } from "./family";
import type { Range } from "./rangesums";
import { Rows } from "./rows";
import type { Query } from "./search";
import type { Store } from "./store";
import { colors, type Colors, type Mode } from "./theme";
import { View } from "./view";

// Shown is what the picture marks besides the bars.
export interface Shown {
  parents: boolean;
  collectives: boolean;
  transfers: boolean;
  waits: boolean;
}

// Pointed is a point in time on a curve, with its value once that is loaded.
export interface Pointed {
  curve: Curve;
  time: number;
  value?: number;
}

export class State {
  readonly view: View;
  readonly rows: Rows;
  readonly shown: Shown = { parents: false, collectives: true, transfers: true, waits: true };
  colors!: Colors;
  colored = ""; // key of the present colors
  category = -1; // the highlighted category
  focus = -1; // the chosen row
  selected: Family | undefined;
  hovered = -1;
  pointed: Pointed | undefined;
  range: Range | undefined;
  query: Query | undefined;
  readonly errors: string[] = [];
  onChange: () => void = () => {}; // the picture must be drawn again,
  onMark: () => void = () => {}; // or only the marks above it
  onError: (text: string) => void = () => {};
  onJump: () => void = () => {}; // before a jump from which one can go back

  constructor(readonly store: Store, public mode: Mode) {
    this.view = new View(store.head.duration, store.head.begin);
    this.rows = new Rows(store);
    this.recolor();
  }

  fail(e: unknown): void {
    const text = e instanceof Error ? e.message : String(e);
    if (!this.errors.includes(text)) this.errors.push(text);
    this.onError(text);
  }

  // recolor applies a change of the mode or of the fading.
  recolor(): void {
    const { query, category } = this;
    const { regions } = this.store.head;
    const shown = query ? (r: number) => query.regions.has(r) : category >= 0 ? (r: number) => regions[r]!.category === category : undefined;
    this.colors = colors(this.store.head, this.mode, shown);
    this.colored = `${this.mode} ${query?.text ?? ""} ${category}`;
    this.onChange();
  }

  resize(width: number, height: number): void {
    this.view.width = Math.max(1, width);
    this.view.height = Math.max(1, height);
    this.relayout();
  }

  // relayout applies a change of the rows, or of the room for them.
  relayout(): void {
    this.rows.fit(this.view.height);
    this.view.scroll(0, this.rows.height);
    this.onChange();
  }

  scroll(dy: number): void {
    this.view.scroll(dy, this.rows.height);
    this.onChange();
  }

  // go shows a range of time.
  go(from: number, to: number): void {
    this.view.set(from, to);
    this.onChange();
  }

  // jump shows a range of time; one can go back to what was shown before.
  jump(from: number, to: number): void {
    this.onJump();
    this.go(from, to);
  }

  // reveal scrolls to a row.
  reveal(row: number): void {
    this.rows.reveal(row);
    this.relayout();
    const item = this.rows.of(row);
    if (!item) return;
    if (item.y < this.view.top) this.view.top = item.y;
    else if (item.y + item.height > this.view.top + this.view.height) this.view.top = item.y + item.height - this.view.height;
    this.view.scroll(0, this.rows.height);
  }

  // focusRow chooses a row; below 0: none.
  focusRow(row: number): void {
    this.focus = row;
    if (row < 0) this.onChange();
    else this.reveal(row);
  }
}
