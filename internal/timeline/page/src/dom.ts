// SPDX-License-Identifier: Apache-2.0
// Creating elements. Text from the archive is always inserted as text, never as markup.

type Child = Node | string | null | undefined | false;

interface Options {
  class?: string;
  title?: string;
  onclick?: (e: MouseEvent) => void;
  [attribute: `aria-${string}`]: string;
  role?: string;
  type?: string;
  id?: string;
  tabindex?: string;
  scope?: string;
  colspan?: string;
  placeholder?: string;
  list?: string;
}

export function el<K extends keyof HTMLElementTagNameMap>(name: K, options: Options | null, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(options ?? {})) {
    if (key === "onclick") e.addEventListener("click", value as (e: Event) => void);
    else e.setAttribute(key, value as string);
  }
  e.append(...children.filter((c): c is Node | string => c !== null && c !== undefined && c !== false));
  return e;
}

// svg creates an SVG element.
export function svg(name: string, attributes: Record<string, string>, ...children: Child[]): SVGElement {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children.filter((c): c is Node | string => c !== null && c !== undefined && c !== false));
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
  const s = el("span", { class: "swatch", "aria-hidden": "true" });
  s.style.background = color;
  return s;
}

// narrow reports whether there is room for only the picture or the panel. style.css has the same limit.
export function narrow(): boolean {
  return innerWidth <= 900;
}
