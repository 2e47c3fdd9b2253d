// SPDX-License-Identifier: Apache-2.0
// Printing: the visible picture, in light colors.

import { byId } from "./dom";
import type { Panel } from "./panel";
import type { Stage } from "./stage";
import type { State } from "./state";
import { useMode } from "./theme";

export function preparePrint(state: State, stage: Stage, panel: Panel): void {
  const { view } = state;
  const picture = byId("picture").style;
  const chart = byId("chart").style;
  const phases = byId("phase-bar").style;
  let before: { mode: State["mode"]; width: number; height: number; top: number } | undefined;
  const redraw = () => {
    useMode(state.mode);
    state.recolor();
    panel.repaint();
    stage.draw();
  };
  addEventListener("beforeprint", () => {
    before = { mode: state.mode, width: view.width, height: view.height, top: view.top };
    state.mode = "light";
    view.width = 760;
    view.height = Math.min(state.rows.height, 560);
    chart.width = "960px";
    chart.height = view.height + 26 + "px";
    chart.gridTemplateColumns = "200px 760px";
    phases.width = "960px";
    phases.gridTemplateColumns = chart.gridTemplateColumns;
    picture.width = "760px";
    redraw();
  });
  addEventListener("afterprint", () => {
    if (before) {
      state.mode = before.mode;
      chart.width = chart.height = chart.gridTemplateColumns = "";
      view.width = before.width;
      view.height = before.height;
      view.top = before.top;
    }
    picture.width = phases.width = phases.gridTemplateColumns = "";
    redraw();
    stage.resize();
  });
}
