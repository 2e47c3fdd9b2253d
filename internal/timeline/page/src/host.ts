// SPDX-License-Identifier: Apache-2.0
// What the parts of the panel ask of the page.

import type { Store } from "./store";
import type { Colors } from "./theme";

// Tab is what stands beside the picture.
export const tabs = ["answer", "details", "range", "waits", "path", "steps", "operations", "matrix", "bandwidth", "about"] as const;
export type Tab = (typeof tabs)[number];

export interface Host {
  store: Store;
  colors: () => Colors;
  select(bar: number, go: boolean): void;
  selectAt(row: number, time: number): void; // what begins at that time below a row
  go(from: number, to: number): void;
  focus(row: number): void;
  focused(): number; // the row that is chosen, −1: none
  highlight(category: number): void;
  highlighted(): number;
  tab(name: Tab): void;
  list(filter: string): void; // of operations
  pathShown(): boolean; // the critical path is drawn
  showPath(): void; // draws it, or no longer
  redraw(): void;
}
