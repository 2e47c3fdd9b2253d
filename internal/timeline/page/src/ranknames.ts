// SPDX-License-Identifier: Apache-2.0
// The names beside the picture of all ranks, as many as fit.

import { byId, el } from "./dom";
import type { RankMap } from "./rankmap";
import type { State } from "./state";

const distance = 15; // pixels between names

export class RankNames {
  private readonly root = byId("rank-names");
  private key = "";

  constructor(
    private readonly state: State,
    private readonly map: RankMap,
    private readonly open: (rank: number) => void,
  ) {}

  draw(): void {
    const { rows } = this.map;
    this.root.hidden = !this.map.on;
    if (!this.map.on) return;
    const key = `${rows.by} ${rows.first} ${rows.count} ${rows.per} ${rows.height}`;
    if (key === this.key) return;
    this.key = key;
    const { ranks } = this.state.store.head;
    const out: HTMLElement[] = [];
    let host = "";
    for (let line = 0, free = 0; line < rows.lines; line++) {
      const [rank] = rows.of(line);
      const r = ranks[rank!]!;
      if (line * rows.height < free) continue;
      free = line * rows.height + distance;
      const style = { top: `${line * rows.height}px`, height: `${Math.max(distance, rows.height)}px` };
      const onclick = () => this.open(rank!);
      out.push(el("button", { class: "rank-name", title: `Show the rows of ${r.name} on ${r.host}`, style, onclick }, r.name, el("span", { class: "sub" }, r.host === host ? "" : r.host)));
      if (rows.by === "host") host = r.host;
    }
    this.root.replaceChildren(...out);
  }
}
