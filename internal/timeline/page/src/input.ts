// SPDX-License-Identifier: Apache-2.0
// Input by pointers and wheels.

import type { Point } from "./canvas";
import type { Commands, Parts } from "./commands";
import { byId } from "./dom";
import type { View } from "./view";

const calm = 5; // pixels that the pointer may move during a click
const hold = 450; // ms after which a resting finger begins a range

export class Input {
  private readonly base = byId<HTMLCanvasElement>("base");
  private readonly pointers = new Map<number, Point>();
  private mode: "none" | "press" | "pan" | "range" | "pinch" = "none";
  private start: Point = { x: 0, y: 0 };
  private last: Point = { x: 0, y: 0 };
  private anchor = 0;
  private timer = 0;

  private readonly view: View;

  constructor(private readonly parts: Parts, private readonly commands: Commands) {
    this.view = parts.state.view;
    this.picture();
    this.ruler();
    this.minimap();
    this.names();
  }

  private point(e: PointerEvent | WheelEvent | MouseEvent): Point {
    const box = this.base.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top };
  }

  private picture(): void {
    const { base, view, commands } = this;
    const { hover, ranges } = this.parts;
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
        hover.at(p.x, p.y);
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
        hover.leave();
        base.classList.add("grabbing");
      }
      if (this.mode === "pan") {
        view.pan(this.last.x - p.x);
        commands.scroll(this.last.y - p.y);
      } else if (this.mode === "range") ranges.set({ from: this.anchor, to: view.time(p.x) });
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
        if (this.mode === "range") ranges.set(undefined); // a long tap without a range
        commands.click(p.x, p.y, e.pointerType === "mouse" ? 4 : 14);
      } else if (this.mode === "range") void ranges.sum();
      this.mode = "none";
    };
    base.addEventListener("pointerup", end);
    base.addEventListener("pointercancel", end);
    base.addEventListener("pointerleave", () => hover.leave());
    base.addEventListener("dblclick", () => commands.zoomToSelection());
    byId("picture").addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        const p = this.point(e);
        const unit = e.deltaMode === 1 ? 18 : 1;
        if (e.ctrlKey || e.metaKey) commands.zoom(Math.exp(clamp(e.deltaY * unit, 60) * 0.008), p.x);
        else if (e.shiftKey) commands.pan((e.deltaY || e.deltaX) * unit);
        else {
          if (e.deltaX !== 0) commands.pan(e.deltaX * unit);
          if (e.deltaY !== 0) commands.scroll(e.deltaY * unit);
        }
        hover.at(p.x, p.y);
      },
      { passive: false },
    );
    byId("tree").addEventListener("wheel", (e) => (e.preventDefault(), commands.scroll(e.deltaY * (e.deltaMode === 1 ? 18 : 1))), { passive: false });
  }

  private beginRange(p: Point): void {
    this.mode = "range";
    this.anchor = this.view.time(p.x);
    this.parts.hover.leave();
  }

  private pinch(id: number, p: Point): void {
    const other = [...this.pointers].find(([i]) => i !== id)?.[1];
    const before = this.pointers.get(id)!;
    this.pointers.set(id, p);
    if (!other) return;
    const was = Math.max(20, Math.abs(before.x - other.x));
    const is = Math.max(20, Math.abs(p.x - other.x));
    const middle = (p.x + other.x) / 2;
    this.view.pan(((before.x - p.x) / 2));
    this.commands.scroll((before.y - p.y) / 2);
    this.commands.zoom(was / is, middle);
  }

  private ruler(): void {
    const { view } = this;
    const { ranges } = this.parts;
    const ruler = byId("ruler");
    const time = (e: PointerEvent) => view.time(this.point(e).x);
    let anchor = 0;
    const begin = (e: PointerEvent) => {
      anchor = time(e);
      return (m: PointerEvent) => ranges.set({ from: anchor, to: time(m) });
    };
    drag(ruler, begin, (e) => {
      if (Math.abs(time(e) - anchor) * view.scale > calm) void ranges.sum();
      else ranges.set(undefined);
    });
    this.wheelZooms(ruler, (e) => this.point(e).x);
  }

  private wheelZooms(e: HTMLElement, at: (e: WheelEvent) => number): void {
    e.addEventListener("wheel", (w) => (w.preventDefault(), this.commands.zoom(Math.exp(clamp(w.deltaY * (w.deltaMode === 1 ? 18 : 1), 60) * 0.006), at(w))), { passive: false });
  }

  // The overview: dragging moves the visible time, dragging its edges resizes it, and a click moves it there.
  private minimap(): void {
    const { view } = this;
    const { state } = this.parts;
    const map = byId<HTMLCanvasElement>("minimap");
    const time = (e: MouseEvent) => {
      const box = map.getBoundingClientRect();
      const { margin, begin } = view;
      return begin - margin + ((e.clientX - box.left) / box.width) * (view.duration - begin + 2 * margin);
    };
    drag(map, (e) => {
      const t = time(e);
      const near = (((view.duration - view.begin) * 1.02) / map.clientWidth) * 7;
      const { from, to } = view;
      if (Math.abs(t - from) < near) return (m) => state.go(Math.min(time(m), view.to - 20), view.to);
      if (Math.abs(t - to) < near) return (m) => state.go(view.from, Math.max(time(m), view.from + 20));
      if (t < from || t > to) state.go(t - (to - from) / 2, t + (to - from) / 2);
      const offset = t - view.from;
      return (m) => state.go(time(m) - offset, time(m) - offset + view.to - view.from);
    });
    this.wheelZooms(map, (e) => view.x(time(e)));
  }

  // Dragging changes the width of the names.
  private names(): void {
    drag(byId("handle"), () => (e) => {
      const width = e.clientX - byId("chart").getBoundingClientRect().left;
      document.documentElement.style.setProperty("--names", Math.max(60, Math.min(width, innerWidth * 0.6)) + "px");
    });
  }
}

// drag follows a pointer from where it is pressed until it is released: begin returns what its moves do.
function drag(element: HTMLElement, begin: (e: PointerEvent) => (e: PointerEvent) => void, end: (e: PointerEvent) => void = () => {}): void {
  let move: ((e: PointerEvent) => void) | undefined;
  element.addEventListener("pointerdown", (e) => {
    element.setPointerCapture(e.pointerId);
    move = begin(e);
  });
  element.addEventListener("pointermove", (e) => move?.(e));
  element.addEventListener("pointercancel", () => (move = undefined));
  element.addEventListener("pointerup", (e) => {
    if (move) end(e);
    move = undefined;
  });
}

function clamp(v: number, most: number): number {
  return Math.max(-most, Math.min(most, v));
}
