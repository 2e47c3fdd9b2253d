// SPDX-License-Identifier: Apache-2.0
// The commands of the page, to which buttons, keys and gestures lead.

import { byId, tell } from "./dom";
import type { Finder } from "./finder";
import type { Hover } from "./hover";
import type { Listing } from "./listing";
import type { Panel } from "./panel";
import { pick } from "./pick";
import type { Picture } from "./picture";
import type { Ranges } from "./ranges";
import type { RankMap } from "./rankmap";
import type { Selection } from "./selection";
import type { Stage } from "./stage";
import type { State } from "./state";
import { useMode, type Mode } from "./theme";
import type { Toggles } from "./toggles";

export interface Parts {
  state: State;
  stage: Stage;
  panel: Panel;
  selection: Selection;
  finder: Finder;
  ranges: Ranges;
  hover: Hover;
  toggles: Toggles;
  ranks: RankMap;
  picture: Picture;
}

export class Commands {
  private readonly state: State;

  constructor(private readonly parts: Parts) {
    this.state = parts.state;
  }

  zoom(factor: number, x = this.state.view.width / 2): void {
    this.state.view.zoom(factor, x);
    this.state.onChange();
  }

  pan(dx: number): void {
    this.state.view.pan(dx);
    this.state.onChange();
  }

  fit(): void {
    this.state.onJump();
    this.state.view.fit();
    this.state.onChange();
  }

  // steady shows the run without start-up, or the whole run if that is unknown.
  steady(): void {
    const { from, to } = this.state.store.head.answer;
    if (to <= from) return this.fit();
    this.state.jump(from - 0.02 * (to - from), to + 0.02 * (to - from));
  }

  zoomToSelection(): void {
    if (this.state.range) return this.state.jump(this.state.range.from, this.state.range.to);
    const b = this.state.selected && this.state.store.peekBar(this.state.selected.bar);
    if (b) this.state.jump(b.start - 0.5 * b.length - 20, b.start + 1.5 * b.length + 20);
  }

  setMode(mode: Mode): void {
    const { state, panel } = this.parts;
    state.mode = mode;
    useMode(mode);
    state.recolor();
    panel.repaint();
    if (state.selected) void panel.details.bar(state.selected.bar, state.selected);
  }

  toggleTheme(): void {
    this.setMode(this.state.mode === "dark" ? "light" : "dark");
  }

  // highlight fades all groups of regions except one; on the second call, none.
  highlight(category: number): void {
    const { state, panel } = this.parts;
    state.category = state.category === category ? -1 : category;
    state.recolor();
    panel.repaint();
  }

  help(): void {
    const dialog = byId<HTMLDialogElement>("help");
    if (dialog.open) dialog.close();
    else dialog.showModal();
  }

  scroll(dy: number): void {
    const { state, ranks } = this.parts;
    if (ranks.on) ranks.scroll(dy);
    else state.scroll(dy);
  }

  // toggleRanks switches between the picture of all ranks and the rows.
  toggleRanks(): void {
    const { state, ranks } = this.parts;
    state.onJump();
    ranks.toggle();
    tell(ranks.on ? "All ranks in one picture" : "Rows");
  }

  // showRank shows the rows of a rank.
  showRank(rank: number): void {
    const { state, ranks } = this.parts;
    const row = state.store.head.ranks[rank]?.row ?? -1;
    state.onJump();
    ranks.toggle(false);
    if (row < 0) return;
    state.rows.closed.delete(row);
    state.focusRow(row);
    tell(`Rows of ${state.store.head.ranks[rank]!.name}`);
  }

  // toggleRow opens or closes a row; for a metric it shows the details.
  toggleRow(row: number): void {
    const { state, selection } = this.parts;
    const curve = state.store.curves.of(row);
    if (curve) return void selection.curve(curve);
    state.rows.toggle(row);
    state.relayout();
  }

  toggleAll(): void {
    this.state.rows.setAll(this.state.rows.closed.size > 0);
    this.state.relayout();
  }

  // pinRow pins the chosen row above all others, or unpins it.
  pinRow(row = this.state.focus): void {
    const { rows } = this.state;
    if (row < 0) return;
    const pinned = rows.pinned.has(row) ? [...rows.pinned].filter((r) => r !== row) : [...rows.pinned, row];
    this.arrange(pinned, rows.hidden, rows.pinned.has(row) ? "unpinned" : "pinned", row);
  }

  // hideRow hides the chosen row with its children and chooses the next one.
  hideRow(row = this.state.focus): void {
    const { rows } = this.state;
    if (row < 0) return;
    const at = rows.items.findIndex((i) => i.row === row);
    const level = rows.items[at]?.level ?? 0;
    const next = rows.items.find((i, n) => n > at && i.level <= level) ?? rows.items[at - 1];
    this.arrange(rows.pinned, [...rows.hidden, row], "hidden", row);
    if (this.state.focus === row) this.state.focusRow(next && rows.of(next.row)?.row === next.row ? next.row : -1);
  }

  showHidden(): void {
    this.arrange(this.state.rows.pinned, [], "All rows are shown");
  }

  private arrange(pinned: Iterable<number>, hidden: Iterable<number>, said: string, row = -1): void {
    this.state.onJump();
    this.state.rows.arrange([...pinned], [...hidden]);
    this.state.relayout();
    tell(row < 0 ? said : `${this.state.store.head.rows[row]!.name}: ${said}`);
  }

  moveFocus(step: number): void {
    const { state, ranks } = this.parts;
    if (ranks.on) return ranks.scroll(step * ranks.rows.height);
    const items = state.rows.items;
    const at = items.findIndex((i) => i.row === state.focus);
    const to = items[Math.max(0, Math.min(items.length - 1, at < 0 ? 0 : at + step))];
    if (to) state.focusRow(to.row);
  }

  // click selects the object at a point, within a distance in pixels.
  click(x: number, y: number, within: number): void {
    const { state, stage, selection, ranks } = this.parts;
    if (ranks.on) {
      const rank = ranks.click(y);
      if (rank !== undefined) this.showRank(rank);
      return;
    }
    const bar = pick(state, stage.painted.boxes, x, y, within);
    const item = state.rows.at(y + state.view.top);
    const curve = item && state.store.curves.of(item.row);
    if (bar !== undefined) void selection.select(bar, "stay");
    else if (curve) void selection.curve(curve, state.view.time(x));
    else if (item && item.strip.length > 0) this.toggleRow(item.row);
    else this.unselect();
  }

  // list shows the operations that match a filter.
  list(filter: string, all = false): Promise<Listing | undefined> {
    this.parts.panel.show("operations");
    return this.parts.panel.operations.filter(filter, all);
  }

  // unselect clears the selection.
  unselect(): void {
    const { state, selection, ranges, finder, panel, ranks } = this.parts;
    if (ranks.on) ranks.all();
    selection.clear();
    ranges.set(undefined);
    if (state.query) finder.search("");
    state.category = -1;
    state.recolor();
    panel.empty();
  }
}
