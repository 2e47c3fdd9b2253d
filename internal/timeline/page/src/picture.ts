// SPDX-License-Identifier: Apache-2.0
// Exporting the view as PNG or SVG, and printing it.

import { byId, tell } from "./dom";
import type { PhaseBand } from "./phaseband";
import type { Panel } from "./panel";
import type { RankMap } from "./rankmap";
import type { Stage } from "./stage";
import type { State } from "./state";
import { escaped, hatch, SvgContext } from "./svgcontext";
import { useMode } from "./theme";

export type Format = "png" | "svg";

// Part is a part of the picture, drawn relative to its upper left corner.
interface Part {
  x: number;
  y: number;
  width: number;
  height: number;
  paint(c: CanvasRenderingContext2D, ratio: number): void;
}

const title = 42; // pixels of what stands above
const rulerHeight = 26;
const fine = 2; // pixels of a PNG for one of the page
const wait = 30; // ms between checks whether all data are loaded
const patience = 1000; // checks
const fonts = "system-ui, -apple-system, 'Segoe UI', sans-serif";

export class Picture {
  constructor(
    private readonly state: State,
    private readonly stage: Stage,
    private readonly ranks: RankMap,
    private readonly band: PhaseBand,
  ) {
    for (const format of ["png", "svg"] as const) {
      byId("save-" + format).addEventListener("click", () => {
        byId<HTMLDialogElement>("save").close();
        void this.save(format);
      });
    }
    byId("save-open").addEventListener("click", () => byId<HTMLDialogElement>("save").showModal());
  }

  // save offers the picture as a download.
  async save(format: Format): Promise<void> {
    try {
      const blob = format === "svg" ? new Blob([await this.svg()], { type: "image/svg+xml" }) : await this.png();
      const a = document.createElement("a");
      a.href = URL.createObjectURL(blob);
      a.download = `${this.state.store.head.title.replace(/[^\w.-]+/g, "-") || "timeline"}.${format}`;
      a.click();
      setTimeout(() => URL.revokeObjectURL(a.href), 60_000);
      tell(`The view was saved as ${a.download}`);
    } catch (e) {
      this.state.fail(e);
    }
  }

  async svg(): Promise<string> {
    const { width, height, parts } = await this.parts();
    const { colors } = this.state;
    const body = parts.map((p) => {
      const c = new SvgContext();
      p.paint(c as unknown as CanvasRenderingContext2D, 1);
      return `<svg x="${p.x}" y="${p.y}" width="${p.width}" height="${p.height}">${c.out.join("")}</svg>`;
    });
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${fonts}" role="img"><title>${escaped(this.name())}</title><defs>${hatch(colors.wait)}</defs><rect width="${width}" height="${height}" fill="${colors.paper}"/>${body.join("")}</svg>\n`;
  }

  async png(): Promise<Blob> {
    const { width, height, parts } = await this.parts();
    const canvas = sheet(width, height);
    const to = canvas.getContext("2d")!;
    to.fillStyle = this.state.colors.paper;
    to.fillRect(0, 0, canvas.width, canvas.height);
    for (const p of parts) {
      const own = sheet(p.width, p.height);
      const c = own.getContext("2d")!;
      c.setTransform(fine, 0, 0, fine, 0, 0);
      p.paint(c, fine);
      to.drawImage(own, p.x * fine, p.y * fine);
    }
    return new Promise((done, fail) => canvas.toBlob((b) => (b ? done(b) : fail(new Error("the browser cannot make a PNG of this size"))), "image/png"));
  }

  private name(): string {
    return `${this.state.store.head.title}: ${byId("span").textContent}`;
  }

  // complete waits until all visible data are unpacked.
  private async complete(): Promise<void> {
    const { stage, state, ranks } = this;
    for (let i = 0; i < patience; i++) {
      stage.draw();
      if (state.store.loading === 0 && stage.painted.coarse === 0 && !ranks.pending) return;
      await new Promise((done) => setTimeout(done, wait));
    }
  }

  private async parts(): Promise<{ width: number; height: number; parts: Part[] }> {
    await this.complete();
    const { stage, state, band } = this;
    const { view } = state;
    const names = byId("tree").clientWidth || byId("rank-names").clientWidth;
    const [width, across] = [Math.round(view.width), Math.round(names)];
    const parts: Part[] = [{ x: 0, y: 0, width: across + width, height: title, paint: (c) => this.heading(c) }];
    let y = title;
    if (band.height > 0) {
      parts.push({ x: across, y, width, height: band.height, paint: (c) => band.paint(c) });
      y += band.height;
    }
    parts.push({ x: across, y, width, height: rulerHeight, paint: (c) => void stage.ruler.paint(c, state.colors, state.range) });
    y += rulerHeight;
    const height = Math.round(this.ranks.on ? this.ranks.rows.lines * this.ranks.rows.height : Math.min(view.height, state.rows.height - view.top));
    parts.push({ x: 0, y, width: across, height, paint: (c) => this.names(c, across) });
    parts.push({ x: across, y, width, height, paint: (c, ratio) => stage.paint(c, ratio) });
    return { width: across + width, height: y + height, parts };
  }

  private heading(c: CanvasRenderingContext2D): void {
    const { colors, store } = this.state;
    c.textBaseline = "middle";
    c.fillStyle = colors.ink;
    c.font = `600 13px ${fonts}`;
    c.fillText(store.head.title, 8, 14);
    c.font = `11px ${fonts}`;
    c.fillStyle = colors.faint;
    c.fillText(`${byId("totals").textContent} · ${byId("span").textContent}`, 8, 31);
  }

  // names draws the names beside the picture.
  private names(c: CanvasRenderingContext2D, width: number): void {
    const { rows, view, store, colors } = this.state;
    c.textBaseline = "middle";
    c.fillStyle = colors.ink;
    const text = (name: string, x: number, y: number) => {
      let shown = name;
      while (shown.length > 1 && c.measureText(shown === name ? name : shown + "…").width > width - x - 4) shown = shown.slice(0, -1);
      c.fillText(shown === name ? name : shown + "…", x, y);
    };
    if (this.ranks.on) {
      c.font = `11px ${fonts}`;
      const { rows: lines } = this.ranks;
      for (let line = 0, free = 0; line < lines.lines; line++) {
        if (line * lines.height < free) continue;
        free = line * lines.height + 14;
        const r = store.head.ranks[lines.of(line)[0]!]!;
        text(`${r.name}  ${r.host}`, 8, line * lines.height + Math.max(7, lines.height / 2));
      }
      return;
    }
    for (const item of rows.items) {
      const y = item.y - view.top;
      if (y + item.height < 0 || y > view.height) continue;
      const r = store.head.rows[item.row]!;
      c.font = `${r.kind === "host" || r.kind === "process" ? "600 " : ""}12px ${fonts}`;
      text(r.name, 10 + item.level * 11, y + item.height / 2);
    }
  }
}

function sheet(width: number, height: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, width * fine);
  canvas.height = Math.max(1, height * fine);
  return canvas;
}

// preparePrint shows the visible picture in light colors while the page is printed.
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
