// SPDX-License-Identifier: Apache-2.0
// The page: its parts, and what the console and tests see of them.

import { Commands, type Parts } from "./commands";
import type { Family } from "./family";
import { byId } from "./dom";
import { Finder } from "./finder";
import { fillHelp } from "./help";
import { hereIs, showPlace } from "./here";
import { Hover } from "./hover";
import { Input } from "./input";
import { bindKeys } from "./keys";
import type { Listing } from "./listing";
import type { Drawn, Lines } from "./lines";
import type { Matrix } from "./matrix";
import type { Painted } from "./paint";
import { Panel } from "./panel";
import type { PathLine } from "./path";
import { PhaseBand } from "./phaseband";
import { pick } from "./pick";
import { Picture } from "./picture";
import { preparePrint } from "./print";
import { Ranges } from "./ranges";
import { RankMap } from "./rankmap";
import { RankNames } from "./ranknames";
import type { Range, RangeSums } from "./rangesums";
import type { PathTable } from "./pathtable";
import type { StepTable } from "./steptable";
import type { Rows } from "./rows";
import { Scope } from "./scope";
import { Selection } from "./selection";
import { Stage } from "./stage";
import { State, type Shown } from "./state";
import type { Store } from "./store";
import { useMode, type Colors } from "./theme";
import { Toggles } from "./toggles";
import { Trail } from "./trail";
import { Tree } from "./tree";
import { Twin } from "./twin";
import type { View } from "./view";
import type { Waits } from "./waits";

export class App {
  private readonly parts: Parts;
  private readonly commands: Commands;

  constructor(readonly store: Store) {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const state = new State(store, dark.matches ? "dark" : "light");
    useMode(state.mode);
    const tree = new Tree(
      state,
      (row) => this.commands.toggleRow(row),
      (row) => state.focusRow(row),
    );
    const ranks = new RankMap(state);
    const band = new PhaseBand(state);
    const stage = new Stage(state, tree, ranks, new RankNames(state, ranks, (rank) => this.commands.showRank(rank)), band);
    const scope = new Scope(state);
    const panel = new Panel({
      store,
      colors: () => state.colors,
      select: (bar, go) => void selection.select(bar, go ? "jump" : "stay"),
      selectAt: (row, time) => void selection.at(row, time),
      go: (a, b) => (state.onJump(), state.go(a, b)),
      tab: (name) => panel.show(name),
      list: (filter) => void this.commands.list(filter),
      focus: (row) => state.focusRow(row),
      focused: () => state.focus,
      highlight: (c) => this.commands.highlight(c),
      highlighted: () => state.category,
      pathShown: () => stage.path.on,
      showPath: () => toggles.path(),
      redraw: () => state.onChange(),
    }, scope, band);
    const selection = new Selection(state, panel);
    const toggles = new Toggles(state, stage.path);
    const finder = new Finder(state, selection, toggles);
    this.parts = { state, stage, panel, selection, finder, ranges: new Ranges(state, panel), hover: new Hover(state, stage, ranks, panel.tips), toggles, ranks, picture: new Picture(state, stage, ranks, band) };
    this.commands = new Commands(this.parts);
    const trail = new Trail(() => hereIs(this.parts), (place) => showPlace(this.parts, this.commands, place));
    state.onJump = () => trail.jump();
    const { ranges } = this.parts;
    scope.charts.push({ visible: () => !byId("range").hidden, ofRow: true, update: () => ranges.update() });
    ranges.onNone = () => scope.update();
    const twin = new Twin(store.head, state.view, (from, to) => state.go(from, to));
    panel.onTab = () => trail.changed();
    stage.onDrawn = () => {
      panel.operations.select(state.selected?.bar ?? -1);
      scope.follow();
      trail.changed();
      twin.changed();
    };
    store.onError = (e) => state.fail(e);
    dark.addEventListener("change", (e) => this.commands.setMode(e.matches ? "dark" : "light"));
    fillHelp();
    preparePrint(state, stage, panel);
    bindKeys(this.parts, this.commands);
    new Input(this.parts, this.commands);
    stage.resize();
    if (!trail.begin()) {
      this.commands.steady();
      trail.settle();
    }
    if (twin.there && !document.body.classList.contains("no-panel")) panel.toggle(); // there is little room
  }

  // What is shown.

  get view(): View {
    return this.parts.state.view;
  }
  get rows(): Rows {
    return this.parts.state.rows;
  }
  get shown(): Shown {
    return this.parts.state.shown;
  }
  get colors(): Colors {
    return this.parts.state.colors;
  }
  get selected(): Family | undefined {
    return this.parts.state.selected;
  }
  get range(): Range | undefined {
    return this.parts.state.range;
  }
  get focused(): number {
    return this.parts.state.focus;
  }
  get errors(): readonly string[] {
    return this.parts.state.errors;
  }

  get ranks(): RankMap {
    return this.parts.ranks;
  }

  // What was drawn.

  get painted(): Painted {
    return this.parts.stage.painted;
  }
  get drawn(): Drawn {
    return this.parts.stage.drawn;
  }
  get strong(): Drawn {
    return this.parts.stage.strong;
  }
  get lines(): Lines {
    return this.parts.stage.lines;
  }
  get frames(): readonly number[] {
    return this.parts.stage.frames;
  }
  at(x: number, y: number, within?: number): number | undefined {
    return pick(this.parts.state, this.painted.boxes, x, y, within);
  }

  // What can be done.

  draw(): void {
    this.parts.stage.draw();
  }
  invalidate(): void {
    this.parts.stage.invalidate();
  }
  resize(): void {
    this.parts.stage.resize();
  }
  fit(): void {
    this.commands.fit();
  }
  steady(): void {
    this.commands.steady();
  }
  go(from: number, to: number): void {
    this.parts.state.go(from, to);
  }
  scroll(dy: number): void {
    this.parts.state.scroll(dy);
  }
  select(bar: number, go: boolean): Promise<void> {
    return this.parts.selection.select(bar, go ? "jump" : "stay");
  }
  unselect(): void {
    this.commands.unselect();
  }
  focusRow(row: number): void {
    this.parts.state.focusRow(row);
  }
  toggleRow(row: number): void {
    this.commands.toggleRow(row);
  }
  toggleAll(): void {
    this.commands.toggleAll();
  }
  toggleShown(name: keyof Shown): void {
    this.parts.toggles.shown(name);
  }
  list(filter: string, all?: boolean): Promise<Listing | undefined> {
    return this.commands.list(filter, all);
  }
  get matrix(): Matrix {
    return this.parts.panel.matrix;
  }
  get path(): PathLine {
    return this.parts.stage.path;
  }
  get pathSums(): PathTable["shown"] {
    return this.parts.panel.path.shown;
  }
  get steps(): StepTable {
    return this.parts.panel.steps;
  }
  get waitsShown(): Waits["shown"] {
    return this.parts.panel.waits.shown;
  }
  get picture(): Picture {
    return this.parts.picture;
  }
  csv(): Promise<string> {
    return this.parts.panel.operations.csv();
  }
  search(text: string): void {
    this.parts.finder.search(text);
  }
  step(forward: boolean): Promise<void> {
    return this.parts.finder.step(forward);
  }
  setRange(range: Range | undefined): void {
    this.parts.ranges.set(range);
  }
  sumRange(): Promise<RangeSums | undefined> {
    return this.parts.ranges.sum();
  }
}
