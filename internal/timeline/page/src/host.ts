// SPDX-License-Identifier: Apache-2.0
// The interface of the page to the parts of the panel.

import type { State } from "./state";
import type { Store } from "./store";

// Tab is what stands beside the picture.
export const tabs = ["answer", "details", "range", "waits", "path", "steps", "operations", "matrix", "bandwidth", "about"] as const;
export type Tab = (typeof tabs)[number];

export interface Host {
  store: Store;
  state: State;
  select(bar: number): void;
  selectAt(row: number, time: number): void; // selects the bar below a row that begins at a time
  highlight(category: number): void;
  tab(name: Tab): void;
  list(filter: string): void; // of operations
  pathShown(): boolean; // whether the critical path is drawn
  showPath(): void; // toggles the critical path
}
