// SPDX-License-Identifier: Apache-2.0
// The page: its parts, and what the console and tests see of them.

import { Commands, type Parts } from "./commands";
import { byId } from "./dom";
import { Finder } from "./finder";
import { fillHelp } from "./help";
import { hereIs, showPlace } from "./here";
import { Hover } from "./hover";
import { Input } from "./input";
import { bindKeys } from "./keys";
import { Panel } from "./panel";
import { PhaseBand } from "./phaseband";
import { pick } from "./pick";
import { Picture, preparePrint } from "./picture";
import { Ranges } from "./ranges";
import { RankMap } from "./rankmap";
import { RankNames } from "./ranknames";
import { Scope } from "./scope";
import { Selection } from "./selection";
import { Stage } from "./stage";
import { State } from "./state";
import type { Store } from "./store";
import { useMode } from "./theme";
import { Toggles } from "./toggles";
import { Trail } from "./trail";
import { Tree } from "./tree";
import { Twin } from "./twin";

// App is what the console and tests see.
export type App = ReturnType<typeof startApp>;

// startApp builds the page and shows the place in its address.
export function startApp(store: Store) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const state = new State(store, dark.matches ? "dark" : "light");
  useMode(state.mode);
  const tree = new Tree(state, (row) => commands.toggleRow(row), (row) => state.focusRow(row));
  const ranks = new RankMap(state);
  const band = new PhaseBand(state);
  const stage = new Stage(state, tree, ranks, new RankNames(state, ranks, (rank) => commands.showRank(rank)), band);
  const scope = new Scope(state);
  const panel = new Panel({
    store, state,
    select: (bar) => void selection.select(bar, "jump"),
    selectAt: (row, time) => void selection.at(row, time),
    highlight: (c) => commands.highlight(c),
    tab: (name) => panel.show(name),
    list: (filter) => void commands.list(filter),
    pathShown: () => stage.path.on,
    showPath: () => toggles.path(),
  }, scope, band);
  const selection = new Selection(state, panel);
  const toggles = new Toggles(state, stage.path);
  const finder = new Finder(state, selection, toggles);
  const ranges = new Ranges(state, panel);
  const parts: Parts = { state, stage, panel, selection, finder, ranges, hover: new Hover(state, stage, ranks, panel.tips), toggles, ranks, picture: new Picture(state, stage, ranks, band) };
  const commands = new Commands(parts);
  const trail = new Trail(() => hereIs(parts), (place) => showPlace(parts, commands, place));
  state.onJump = () => trail.jump();
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
  dark.addEventListener("change", (e) => commands.setMode(e.matches ? "dark" : "light"));
  fillHelp();
  preparePrint(state, stage, panel);
  bindKeys(parts, commands);
  new Input(parts, commands);
  stage.resize();
  if (!trail.begin()) {
    commands.steady();
    trail.settle();
  }
  if (twin.there && !document.body.classList.contains("no-panel")) panel.toggle(); // there is little room
  return {
    ...parts, store, commands,
    go: (from: number, to: number) => state.go(from, to),
    pick: (x: number, y: number, within?: number) => pick(state, stage.painted.boxes, x, y, within),
  };
}
