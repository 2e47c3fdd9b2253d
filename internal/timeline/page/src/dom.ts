// SPDX-License-Identifier: Apache-2.0
// Creating elements. Text from the archive is always inserted as text, never as markup.

export type Child = Node | string | null | undefined | false;

type Options = { [K in keyof HTMLElementEventMap as `on${K}`]?: (e: HTMLElementEventMap[K]) => void } & {
  [attribute: `aria-${string}` | `data-${string}`]: string;
  style?: Partial<CSSStyleDeclaration>;
  hidden?: boolean;
  selected?: boolean;
} & Partial<Record<"class" | "title" | "role" | "type" | "id" | "scope" | "colspan" | "placeholder" | "list" | "value" | "autocomplete" | "spellcheck", string>>;

// el creates an element. Buttons are no buttons of a form.
export function el<K extends keyof HTMLElementTagNameMap>(name: K, options: Options | null, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(name);
  if (name === "button") e.setAttribute("type", "button");
  for (const [key, value] of Object.entries(options ?? {})) {
    if (typeof value === "function") e.addEventListener(key.slice(2), value as (e: Event) => void);
    else if (key === "style") Object.assign(e.style, value);
    else if (typeof value === "boolean" || key === "value") Object.assign(e, { [key]: value });
    else e.setAttribute(key, value as string);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// Cell is what a cell of a table has in it, or the cell itself.
export type Cell = Child | Child[];

// table creates a table with headings above its columns. A row is a list of cells, or the row itself.
export function table(className: string, headings: Cell[], rows: (Cell[] | HTMLElement)[]): HTMLElement {
  const cell = (name: "th" | "td", c: Cell) => (c && /^t[hd]$/i.test((c as Node).nodeName) ? (c as Node) : el(name, name === "th" ? { scope: "col" } : null, ...[c].flat()));
  const tr = (name: "th" | "td", cells: Cell[] | HTMLElement) => (Array.isArray(cells) ? el("tr", null, ...cells.map((c) => cell(name, c))) : cells);
  return el("table", className === "" ? null : { class: className }, tr("th", headings), ...rows.map((r) => tr("td", r)));
}

// definitions creates a list of names, each with what it is, and the class of that.
export function definitions(pairs: readonly (readonly [name: string, is: Child, className?: string])[], ...more: HTMLElement[]): HTMLElement {
  return el("dl", null, ...pairs.flatMap(([name, is, className]) => [el("dt", null, name), el("dd", className ? { class: className } : null, is)]), ...more);
}

// choice creates buttons of which one is pressed.
export function choice<K>(label: string, all: readonly (readonly [key: K, name: string, title?: string])[], chosen: K, choose: (key: K) => void): HTMLElement {
  const button = ([key, name, title]: readonly [K, string, string?]) => el("button", { "aria-pressed": String(key === chosen), onclick: () => choose(key), ...(title ? { title } : {}) }, name);
  return el("div", { class: "choice", role: "group", "aria-label": label }, ...all.map(button));
}

// select creates a list to select from.
export function select(label: string, all: readonly (readonly [value: string, name: string])[], chosen: string, change: (value: string) => void): HTMLSelectElement {
  const options = all.map(([value, name]) => el("option", { value, selected: value === chosen }, name));
  const e = el("select", { "aria-label": label, onchange: () => change(e.value) }, ...options);
  return e;
}

// message is what an error says.
export function message(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}

// svg creates an SVG element.
export function svg(name: string, attributes: Record<string, string>, ...children: Child[]): SVGElement {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const e = document.getElementById(id);
  if (!e) throw new Error(`the page has no #${id}`);
  return e as T;
}

// tell announces a visible change to screen readers.
export function tell(text: string): void {
  byId("live").textContent = text;
}

// swatch creates a small colored field.
export function swatch(color: string): HTMLElement {
  return el("span", { class: "swatch", "aria-hidden": "true", style: { background: color } });
}

// narrow reports whether there is room for only the picture or the panel. style.css has the same limit.
export function narrow(): boolean {
  return innerWidth <= 900;
}
