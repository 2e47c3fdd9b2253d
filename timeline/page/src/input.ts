// SPDX-License-Identifier: Apache-2.0
// Pointers, wheels and keys.

import type { App } from "./app";
import { byId } from "./dom";

const calm = 5; // pixels that a click may move
const hold = 450; // ms after which a finger that rests begins a range

interface Pointer {
  x: number;
  y: number;
}

export class Input {
  private readonly base = byId<HTMLCanvasElement>("base");
  private readonly pointers = new Map<number, Pointer>();
  private mode: "none" | "press" | "pan" | "range" | "pinch" = "none";
  private start: Pointer = { x: 0, y: 0 };
  private last: Pointer = { x: 0, y: 0 };
  private anchor = 0;
  private timer = 0;

  constructor(private readonly app: App) {
    this.picture();
    this.ruler();
    this.minimap();
    this.names();
    addEventListener("keydown", (e) => this.key(e));
    const query = byId<HTMLInputElement>("query");
    query.addEventListener("input", () => app.search(query.value));
    query.addEventListener("keydown", (e) => {
      e.stopPropagation();
      if (e.key === "Enter") void app.step(!e.shiftKey);
      if (e.key === "Escape") {
        app.search("");
        this.base.focus();
      }
    });
    byId("search").addEventListener("submit", (e) => e.preventDefault());
  }

  private point(e: PointerEvent | WheelEvent | MouseEvent): Pointer {
    const box = this.base.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top };
  }

  private picture(): void {
    const { app, base } = this;
    base.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      base.setPointerCapture(e.pointerId);
      const p = this.point(e);
      this.pointers.set(e.pointerId, p);
      clearTimeout(this.timer);
      if (this.pointers.size === 2) {
        this.mode = "pinch";
        return;
      }
      this.start = this.last = p;
      if (e.shiftKey) return this.beginRange(p);
      this.mode = "press";
      if (e.pointerType !== "mouse") this.timer = window.setTimeout(() => this.mode === "press" && this.beginRange(this.start), hold);
    });
    base.addEventListener("pointermove", (e) => {
      const p = this.point(e);
      const before = this.pointers.get(e.pointerId);
      if (!before) {
        app.hover(p.x, p.y);
        return;
      }
      if (this.mode === "pinch") {
        this.pinch(e.pointerId, p);
        return;
      }
      this.pointers.set(e.pointerId, p);
      if (this.mode === "press" && Math.hypot(p.x - this.start.x, p.y - this.start.y) > calm) {
        clearTimeout(this.timer);
        this.mode = "pan";
        app.unhover();
        base.classList.add("grabbing");
      }
      if (this.mode === "pan") {
        app.view.pan(this.last.x - p.x);
        app.scroll(this.last.y - p.y);
      } else if (this.mode === "range") app.setRange({ from: this.anchor, to: app.view.time(p.x) });
      this.last = p;
    });
    const end = (e: PointerEvent) => {
      const p = this.pointers.get(e.pointerId);
      this.pointers.delete(e.pointerId);
      clearTimeout(this.timer);
      base.classList.remove("grabbing");
      if (!p || this.pointers.size > 0) return;
      const rested = Math.hypot(p.x - this.start.x, p.y - this.start.y) <= calm;
      if (e.type === "pointerup" && (this.mode === "press" || (this.mode === "range" && rested))) {
        if (this.mode === "range") app.setRange(undefined); // nothing was chosen: a long tap
        this.click(p, e.pointerType === "mouse" ? 4 : 14);
      } else if (this.mode === "range") void app.sumRange();
      this.mode = "none";
    };
    base.addEventListener("pointerup", end);
    base.addEventListener("pointercancel", end);
    base.addEventListener("pointerleave", () => app.unhover());
    base.addEventListener("dblclick", () => app.zoomToSelection());
    byId("picture").addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        const p = this.point(e);
        const unit = e.deltaMode === 1 ? 18 : 1;
        if (e.ctrlKey || e.metaKey) app.zoom(Math.exp(clamp(e.deltaY * unit, 60) * 0.008), p.x);
        else if (e.shiftKey) app.pan((e.deltaY || e.deltaX) * unit);
        else {
          if (e.deltaX !== 0) app.pan(e.deltaX * unit);
          if (e.deltaY !== 0) app.scroll(e.deltaY * unit);
        }
        app.hover(p.x, p.y);
      },
      { passive: false },
    );
    byId("tree").addEventListener("wheel", (e) => (e.preventDefault(), app.scroll(e.deltaY * (e.deltaMode === 1 ? 18 : 1))), { passive: false });
  }

  private click(p: Pointer, within: number): void {
    const bar = this.app.at(p.x, p.y, within);
    const item = this.app.rows.at(p.y + this.app.view.top);
    const curve = item && this.app.store.curves.of(item.row);
    if (bar !== undefined) void this.app.select(bar, false);
    else if (curve) void this.app.selectCurve(curve, this.app.view.time(p.x));
    else if (item && item.strip.length > 0) this.app.toggleRow(item.row);
    else this.app.unselect();
  }

  private beginRange(p: Pointer): void {
    this.mode = "range";
    this.anchor = this.app.view.time(p.x);
    this.app.unhover();
  }

  private pinch(id: number, p: Pointer): void {
    const other = [...this.pointers].find(([i]) => i !== id)?.[1];
    const before = this.pointers.get(id)!;
    this.pointers.set(id, p);
    if (!other) return;
    const was = Math.max(20, Math.abs(before.x - other.x));
    const is = Math.max(20, Math.abs(p.x - other.x));
    const middle = (p.x + other.x) / 2;
    this.app.view.pan(((before.x - p.x) / 2));
    this.app.view.scroll((before.y - p.y) / 2, this.app.rows.height);
    this.app.zoom(was / is, middle);
  }

  private ruler(): void {
    const { app } = this;
    const ruler = byId<HTMLCanvasElement>("ruler");
    let anchor: number | undefined;
    ruler.addEventListener("pointerdown", (e) => {
      ruler.setPointerCapture(e.pointerId);
      anchor = app.view.time(this.point(e).x);
    });
    ruler.addEventListener("pointermove", (e) => anchor !== undefined && app.setRange({ from: anchor, to: app.view.time(this.point(e).x) }));
    ruler.addEventListener("pointerup", (e) => {
      const to = app.view.time(this.point(e).x);
      if (anchor !== undefined && Math.abs(to - anchor) * app.view.scale > calm) void app.sumRange();
      else app.setRange(undefined);
      anchor = undefined;
    });
    this.wheelZooms(ruler, (e) => this.point(e).x);
  }

  private wheelZooms(e: HTMLElement, at: (e: WheelEvent) => number): void {
    e.addEventListener("wheel", (w) => (w.preventDefault(), this.app.zoom(Math.exp(clamp(w.deltaY * (w.deltaMode === 1 ? 18 : 1), 60) * 0.006), at(w))), { passive: false });
  }

  // The overview: dragging moves what is shown, its edges change how much; a click goes there.
  private minimap(): void {
    const { app } = this;
    const map = byId<HTMLCanvasElement>("minimap");
    const time = (e: MouseEvent) => {
      const box = map.getBoundingClientRect();
      const margin = Math.max(1, app.view.duration * 0.01);
      return -margin + ((e.clientX - box.left) / box.width) * (app.view.duration + 2 * margin);
    };
    let grip: "from" | "to" | "move" | undefined;
    let offset = 0;
    map.addEventListener("pointerdown", (e) => {
      map.setPointerCapture(e.pointerId);
      const t = time(e);
      const near = ((app.view.duration * 1.02) / map.clientWidth) * 7;
      const { from, to } = app.view;
      if (Math.abs(t - from) < near) grip = "from";
      else if (Math.abs(t - to) < near) grip = "to";
      else {
        grip = "move";
        if (t < from || t > to) app.go(t - (to - from) / 2, t + (to - from) / 2);
        offset = t - app.view.from;
      }
    });
    map.addEventListener("pointermove", (e) => {
      if (!grip) return;
      const t = time(e);
      const { from, to } = app.view;
      if (grip === "from") app.go(Math.min(t, to - 20), to);
      else if (grip === "to") app.go(from, Math.max(t, from + 20));
      else app.go(t - offset, t - offset + to - from);
    });
    const end = () => (grip = undefined);
    map.addEventListener("pointerup", end);
    map.addEventListener("pointercancel", end);
    this.wheelZooms(map, (e) => app.view.x(time(e)));
  }

  // The width of the names can be changed.
  private names(): void {
    const handle = byId("handle");
    handle.addEventListener("pointerdown", (e) => handle.setPointerCapture(e.pointerId));
    handle.addEventListener("pointermove", (e) => {
      if (!handle.hasPointerCapture(e.pointerId)) return;
      const width = e.clientX - byId("chart").getBoundingClientRect().left;
      document.documentElement.style.setProperty("--names", Math.max(60, Math.min(width, innerWidth * 0.6)) + "px");
    });
  }

  private key(e: KeyboardEvent): void {
    const { app } = this;
    if (e.ctrlKey || e.metaKey || e.altKey || byId<HTMLDialogElement>("help").open) return;
    const target = e.target as HTMLElement;
    if (target.closest("input, textarea, select")) return;
    const pressing = (e.key === "Enter" || e.key === " ") && target.closest("button");
    if (pressing) return;
    const far = app.view.width * (e.shiftKey ? 0.8 : 0.12);
    const keys: Record<string, () => void> = {
      ArrowLeft: () => app.pan(-far),
      ArrowRight: () => app.pan(far),
      ArrowUp: () => app.moveFocus(-1),
      ArrowDown: () => app.moveFocus(1),
      PageUp: () => app.scroll(-app.view.height * 0.9),
      PageDown: () => app.scroll(app.view.height * 0.9),
      Home: () => app.go(0, app.view.to - app.view.from),
      End: () => app.go(app.view.duration - (app.view.to - app.view.from), app.view.duration),
      Enter: () => app.focused >= 0 && app.toggleRow(app.focused),
      Escape: () => app.unselect(),
      "+": () => app.zoom(0.6),
      "=": () => app.zoom(0.6),
      "-": () => app.zoom(1 / 0.6),
      "0": () => app.fit(),
      ",": () => void app.selectNeighbour(-1),
      ".": () => void app.selectNeighbour(1),
      "/": () => byId("query").focus(),
      "?": () => app.help(),
      a: () => app.toggleAll(),
      c: () => app.toggleShown("collectives"),
      d: () => app.toggleTheme(),
      i: () => app.togglePanel(),
      j: () => app.selectKin(false),
      m: () => app.toggleMetrics(),
      n: () => void app.step(!e.shiftKey),
      p: () => app.toggleShown("parents"),
      t: () => app.toggleShown("transfers"),
      u: () => app.selectKin(true),
      w: () => app.toggleShown("waits"),
      x: () => void app.stepWait(!e.shiftKey),
      z: () => app.zoomToSelection(),
    };
    const what = keys[e.key] ?? keys[e.key.toLowerCase()];
    if (!what) return;
    e.preventDefault();
    what();
  }
}

function clamp(v: number, most: number): number {
  return Math.max(-most, Math.min(most, v));
}
