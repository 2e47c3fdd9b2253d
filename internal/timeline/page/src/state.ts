// SPDX-License-Identifier: Apache-2.0
// What is shown of an archive, and what is chosen in it. Nothing here draws.

import type { Curve } from "./curves";
import type { Family } from "./family";
import type { Range } from "./rangesums";
import { Rows } from "./rows";
import type { Query } from "./search";
import type { Store } from "./store";
import { colors, type Colors, type Mode } from "./theme";
import { View } from "./view";

// Shown says what is marked in the picture beside the bars.
export interface Shown {
  parents: boolean;
  collectives: boolean;
  transfers: boolean;
  waits: boolean;
}

// Pointed is a time at a curve, and what that says of it, once that is known.
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
  colored = ""; // what the colors were made of
  category = -1; // that is highlighted
  focus = -1; // row that is chosen
  selected: Family | undefined;
  hovered = -1;
  pointed: Pointed | undefined;
  range: Range | undefined;
  query: Query | undefined;
  readonly errors: string[] = [];
  onChange: () => void = () => {}; // there is something else to be drawn,
  onMark: () => void = () => {}; // or only above the picture
  onError: (text: string) => void = () => {};
  onJump: () => void = () => {}; // what is shown now is to be come back to

  constructor(
    readonly store: Store,
    public mode: Mode,
  ) {
    this.view = new View(store.head.duration, store.head.begin);
    this.rows = new Rows(store);
    this.recolor();
  }

  fail(e: unknown): void {
    const text = e instanceof Error ? e.message : String(e);
    if (!this.errors.includes(text)) this.errors.push(text);
    this.onError(text);
  }

  // recolor follows a change of the mode, or of what is not faded.
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

  // relayout follows a change of the rows, or of the room for them.
  relayout(): void {
    this.rows.fit(this.view.height);
    this.view.scroll(0, this.rows.height);
    this.onChange();
  }

  scroll(dy: number): void {
    this.view.scroll(dy, this.rows.height);
    this.onChange();
  }

  // go shows a part of time.
  go(from: number, to: number): void {
    this.view.set(from, to);
    this.onChange();
  }

  // reveal brings a row into the picture.
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
