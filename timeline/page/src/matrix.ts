// SPDX-License-Identifier: Apache-2.0
// The message matrix: bytes by sender and receiver.

import { byId, el } from "./dom";
import * as f from "./format";
import type { Flow, Head } from "./head";
import type { Host } from "./host";

export class Matrix {
  private readonly head: Head;
  private nominal: boolean; // what would be sent, in place of what was

  constructor(private readonly host: Host) {
    this.head = host.store.head;
    this.nominal = this.head.matrix.transfers.length === 0;
    this.draw();
  }

  draw(): void {
    const m = this.head.matrix;
    const flows: Flow[] = this.nominal ? m.nominal : m.transfers;
    const section = byId("matrix");
    const choice = el(
      "div", { class: "choice" },
      ...[false, true].map((nominal) =>
        el(
          "button",
          {
            type: "button", "aria-pressed": String(this.nominal === nominal),
            onclick: () => {
              this.nominal = nominal;
              this.draw();
            },
          },
          nominal ? "Operations" : "Network",
        ),
      ),
    );
    const about = this.nominal
      ? "What each rank would send every other if operations were carried out without intermediaries, of communicators without recorded transfers."
      : "Bytes of the transfers over the network that were recorded, sender by receiver.";
    if (flows.length === 0) {
      const why = this.nominal ? "There are no such operations." : "No transfers were recorded: NCCL_OTF2_EVENTS=net records them.";
      section.replaceChildren(choice, el("p", { class: "hint" }, why));
      return;
    }
    const ranks = this.head.ranks;
    const known = flows.filter((x) => x.from >= 0 && x.to >= 0);
    const lost = flows.filter((x) => x.from < 0 || x.to < 0).reduce((n, x) => n + x.bytes, 0);
    const most = Math.max(1, ...known.map((x) => x.bytes));
    const total = flows.reduce((n, x) => n + x.bytes, 0);
    const body: Node[] = [];
    const readout = el("p", { class: "hint" }, "Point at a cell for its numbers.");
    const say = (from: number, to: number) => {
      const x = known.find((k) => k.from === from && k.to === to);
      readout.textContent = `${ranks[from]?.name ?? "?"} → ${ranks[to]?.name ?? "?"}: ${x ? `${f.bytes(x.bytes)} in ${f.plural(x.count, this.nominal ? "operation" : "transfer", this.nominal ? "operations" : "transfers")}` : "nothing"}`;
    };
    if (ranks.length <= 10) {
      const table = el("table", { class: "cells" }, el("tr", null, el("th", null, "from ↓ to →"), ...ranks.map((_, i) => el("th", { scope: "col" }, String(i)))));
      ranks.forEach((r, from) => {
        table.append(
          el(
            "tr", null, el("th", { scope: "row", title: r.name }, r.name),
            ...ranks.map((_, to) => {
              const x = known.find((k) => k.from === from && k.to === to);
              const cell = el("td", null, x ? short(x.bytes) : "");
              if (x) shade(cell, x.bytes / most);
              cell.addEventListener("mouseenter", () => say(from, to));
              return cell;
            }),
          ),
        );
      });
      body.push(table);
    } else {
      const n = ranks.length;
      const canvas = el("canvas", { role: "img", "aria-label": "Message matrix: senders from top to bottom, receivers from left to right" });
      canvas.width = canvas.height = n;
      const c = canvas.getContext("2d")!;
      c.fillStyle = this.host.colours().stripe;
      c.fillRect(0, 0, n, n);
      for (const x of known) {
        c.fillStyle = heat(x.bytes / most);
        c.fillRect(x.to, x.from, 1, 1);
      }
      canvas.addEventListener("mousemove", (e) => {
        const box = canvas.getBoundingClientRect();
        say(Math.floor(((e.clientY - box.top) / box.height) * n), Math.floor(((e.clientX - box.left) / box.width) * n));
      });
      body.push(canvas);
    }
    section.replaceChildren(
      choice, el("h2", null, f.bytes(total)), el("p", { class: "sub" }, about), ...body, readout,
      lost > 0 ? el("p", { class: "alarm" }, `${f.bytes(lost)} are of ranks that are not known.`) : "", ...m.remarks.map((r) => el("p", { class: "sub" }, r)),
    );
  }
}

function short(n: number): string {
  return f.bytes(n).replace(/ ?i?B$/, "").replace(" ", "");
}

// The share is shown by its root, so that small amounts are seen.
function heat(share: number): string {
  return `hsl(217 62% 50% / ${(0.12 + 0.88 * Math.sqrt(share)).toFixed(3)})`;
}

function shade(cell: HTMLElement, share: number): void {
  cell.style.background = heat(share);
  if (share > 0.3) cell.style.color = "#fff";
}
