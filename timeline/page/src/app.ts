// SPDX-License-Identifier: Apache-2.0
// The page: what is shown, and what happens when something is wanted of it.

import { byId } from "./dom";
import * as f from "./format";
import { fillHelp } from "./help";
import { Input } from "./input";
import { familyOf, Lines, type Drawn, type Family, type Shown } from "./lines";
import { curveGap, type Curve } from "./metrics";
import { Painter, type Painted } from "./paint";
import { Panel, type RangeSums } from "./panel";
import { Rows } from "./rows";
import { Overview, Ruler, sized, type Range } from "./ruler";
import { next, parse, waits, type Query } from "./search";
import type { Lane, Store } from "./store";
import { colours, type Colours, type Mode } from "./theme";
import { Tree } from "./tree";
import { View } from "./view";

const toggles = ["waits", "collectives", "transfers", "parents"] as const;

export class App {
  readonly view: View;
  readonly rows: Rows;
  readonly shown: Shown = { parents: false, collectives: true, transfers: true, waits: true };
  colours!: Colours;
  selected: Family | undefined;
  hovered = -1;
  range: Range | undefined;
  query: Query | undefined;
  painted: Painted = { boxes: [], pixels: 0, coarse: 0 };
  drawn: Drawn = { parents: 0, collectives: 0, transfers: 0, crowded: [] };
  strong: Drawn = { parents: 0, collectives: 0, transfers: 0, crowded: [] };
  frames: number[] = []; // ms that pictures took to draw, the last ones
  errors: string[] = [];

  private readonly base = byId<HTMLCanvasElement>("base");
  private readonly over = byId<HTMLCanvasElement>("over");
  private readonly painter = new Painter();
  private readonly lines: Lines;
  private readonly ruler: Ruler;
  private readonly overview: Overview;
  private readonly panel: Panel;
  private readonly tree: Tree;
  private mode: Mode;
  private category = -1; // that is highlighted
  private paletteKey = "";
  private due = false;
  private asked = 0;
  private rangeAsked = 0;
  private pointed: { curve: Curve; time: number; value?: number } | undefined; // at a curve
  private found = { time: -Infinity, bar: -1 };

  constructor(readonly store: Store) {
    const head = store.head;
    this.view = new View(head.duration);
    this.rows = new Rows(store);
    this.lines = new Lines(store, this.rows, this.view);
    this.ruler = new Ruler(store, this.view);
    this.overview = new Overview(store, this.view);
    this.mode = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    this.palette();
    document.title = `${head.title} – timeline`;
    byId("title").textContent = head.title;
    byId("title").title = head.title;
    const t = head.totals;
    byId("totals").textContent = [
      f.plural(head.ranks.length, "rank", "ranks") + (t.hosts > 0 ? ` on ${f.plural(t.hosts, "host", "hosts")}` : ""),
      f.plural(t.comms, "communicator", "communicators"), f.time(head.duration), f.plural(t.bars, "region", "regions"),
    ].join(" · ");
    this.panel = new Panel({
      store, colours: () => this.colours, select: (bar, go) => void this.select(bar, go), go: (a, b) => this.go(a, b), focus: (row) => this.focusRow(row),
      highlight: (c) => this.highlight(c), highlighted: () => this.category,
    });
    this.tree = new Tree(store, this.rows, this.view, (row) => this.toggleRow(row), (row) => this.focusRow(row));
    fillHelp();
    byId("show-metrics").hidden = store.curves.all.length === 0;
    byId("show-metrics").addEventListener("click", () => this.toggleMetrics());
    for (const name of toggles) byId("show-" + name).addEventListener("click", () => this.toggleShown(name));
    const click = (id: string, what: () => void) => byId(id).addEventListener("click", what);
    click("in", () => this.zoom(0.6));
    click("out", () => this.zoom(1 / 0.6));
    click("fit", () => this.fit());
    click("theme", () => this.toggleTheme());
    click("panel-toggle", () => this.togglePanel());
    click("help-open", () => this.help());
    click("close-all", () => this.toggleAll());
    click("next", () => void this.step(true));
    click("previous", () => void this.step(false));
    store.onLoad = () => this.invalidate();
    store.onError = (e) => this.fail(e);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (e) => this.setMode(e.matches ? "dark" : "light"));
    new ResizeObserver(() => this.resize()).observe(byId("picture"));
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    new Input(this);
    if (innerWidth <= 900) this.togglePanel();
    this.resize();
    this.highlightOf(location.hash);
  }

  // highlightOf lets an address name what is shown: #t=FROM,TO (ns).
  private highlightOf(hash: string): void {
    const m = /^#t=(\d+),(\d+)$/.exec(hash);
    if (m) this.go(Number(m[1]), Number(m[2]));
  }

  fail(e: unknown): void {
    const text = e instanceof Error ? e.message : String(e);
    if (!this.errors.includes(text)) this.errors.push(text);
    byId("busy").textContent = text;
    byId("busy").classList.add("alarm");
  }

  resize(): void {
    const box = byId("picture").getBoundingClientRect();
    this.view.width = Math.max(1, box.width);
    this.view.height = Math.max(1, box.height);
    this.relayout();
  }

  // relayout follows a change of the rows, or of the room for them.
  private relayout(): void {
    this.rows.fit(this.view.height);
    this.view.scroll(0, this.rows.height);
    this.invalidate();
  }

  // invalidate asks for a new picture.
  invalidate(): void {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.draw();
    });
  }

  draw(): void {
    const begin = performance.now();
    this.store.frame();
    const view = this.view;
    const { c, ratio } = sized(this.base, view.width, view.height);
    this.painter.showWaits = this.shown.waits;
    this.painted = this.painter.paint(c, ratio, view, this.rows, this.store, this.tree.focus);
    const ticks = this.ruler.draw(this.colours, this.range);
    c.fillStyle = this.colours.grid;
    for (const x of ticks) c.fillRect(Math.round(x), 0, 1, view.height);
    this.drawn = this.lines.all(c, this.painted.boxes, this.shown);
    this.drawOver();
    this.tree.draw();
    this.overview.draw(this.colours, this.paletteKey);
    this.words();
    this.frames.push(performance.now() - begin);
    if (this.frames.length > 600) this.frames.shift();
  }

  // drawOver draws what is selected or pointed at, above the picture.
  drawOver(): void {
    const view = this.view;
    const { c } = sized(this.over, view.width, view.height);
    c.clearRect(0, 0, view.width, view.height);
    if (this.range) {
      const a = view.x(this.range.from);
      const b = view.x(this.range.to);
      c.fillStyle = this.colours.range;
      c.fillRect(a, 0, b - a, view.height);
      c.fillStyle = this.colours.collective;
      c.fillRect(a, 0, 1, view.height);
      c.fillRect(b, 0, 1, view.height);
    }
    this.strong = { parents: 0, collectives: 0, transfers: 0, crowded: [] };
    if (this.selected) this.strong = this.lines.family(c, this.selected);
    if (this.hovered >= 0) this.outline(c, this.hovered, 1);
    if (this.selected) this.outline(c, this.selected.bar, 2);
    if (this.pointed) this.dot(c, this.pointed);
  }

  // dot marks the value of a curve that is pointed at.
  private dot(c: CanvasRenderingContext2D, { curve, time, value }: { curve: Curve; time: number; value?: number }): void {
    const item = this.rows.of(curve.row);
    if (value === undefined || !Number.isFinite(value) || item?.row !== curve.row) return;
    c.fillStyle = this.colours.metric.css;
    c.strokeStyle = this.colours.paper;
    c.lineWidth = 1.5;
    c.beginPath();
    c.arc(this.view.x(time), item.y - this.view.top + curveGap + this.store.curves.place(curve, value) * (item.height - 2 * curveGap), 3.5, 0, 2 * Math.PI);
    c.fill();
    c.stroke();
  }

  private outline(c: CanvasRenderingContext2D, bar: number, width: number): void {
    const b = this.store.peekBar(bar);
    const item = b && this.rows.of(b.lane.row);
    if (!b || !item) return;
    const at = item.lanes.find((l) => l.lane === b.lane);
    const x = Math.max(-4, this.view.x(b.start));
    const end = Math.min(this.view.width + 4, this.view.x(b.start + b.length));
    const y = item.y - this.view.top + (at?.y ?? 4);
    c.lineWidth = width;
    c.strokeStyle = this.colours.select;
    c.strokeRect(x - width / 2, y - width / 2, Math.max(end - x, 2) + width - (end - x > 4 ? 1 : 0), (at?.height ?? item.height - 8) + width);
  }

  private words(): void {
    const { from, to } = this.view;
    const step = 10 ** Math.floor(Math.log10(Math.max(1, (to - from) / 100)));
    const round = (t: number) => f.onRuler(Math.round(Math.max(0, Math.min(this.store.head.duration, t)) / step) * step, step).replace(/(\.\d+)\u202f(\d+)/g, "$1$2");
    byId("span").textContent = `${round(from)} – ${round(to)} (${f.time(to - from)} shown)`;
    if (this.errors.length === 0) byId("busy").textContent = this.store.loading > 0 ? "Unpacking…" : "";
    const empty = this.store.head.totals.bars === 0 && this.store.curves.all.length === 0;
    byId("note").textContent = empty
      ? "There are no regions in this archive."
      : this.drawn.crowded.length > 0 && this.painted.coarse === 0
        ? `Zoom in for lines of ${this.drawn.crowded.join(", ")}`
        : "";
  }

  // What can be done.

  zoom(factor: number, x = this.view.width / 2): void {
    this.view.zoom(factor, x);
    this.invalidate();
  }
  pan(dx: number): void {
    this.view.pan(dx);
    this.invalidate();
  }
  scroll(dy: number): void {
    this.view.scroll(dy, this.rows.height);
    this.invalidate();
  }
  fit(): void {
    this.view.fit();
    this.invalidate();
  }
  go(from: number, to: number): void {
    this.view.set(from, to);
    this.invalidate();
  }

  palette(): void {
    const query = this.query;
    const shown = query ? (r: number) => query.regions.has(r) : this.category >= 0 ? (r: number) => this.store.head.regions[r]!.category === this.category : undefined;
    this.colours = colours(this.store.head, this.mode, shown);
    this.paletteKey = `${this.mode} ${query?.text ?? ""} ${this.category}`;
    this.painter.colours = this.lines.colours = this.colours;
    document.documentElement.dataset["theme"] = this.mode;
    this.invalidate();
  }
  setMode(mode: Mode): void {
    this.mode = mode;
    this.palette();
    this.panel.repaint();
    if (this.selected) void this.panel.details(this.selected.bar, this.selected);
  }
  toggleTheme(): void {
    this.setMode(this.mode === "dark" ? "light" : "dark");
  }
  highlight(category: number): void {
    this.category = this.category === category ? -1 : category;
    this.palette();
    this.panel.repaint();
  }

  toggleShown(name: (typeof toggles)[number]): void {
    this.shown[name] = !this.shown[name];
    byId("show-" + name).setAttribute("aria-pressed", String(this.shown[name]));
    this.invalidate();
  }
  toggleMetrics(): void {
    this.rows.metrics = !this.rows.metrics;
    byId("show-metrics").setAttribute("aria-pressed", String(this.rows.metrics));
    this.rows.layout();
    this.relayout();
  }
  togglePanel(): void {
    const off = document.body.classList.toggle("no-panel");
    byId("panel-toggle").setAttribute("aria-expanded", String(!off));
  }
  help(): void {
    const dialog = byId<HTMLDialogElement>("help");
    if (dialog.open) dialog.close();
    else dialog.showModal();
  }

  toggleRow(row: number): void {
    const curve = this.store.curves.of(row);
    if (curve) return void this.selectCurve(curve);
    this.rows.toggle(row);
    this.relayout();
  }
  toggleAll(): void {
    this.rows.setAll(this.rows.closed.size > 0);
    this.relayout();
  }
  focusRow(row: number): void {
    this.tree.focus = row;
    if (row < 0) return this.invalidate();
    this.rows.reveal(row);
    this.relayout();
    this.intoSight(row);
  }
  moveFocus(step: number): void {
    const items = this.rows.items;
    const at = items.findIndex((i) => i.row === this.tree.focus);
    const to = items[Math.max(0, Math.min(items.length - 1, at < 0 ? 0 : at + step))];
    if (to) this.focusRow(to.row);
  }
  get focused(): number {
    return this.tree.focus;
  }
  private intoSight(row: number): void {
    const item = this.rows.of(row);
    if (!item) return;
    if (item.y < this.view.top) this.view.top = item.y;
    else if (item.y + item.height > this.view.top + this.view.height) this.view.top = item.y + item.height - this.view.height;
    this.view.scroll(0, this.rows.height);
  }

  // select shows all that is known of a bar; go: brings it into the picture.
  async select(bar: number, go: boolean): Promise<void> {
    const ask = ++this.asked;
    try {
      const b = await this.store.bar(bar);
      const family = await familyOf(this.store, bar);
      if (ask !== this.asked) return;
      this.selected = family;
      if (go) {
        this.rows.reveal(b.lane.row);
        this.relayout();
        this.intoSight(b.lane.row);
        const x = this.view.x(b.start);
        const end = this.view.x(b.start + b.length);
        if (x < 0 || end > this.view.width || end - x < 3) {
          const span = Math.min(this.view.to - this.view.from, Math.max(b.length * 12, 1000));
          this.view.set(b.start + b.length / 2 - span / 2, b.start + b.length / 2 + span / 2);
        }
      }
      // What the lines lead to is wanted at once.
      await Promise.all([...family.parents, ...family.children.slice(0, 400), ...family.instances.flatMap((i) => i.parts.map((p) => p.bar)).slice(0, 2000)].map((n) => this.store.bar(n)));
      if (ask !== this.asked) return;
      this.invalidate();
      if (innerWidth <= 900 && document.body.classList.contains("no-panel")) this.togglePanel();
      this.panel.show("details");
      await this.panel.details(bar, family);
    } catch (e) {
      this.fail(e);
    }
  }
  unselect(): void {
    this.asked++;
    this.selected = undefined;
    this.tree.focus = -1;
    this.setRange(undefined);
    if (this.query) this.search("");
    this.category = -1;
    this.palette();
    this.panel.empty();
  }
  async selectNeighbour(step: number): Promise<void> {
    const bar = this.selected?.bar;
    if (bar === undefined) return this.selectFirst();
    const lane = this.store.laneOf(bar);
    const to = bar + step;
    if (to >= lane.first && to < lane.first + lane.count) await this.select(to, true);
  }
  // selectFirst selects the first bar in the picture on the chosen row, or on the first row that has any.
  private async selectFirst(): Promise<void> {
    const head = this.store.head;
    const row = this.tree.focus >= 0 && head.rows[this.tree.focus]!.lanes[1] > head.rows[this.tree.focus]!.lanes[0] ? this.tree.focus : this.rows.items.find((i) => i.lanes.length > 0)?.row;
    const lane = row === undefined ? undefined : this.store.lanes[head.rows[row]!.lanes[0]];
    if (!lane) return;
    const n = Math.min(firstAfter(lane.levels[0]!.end, this.view.from), lane.levels[0]!.start.length - 1);
    const at = n * head.leaf;
    const bars = await this.store.bars(lane, Math.floor(at / head.chunk));
    let i = at % head.chunk;
    while (i + 1 < bars.start.length && bars.start[i]! + bars.length[i]! < this.view.from) i++;
    await this.select(lane.first + at - (at % head.chunk) + i, true);
  }
  selectKin(up: boolean): void {
    const to = up ? this.selected?.parents[0] : this.selected?.children[0];
    if (to !== undefined) void this.select(to, true);
  }
  zoomToSelection(): void {
    if (this.range) return this.go(this.range.from, this.range.to);
    const b = this.selected && this.store.peekBar(this.selected.bar);
    if (b) this.go(b.start - 0.5 * b.length - 20, b.start + 1.5 * b.length + 20);
  }

  // at is the bar at a point of the picture, or the next one within some pixels; undefined: there is none.
  at(x: number, y: number, within = 4): number | undefined {
    const item = this.rows.at(y + this.view.top);
    const inside = y + this.view.top - (item?.y ?? 0);
    const lane = item?.lanes.find((l) => inside >= l.y - 1 && inside <= l.y + l.height + 1)?.lane;
    if (!lane) return undefined;
    let best: number | undefined;
    let distance = within + 1;
    for (const b of this.painted.boxes) {
      if (b.bar < lane.first || b.bar >= lane.first + lane.count) continue;
      const d = Math.max(b.x - x, x - b.x - b.width, 0);
      if (d < distance || (d === distance && d === 0)) {
        distance = d;
        best = b.bar;
      }
    }
    return best ?? this.small(lane, x, within);
  }

  // small looks among bars that are less than a pixel wide for the longest one near a point.
  private small(lane: Lane, x: number, within: number): number | undefined {
    const from = this.view.time(x - within);
    const to = this.view.time(x + within);
    const level = lane.levels[0]!;
    const { leaf, chunk } = this.store.head;
    let best: number | undefined;
    let longest = -1;
    let looked = 0;
    for (let n = firstAfter(level.end, from); n < level.start.length && level.start[n]! <= to && looked < 4000; n++) {
      const bars = this.store.peekBars(lane, Math.floor((n * leaf) / chunk));
      if (!bars) continue;
      const first = (n * leaf) % chunk;
      for (let i = first; i < Math.min(first + leaf, bars.start.length); i++, looked++) {
        const s = bars.start[i]!;
        if (s + bars.length[i]! < from || s > to || bars.length[i]! <= longest) continue;
        longest = bars.length[i]!;
        best = lane.first + n * leaf + i - first;
      }
    }
    return best;
  }

  // hoverCurve shows what a curve says of the time at x.
  private hoverCurve(curve: Curve, x: number, place: () => void): void {
    const tip = byId("tip");
    const pointed: NonNullable<App["pointed"]> = { curve, time: this.view.time(x) };
    this.pointed = pointed;
    const half = 0.5 / this.view.scale;
    const { curves } = this.store;
    Promise.all([curves.reading(curve, pointed.time), curves.sums(curve, pointed.time - half, pointed.time + half)]).then(
      ([reading, sums]) => {
        if (this.pointed !== pointed) return;
        tip.hidden = reading === undefined;
        if (!reading) return;
        pointed.value = reading.value;
        this.drawOver();
        tip.replaceChildren(...this.panel.curveTip(curve, reading, sums));
        place();
      },
      (e: unknown) => this.fail(e),
    );
  }

  // selectCurve shows all that is known of a curve, and what it says of a time.
  async selectCurve(curve: Curve, time?: number): Promise<void> {
    const ask = ++this.asked;
    try {
      const { curves, head } = this.store;
      const reading = time === undefined ? undefined : await curves.reading(curve, time);
      const whole = await curves.sums(curve, 0, head.duration);
      if (ask !== this.asked) return;
      this.selected = undefined;
      this.focusRow(curve.row);
      if (innerWidth <= 900 && document.body.classList.contains("no-panel")) this.togglePanel();
      this.panel.show("details");
      this.panel.curve(curve, reading, whole);
    } catch (e) {
      this.fail(e);
    }
  }

  hover(x: number, y: number): void {
    const bar = this.at(x, y) ?? -1;
    byId("cursor").textContent = f.exact(Math.max(0, Math.min(this.store.head.duration, this.view.time(x))));
    const tip = byId("tip");
    const place = () => {
      const { width, height } = this.view;
      const w = tip.offsetWidth;
      const h = tip.offsetHeight;
      tip.style.left = Math.max(4, Math.min(x + 14, width - w - 6)) + "px";
      tip.style.top = (y + 18 + h > height ? Math.max(4, y - h - 12) : y + 18) + "px";
    };
    if (bar < 0) {
      if (this.hovered >= 0) {
        this.hovered = -1;
        this.drawOver();
      }
      if (this.pointed) {
        this.pointed = undefined;
        this.drawOver();
      }
      const item = this.rows.at(y + this.view.top);
      const curve = item && this.store.curves.of(item.row);
      if (curve) return this.hoverCurve(curve, x, place);
      const wire = this.lines.wireAt(x, y);
      tip.hidden = wire === undefined;
      if (!wire) return;
      tip.replaceChildren(...this.panel.transferTip(wire.row, wire.index));
      return place();
    }
    this.pointed = undefined;
    if (bar === this.hovered) return place();
    this.hovered = bar;
    this.drawOver();
    this.panel.tip(bar).then(
      (content) => {
        if (this.hovered !== bar) return;
        tip.replaceChildren(...content);
        tip.hidden = false;
        place();
      },
      (e: unknown) => this.fail(e),
    );
  }
  unhover(): void {
    this.hovered = -1;
    this.pointed = undefined;
    byId("tip").hidden = true;
    byId("cursor").textContent = "";
    this.drawOver();
  }

  search(text: string): void {
    this.query = parse(this.store, text);
    this.found = { time: -Infinity, bar: -1 };
    const input = byId<HTMLInputElement>("query");
    if (input.value !== text) input.value = text;
    byId("search").classList.toggle("active", this.query !== undefined);
    byId("hits").textContent = this.query ? (this.query.count > 0 ? f.count(this.query.count) : this.query.metrics.length > 0 ? f.plural(this.query.metrics.length, "metric", "metrics") : "none") : "";
    if (this.query?.count === 0 && this.query.metrics.length > 0 && !this.rows.metrics) this.toggleMetrics();
    // A search that chooses rows shows only these.
    const rows = this.query?.rows;
    this.rows.show(rows);
    this.relayout();
    this.palette();
  }

  // step goes to the next match.
  async step(forward: boolean, query = this.query): Promise<void> {
    if (!query) return;
    if (query.count === 0 && query.metrics.length > 0) {
      const at = query.metrics.indexOf(this.tree.focus);
      return this.focusRow(query.metrics[(at + (forward ? 1 : query.metrics.length - 1 + Number(at < 0))) % query.metrics.length]!);
    }
    const selected = this.selected && this.store.peekBar(this.selected.bar);
    const after = selected ? { time: selected.start, bar: this.selected!.bar } : forward ? this.found : { time: Infinity, bar: Infinity };
    try {
      const bar = (await next(this.store, query, after, forward)) ?? (await next(this.store, query, forward ? { time: -Infinity, bar: -1 } : { time: Infinity, bar: Infinity }, forward));
      if (bar !== undefined) await this.select(bar, true);
    } catch (e) {
      this.fail(e);
    }
  }
  stepWait(forward: boolean): Promise<void> {
    return this.step(forward, waits(this.store));
  }

  setRange(range: Range | undefined): void {
    this.range = range && { from: Math.max(0, Math.min(range.from, range.to)), to: Math.min(this.store.head.duration, Math.max(range.from, range.to)) };
    if (this.range && this.range.to <= this.range.from) this.range = undefined;
    this.invalidate();
    if (!this.range) {
      this.rangeAsked++;
      this.panel.noRange();
    }
  }

  // sumRange works out the statistics of the range: of the row that is chosen and what it holds, or of all.
  async sumRange(): Promise<RangeSums | undefined> {
    const range = this.range;
    if (!range) return undefined;
    const ask = ++this.rangeAsked;
    this.panel.show("range");
    const focus = this.tree.focus;
    const inside = (row: number): boolean => row >= 0 && (row === focus || inside(this.store.head.rows[row]!.parent));
    const lanes = this.store.lanes.filter((l) => (focus < 0 || inside(l.row)) && (l.row === focus || !this.store.repeats(l)));
    const sums: RangeSums = { ...range, scope: focus >= 0 ? `on ${this.store.head.rows[focus]!.name}` : "on all rows", count: 0, waited: 0, regions: new Map(), metrics: [] };
    try {
      let shown = performance.now();
      for (const [n, lane] of lanes.entries()) {
        await this.sumLane(lane, range, sums);
        if (ask !== this.rangeAsked) return undefined;
        if (performance.now() - shown > 100) {
          shown = performance.now();
          this.panel.rangeUnderWay(n / lanes.length);
        }
      }
      for (const item of this.rows.items) {
        const curve = this.store.curves.of(item.row);
        if (!curve || (focus >= 0 && !inside(item.row))) continue;
        sums.metrics.push({ curve, sums: await this.store.curves.sums(curve, range.from, range.to) });
        if (ask !== this.rangeAsked) return undefined;
      }
      this.panel.range(sums);
    } catch (e) {
      this.fail(e);
    }
    return sums;
  }

  private async sumLane(lane: Lane, range: Range, sums: RangeSums): Promise<void> {
    const { chunk, leaf } = this.store.head;
    const level = lane.levels[0]!;
    const begin = firstAfter(level.end, range.from);
    for (let k = Math.floor((begin * leaf) / chunk); k * chunk < lane.count; k++) {
      if (level.start[(k * chunk) / leaf]! > range.to) return;
      const bars = await this.store.bars(lane, k);
      for (let i = 0; i < bars.start.length; i++) {
        const s = bars.start[i]!;
        if (s > range.to) return;
        const length = bars.length[i]!;
        if (s + length < range.from) continue;
        const region = bars.region[i]!;
        const sum = sums.regions.get(region) ?? { count: 0, time: 0, whole: 0, max: 0 };
        sum.count++;
        sum.time += Math.min(s + length, range.to) - Math.max(s, range.from);
        sum.whole += length;
        sum.max = Math.max(sum.max, length);
        sums.regions.set(region, sum);
        sums.count++;
        const wait = bars.wait[i]!;
        if (wait > 0) sums.waited += Math.max(0, Math.min(s + wait, range.to) - Math.max(s, range.from));
      }
    }
  }

  // print makes the picture what paper has room for, in light colours.
  private printed: { mode: Mode; width: number; height: number; top: number } | undefined;
  private print(begin: boolean): void {
    const style = byId("picture").style;
    const chart = byId("chart").style;
    if (begin) {
      this.printed = { mode: this.mode, width: this.view.width, height: this.view.height, top: this.view.top };
      this.mode = "light";
      this.view.width = 760;
      this.view.height = Math.min(this.rows.height, 560);
      chart.width = "960px";
      chart.height = this.view.height + 26 + "px";
      chart.gridTemplateColumns = "200px 760px";
    } else if (this.printed) {
      this.mode = this.printed.mode;
      chart.width = chart.height = chart.gridTemplateColumns = "";
      this.view.width = this.printed.width;
      this.view.height = this.printed.height;
      this.view.top = this.printed.top;
    }
    style.width = begin ? "760px" : "";
    this.palette();
    this.panel.repaint();
    this.draw();
    if (!begin) this.resize();
  }
}

// firstAfter is the first index of an ascending list whose entry is greater than v.
function firstAfter(list: ArrayLike<number>, v: number): number {
  let lo = 0;
  let hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (list[mid]! <= v) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}
