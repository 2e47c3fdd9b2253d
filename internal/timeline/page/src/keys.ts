// SPDX-License-Identifier: Apache-2.0
// Keys and buttons. help.ts describes the keys.

import type { Commands, Parts } from "./commands";
import { byId } from "./dom";

// bindKeys binds keys and buttons to commands.
export function bindKeys(parts: Parts, commands: Commands): void {
  const { panel, finder } = parts;
  const buttons: Record<string, () => void> = {
    in: () => commands.zoom(0.6),
    out: () => commands.zoom(1 / 0.6),
    fit: () => commands.fit(),
    steady: () => commands.steady(),
    "show-ranks": () => commands.toggleRanks(),
    theme: () => commands.toggleTheme(),
    "panel-toggle": () => panel.toggle(),
    "help-open": () => commands.help(),
    "close-all": () => commands.toggleAll(),
    next: () => void finder.step(true),
    previous: () => void finder.step(false),
  };
  for (const [id, what] of Object.entries(buttons)) byId(id).addEventListener("click", what);
  addEventListener("keydown", (e) => press(e, parts, commands));
  const query = byId<HTMLInputElement>("query");
  query.addEventListener("input", () => finder.search(query.value));
  query.addEventListener("keydown", (e) => {
    e.stopPropagation();
    if (e.key === "Enter") void finder.step(!e.shiftKey);
    if (e.key === "Escape") {
      finder.search("");
      byId("base").focus();
    }
  });
  byId("search").addEventListener("submit", (e) => e.preventDefault());
}

// same are keys that do what others do.
const same: Record<string, string> = { a: "ArrowLeft", d: "ArrowRight", f: "z", s: "-", w: "+", "=": "+" };

function press(e: KeyboardEvent, parts: Parts, commands: Commands): void {
  const { state, panel, selection, finder, toggles, picture } = parts;
  const { view } = state;
  if (e.ctrlKey || e.metaKey || e.altKey || byId<HTMLDialogElement>("help").open || byId<HTMLDialogElement>("save").open) return;
  const target = e.target as HTMLElement;
  if (target.closest("input, textarea, select")) return;
  const pressing = (e.key === "Enter" || e.key === " ") && target.closest("button");
  if (pressing) return;
  const far = view.width * (e.shiftKey ? 0.8 : 0.12);
  const keys: Record<string, () => void> = {
    ArrowLeft: () => commands.pan(-far),
    ArrowRight: () => commands.pan(far),
    ArrowUp: () => commands.moveFocus(-1),
    ArrowDown: () => commands.moveFocus(1),
    PageUp: () => commands.scroll(-view.height * 0.9),
    PageDown: () => commands.scroll(view.height * 0.9),
    Home: () => state.go(view.begin, view.begin + view.to - view.from),
    End: () => state.go(view.duration - (view.to - view.from), view.duration),
    Enter: () => state.focus >= 0 && commands.toggleRow(state.focus),
    Escape: () => commands.unselect(),
    "+": () => commands.zoom(0.6),
    "-": () => commands.zoom(1 / 0.6),
    "0": () => commands.fit(),
    "1": () => commands.steady(),
    ",": () => void selection.neighbor(-1),
    ".": () => void selection.neighbor(1),
    "/": () => byId("query").focus(),
    "?": () => commands.help(),
    c: () => toggles.shown("collectives"),
    e: () => void picture.save(e.shiftKey ? "svg" : "png"),
    g: () => commands.toggleRanks(),
    h: () => toggles.shown("waits"),
    i: () => panel.toggle(),
    j: () => selection.kin(false),
    k: () => (e.shiftKey ? commands.showHidden() : commands.hideRow()),
    l: () => commands.toggleTheme(),
    m: () => toggles.metrics(),
    n: () => void finder.step(!e.shiftKey),
    o: () => commands.pinRow(),
    p: () => toggles.shown("parents"),
    r: () => commands.toggleAll(),
    t: () => toggles.shown("transfers"),
    u: () => selection.kin(true),
    v: () => toggles.path(),
    x: () => void finder.stepWait(!e.shiftKey),
    z: () => commands.zoomToSelection(),
  };
  const key = e.key.length === 1 ? e.key.toLowerCase() : e.key;
  const what = keys[same[key] ?? key];
  if (!what) return;
  e.preventDefault();
  what();
}
