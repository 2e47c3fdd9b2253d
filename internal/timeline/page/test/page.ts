// SPDX-License-Identifier: Apache-2.0
// As much of a browser as the tests need.

// FakeElement is an element that remembers what was done to it.
export class FakeElement {
  readonly attributes = new Map<string, string>();
  readonly dataset: Record<string, string> = {};
  readonly style = { setProperty: (name: string, value: string) => void this.properties.set(name, value) } as { setProperty(name: string, value: string): void } & Record<string, string>;
  readonly properties = new Map<string, string>();
  hidden = false;
  readonly children: (FakeElement | string)[] = [];
  readonly classes = new Set<string>();
  readonly classList = { toggle: (name: string, on: boolean) => void (on ? this.classes.add(name) : this.classes.delete(name)) };
  readonly listeners = new Map<string, (e: unknown) => void>();
  parent: FakeElement | undefined;
  textContent = "";

  constructor(readonly name: string) {}

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
  }
  removeAttribute(name: string): void {
    this.attributes.delete(name);
  }
  append(...children: (FakeElement | string)[]): void {
    for (const c of children) {
      if (c instanceof FakeElement) c.parent = this;
      this.children.push(c);
    }
  }
  replaceChildren(...children: (FakeElement | string)[]): void {
    this.children.length = 0;
    this.append(...children);
  }
  remove(): void {
    this.parent?.children.splice(this.parent.children.indexOf(this), 1);
  }
  addEventListener(name: string, what: (e: unknown) => void): void {
    this.listeners.set(name, what);
  }
  get firstElementChild(): FakeElement | undefined {
    return this.children.find((c) => c instanceof FakeElement);
  }
}

// fakePage makes elements by id as they are asked for.
export function fakePage(): (id: string) => FakeElement {
  const byId = new Map<string, FakeElement>();
  const get = (id: string): FakeElement => {
    let e = byId.get(id);
    if (!e) byId.set(id, (e = new FakeElement("div")));
    return e;
  };
  (globalThis as { document?: unknown }).document = { getElementById: get, createElement: (name: string) => new FakeElement(name), createElementNS: (_: string, name: string) => new FakeElement(name) };
  return get;
}

// Drawing is a canvas that writes down the lines drawn.
export class Drawing {
  readonly lines: string[] = [];
  strokeStyle = "";
  lineWidth = 0;
  globalAlpha = 1;
  private path: string[] = [];
  private at = "";

  beginPath(): void {
    this.path = [];
  }
  moveTo(x: number, y: number): void {
    this.at = `${round(x)},${round(y)}`;
  }
  lineTo(x: number, y: number): void {
    const to = `${round(x)},${round(y)}`;
    this.path.push(`${this.at} ${to}`);
    this.at = to;
  }
  bezierCurveTo(_a: number, _b: number, _c: number, _d: number, x: number, y: number): void {
    this.path.push(`${this.at} ~ ${round(x)},${round(y)}`);
  }
  stroke(): void {
    this.lines.push(...this.path.map((p) => `${this.strokeStyle} ${p}`));
  }
  get context(): CanvasRenderingContext2D {
    return this as unknown as CanvasRenderingContext2D;
  }
}

function round(v: number): number {
  return Math.round(100 * v) / 100;
}
