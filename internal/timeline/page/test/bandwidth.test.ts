// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { fillBandwidth } from "../src/bandwidth";
import type { Plot, PlotPoint } from "../src/head";
import type { Host } from "../src/host";
import { fakePage, FakeElement } from "./page";

const point = (x: number, y: number, size: string, busbw: string): PlotPoint => ({ x, y, size, busbw, algbw: "1", operations: 1000 });

const plot: Plot = {
  sizes: [{ at: 0.5, text: "1 MiB" }],
  bandwidths: [{ at: 1, text: "100" }],
  lines: [
    { name: "AllReduce RING on <b>, 8 ranks", colors: ["#111111", "#eeeeee"], mark: "M0 0h1", replayed: true, points: [point(0, 0, "8 B", "0.5"), point(1, 1, "2 GiB", "90")] },
    { name: "Broadcast on world, 8 ranks", colors: ["#222222", "#dddddd"], mark: "M0 0v1", replayed: false, points: [point(0.5, 0.25, "1 MiB", "7")] },
  ],
  left: 2,
};

function fill(bandwidth?: Plot) {
  const get = fakePage();
  get("tab-bandwidth").hidden = true;
  fillBandwidth({ store: { head: { bandwidth } } } as unknown as Host);
  return { tab: get("tab-bandwidth"), section: get("bandwidth") };
}

function all(e: FakeElement, name: string, className?: string): FakeElement[] {
  const below = e.children.flatMap((c) => (c instanceof FakeElement ? all(c, name, className) : []));
  const classes = (e.attributes.get("class") ?? "").split(" ");
  return e.name === name && (className === undefined || classes.includes(className)) ? [e, ...below] : below;
}

function text(e: FakeElement): string {
  return e.textContent + e.children.map((c) => (c instanceof FakeElement ? text(c) : c)).join("|");
}

test("without two sizes there is no tab", () => {
  const { tab, section } = fill();
  assert.equal(tab.hidden, true);
  assert.equal(section.children.length, 0);
});

test("lines and marks stand where the tool places them", () => {
  const { tab, section } = fill(plot);
  assert.equal(tab.hidden, false);
  const drawn = all(section, "svg")[0]!;
  assert.deepEqual(all(drawn, "path", "line").map((e) => [e.attributes.get("class"), e.attributes.get("d")]), [["line replayed", "M36.0 224.0L310.0 10.0"]]);
  assert.deepEqual(all(drawn, "g", "mark").map((e) => e.attributes.get("transform")), ["translate(36.0 224.0)", "translate(310.0 10.0)", "translate(173.0 170.5)"]);
  assert.deepEqual(all(drawn, "text").map(text), ["1 MiB", "100"]);
  assert.deepEqual(all(drawn, "g", "curve").map((e) => [...e.properties]), plot.lines.map((l) => [["--light", l.colors[0]], ["--dark", l.colors[1]]]));
});

test("who does not see the picture has its words and figures", () => {
  const { section } = fill(plot);
  assert.equal(
    all(section, "svg")[0]!.attributes.get("aria-label"),
    "Bus bandwidth over size. AllReduce RING on <b>, 8 ranks: 0.5 GB/s at 8 B, 90 GB/s at 2 GiB; Broadcast on world, 8 ranks: 7 GB/s at 1 MiB. All figures are in the table below.",
  );
  assert.deepEqual(all(section, "tr").map(text), [
    "size|GB/s|algorithm|operations", "AllReduce RING on <b>, 8 ranks", "8 B|0.5|1|1\u202f000", "2 GiB|90|1|1\u202f000", "Broadcast on world, 8 ranks", "1 MiB|7|1|1\u202f000",
  ]);
  assert.equal(text(section).includes("2 more curves of fewer bytes are not drawn"), true);
});

test("pointing at a mark tells its figures", () => {
  const { section } = fill(plot);
  for (const event of ["mouseenter", "click"]) {
    const readout = all(section, "p", "hint")[0]!;
    readout.textContent = "";
    all(section, "g", "mark")[1]!.listeners.get(event)!({});
    assert.equal(readout.textContent, "AllReduce RING on <b>, 8 ranks: 2 GiB, 90 GB/s (algorithm bandwidth 1), 1\u202f000 operations");
  }
});
