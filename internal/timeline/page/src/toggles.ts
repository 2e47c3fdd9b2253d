// SPDX-License-Identifier: Apache-2.0
// The toggle buttons of the toolbar.

import { byId, tell } from "./dom";
import type { PathLine } from "./path";
import type { Shown, State } from "./state";

const names = ["waits", "collectives", "transfers", "parents"] as const satisfies readonly (keyof Shown)[];

export class Toggles {
  constructor(private readonly state: State, private readonly line: PathLine) {
    byId("show-metrics").hidden = state.store.curves.all.length === 0;
    byId("show-metrics").addEventListener("click", () => this.metrics());
    byId("show-path").hidden = !state.store.head.path;
    byId("show-path").addEventListener("click", () => this.path());
    for (const name of names) byId("show-" + name).addEventListener("click", () => this.shown(name));
  }

  shown(name: keyof Shown): void {
    const { shown } = this.state;
    shown[name] = !shown[name];
    byId("show-" + name).setAttribute("aria-pressed", String(shown[name]));
    this.state.onChange();
  }

  // path shows or hides the critical path.
  path(on = !this.line.on): void {
    if (byId("show-path").hidden) return;
    this.line.on = on;
    byId("show-path").setAttribute("aria-pressed", String(on));
    tell(on ? "The critical path is drawn" : "The critical path is not drawn");
    this.state.onChange();
  }

  metrics(): void {
    const { rows } = this.state;
    rows.metrics = !rows.metrics;
    byId("show-metrics").setAttribute("aria-pressed", String(rows.metrics));
    rows.layout();
    this.state.relayout();
  }
}
