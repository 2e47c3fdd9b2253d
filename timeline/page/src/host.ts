// SPDX-License-Identifier: Apache-2.0
// What the parts of the panel ask of the page.

import type { Store } from "./store";
import type { Colours } from "./theme";

export interface Host {
  store: Store;
  colours: () => Colours;
  select(bar: number, go: boolean): void;
  go(from: number, to: number): void;
  focus(row: number): void;
  highlight(category: number): void;
  highlighted(): number;
}
