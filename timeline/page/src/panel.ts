// SPDX-License-Identifier: Apache-2.0
// What stands beside the picture, in tabs: the selected bar, a range of time, waits by rank, the message matrix, bandwidth over size, the archive.

import { fillAbout } from "./about";
import { fillBandwidth } from "./bandwidth";
import { Details } from "./details";
import { byId, narrow } from "./dom";
import type { Host } from "./host";
import { showLegend } from "./legend";
import { Matrix } from "./matrix";
import { RangeTable } from "./rangetable";
import { Tips } from "./tips";
import { fillVerdict } from "./verdict";
import { fillWaits } from "./waits";
import { Words } from "./words";

const tabs = ["details", "range", "waits", "matrix", "bandwidth", "about"] as const;
export type Tab = (typeof tabs)[number];

export class Panel {
  readonly tips: Tips;
  readonly details: Details;
  readonly range: RangeTable;
  private readonly matrix: Matrix;

  constructor(private readonly host: Host) {
    const words = new Words(host.store.head);
    this.tips = new Tips(host.store, words);
    this.details = new Details(host, words, this.tips);
    for (const name of tabs) {
      const tab = byId("tab-" + name);
      byId(name).dataset["title"] = tab.textContent ?? "";
      tab.addEventListener("click", () => this.show(name));
      tab.addEventListener("keydown", (e) => {
        const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
        if (step === 0) return;
        e.stopPropagation();
        const there = tabs.filter((t) => !byId("tab-" + t).hidden);
        const to = there[(there.indexOf(name) + step + there.length) % there.length]!;
        this.show(to);
        byId("tab-" + to).focus();
      });
    }
    this.show("details");
    this.empty();
    this.range = new RangeTable(host);
    fillWaits(host);
    fillVerdict(host);
    this.matrix = new Matrix(host);
    fillBandwidth(host);
    fillAbout(host, words);
    if (narrow()) this.toggle();
  }

  show(name: Tab): void {
    for (const t of tabs) {
      byId("tab-" + t).setAttribute("aria-selected", String(t === name));
      byId("tab-" + t).tabIndex = t === name ? 0 : -1;
      byId(t).hidden = t !== name;
    }
  }

  // toggle shows or hides the whole panel.
  toggle(): void {
    const off = document.body.classList.toggle("no-panel");
    byId("panel-toggle").setAttribute("aria-expanded", String(!off));
  }

  // reveal shows the details, also where there is room for either the picture or the panel.
  reveal(): void {
    if (narrow() && document.body.classList.contains("no-panel")) this.toggle();
    this.show("details");
  }

  // repaint follows a change of colours.
  repaint(): void {
    if (byId("details").classList.contains("empty")) this.empty();
    this.matrix.draw();
  }

  // empty is shown when no bar is selected.
  empty(): void {
    this.details.forget();
    showLegend(this.host);
  }
}
