// SPDX-License-Identifier: Apache-2.0
// The names of the rows as a tree: only visible rows are elements.

import { byId, el } from "./dom";
import type { State } from "./state";

export class Tree {
  private readonly root = byId("tree");
  private readonly made = new Map<number, HTMLElement>();

  constructor(
    private readonly state: State,
    private readonly onToggle: (row: number) => void,
    private readonly onFocus: (row: number) => void,
  ) {
    this.root.addEventListener("click", (e) => {
      const row = Number((e.target as HTMLElement).closest<HTMLElement>(".row")?.dataset["row"] ?? -1);
      if (row < 0) return;
      this.onFocus(row);
      if ((e.target as HTMLElement).closest(".twist") || state.store.head.rows[row]!.lanes[0] === state.store.head.rows[row]!.lanes[1]) this.onToggle(row);
    });
  }

  draw(): void {
    const { store, rows, view, focus } = this.state;
    const seen = new Set<number>();
    for (const item of rows.items) {
      if (item.y + item.height < view.top) continue;
      if (item.y > view.top + view.height) break;
      seen.add(item.row);
      const r = store.head.rows[item.row]!;
      let e = this.made.get(item.row);
      if (!e) {
        const curve = store.curves.of(item.row);
        const around = store.around(item.row);
        const process = around.find((a) => store.head.rows[a]!.kind === "process") ?? around.at(-1)!;
        const title = curve?.metric.description ? `${r.name}: ${curve.metric.description}` : r.kind === "event" ? `${r.name} · ${store.head.rows[process]!.name}` : r.name;
        e = el("div", { class: "row " + r.kind, role: "treeitem", id: "row" + item.row, title, "aria-level": String(item.level + 1) }, el("span", { class: "twist", "aria-hidden": "true" }), el("span", { class: "name" }, r.name));
        if (curve) e.append(el("span", { class: "axis", title: "The top of its axis" }, store.curves.write(curve, curve.axis.to)));
        e.dataset["row"] = String(item.row);
        this.made.set(item.row, e);
        this.root.append(e);
      }
      e.style.transform = `translateY(${item.y - view.top}px)`;
      e.style.height = item.height + "px";
      e.style.paddingLeft = 4 + item.level * 11 + "px";
      e.classList.toggle("focus", item.row === focus);
      e.firstElementChild!.textContent = item.parent ? (item.open ? "▼" : "▶") : "";
      if (item.parent) e.setAttribute("aria-expanded", String(item.open));
      else e.removeAttribute("aria-expanded");
    }
    for (const [row, e] of this.made) {
      if (!seen.has(row)) {
        e.remove();
        this.made.delete(row);
      }
    }
    if (focus >= 0 && seen.has(focus)) this.root.setAttribute("aria-activedescendant", "row" + focus);
    else this.root.removeAttribute("aria-activedescendant");
  }
}
