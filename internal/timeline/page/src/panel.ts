// SPDX-License-Identifier: Apache-2.0
// The panel beside the picture, in tabs: report, selected bar, range of time, waits, operations, matrix, bandwidth,
// archive.

import { fillAbout } from "./about";
import { fillAnswer, fillVerdict } from "./answer";
import { fillBandwidth } from "./bandwidth";
import { Details, showLegend } from "./details";
import { byId, narrow } from "./dom";
import { tabs, type Host, type Tab } from "./host";
import { Matrix } from "./matrix";
import { PathTable } from "./pathtable";
import type { PhaseBand } from "./phaseband";
import { OperationTable } from "./optable";
import { RangeTable } from "./rangetable";
import type { Scope } from "./scope";
import { StepTable } from "./steptable";
import { Tips } from "./tips";
import { Waits } from "./waits";
import { Words } from "./words";

export class Panel {
  readonly tips: Tips;
  readonly details: Details;
  readonly range: RangeTable;
  readonly operations: OperationTable;
  readonly matrix: Matrix;
  readonly waits: Waits;
  readonly path: PathTable;
  readonly steps: StepTable;
  tab: Tab = "answer"; // that is shown
  onTab: () => void = () => {};

  constructor(private readonly host: Host, private readonly scope: Scope, band: PhaseBand) {
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
    this.empty();
    this.range = new RangeTable(host);
    fillAnswer(host);
    this.waits = new Waits(host, scope);
    fillVerdict(host);
    this.path = new PathTable(host, scope);
    this.steps = new StepTable(host, band);
    this.operations = new OperationTable(host, scope);
    this.matrix = new Matrix(host, scope);
    fillBandwidth(host);
    fillAbout(host, words);
    this.show("answer");
    if (narrow()) this.toggle();
  }

  show(name: Tab): void {
    this.tab = name;
    for (const t of tabs) {
      byId("tab-" + t).setAttribute("aria-selected", String(t === name));
      byId("tab-" + t).tabIndex = t === name ? 0 : -1;
      byId(t).hidden = t !== name;
    }
    this.scope.update();
    if (name === "steps") this.steps.update();
    this.onTab();
  }

  // toggle shows or hides the panel.
  toggle(): void {
    const off = document.body.classList.toggle("no-panel");
    byId("panel-toggle").setAttribute("aria-expanded", String(!off));
  }

  // reveal shows the details, also if there is room for only the picture or the panel.
  reveal(): void {
    if (narrow() && document.body.classList.contains("no-panel")) this.toggle();
    this.show("details");
  }

  // repaint applies a change of colors.
  repaint(): void {
    if (byId("details").classList.contains("empty")) this.empty();
    this.matrix.draw();
    if (this.tab === "steps") this.steps.update();
  }

  // empty is shown when no bar is selected.
  empty(): void {
    this.details.forget();
    showLegend(this.host);
  }
}
