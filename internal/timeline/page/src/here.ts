// SPDX-License-Identifier: Apache-2.0
// Reading and restoring the state of the page as a place.

import type { Commands, Parts } from "./commands";
import { tabs, type Tab } from "./host";
import type { Place } from "./place";

// hereIs returns the present place.
export function hereIs({ state, panel, ranks, stage }: Parts): Place {
  const { view, rows, focus, selected, range, query } = state;
  return {
    time: [view.from, view.to],
    ...(view.top >= 1 ? { top: view.top } : {}),
    ...(focus >= 0 ? { row: focus } : {}),
    ...(selected ? { bar: selected.bar } : {}),
    ...(range ? { range: [range.from, range.to] as [number, number] } : {}),
    ...(query ? { query: query.text } : {}),
    ...(panel.tab !== "answer" ? { tab: panel.tab } : {}),
    ...(stage.path.on ? { path: "1" } : {}),
    ranks: ranks.place,
    list: panel.operations.text,
    pinned: [...rows.pinned],
    hidden: [...rows.hidden],
  };
}

// showPlace shows a place. Rows and bars that do not exist are ignored.
export function showPlace(parts: Parts, commands: Commands, place: Place): void {
  const { state, panel, selection, finder, ranges, ranks, stage, toggles } = parts;
  const { rows, store, view } = state;
  const known = (row: number) => row < store.head.rows.length;
  rows.arrange((place.pinned ?? []).filter(known), (place.hidden ?? []).filter(known));
  if ((state.query?.text ?? "") !== (place.query ?? "")) finder.search(place.query ?? "");
  selection.clear();
  if (place.row !== undefined && known(place.row)) state.focusRow(place.row);
  if (place.time) view.set(...place.time);
  else commands.steady();
  state.relayout();
  view.top = 0;
  state.scroll(place.top ?? 0);
  if (panel.operations.text !== (place.list ?? "")) void panel.operations.filter(place.list ?? "");
  ranges.set(place.range && { from: place.range[0], to: place.range[1] });
  ranks.restore(place.ranks);
  if (stage.path.on !== (place.path === "1")) toggles.path(place.path === "1");
  const tab = tabs.find((t) => t === place.tab) ?? "answer";
  const show = (tab: Tab) => panel.show(tab);
  show(tab);
  if (place.bar !== undefined && place.bar < store.head.totals.bars) void selection.select(place.bar, "stay").then(() => show(tab));
  else {
    panel.empty();
    if (state.range) void ranges.sum().then(() => show(tab));
  }
}
