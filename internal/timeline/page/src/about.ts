// SPDX-License-Identifier: Apache-2.0
// What is known of the archive as a whole.

import { byId, definitions, el } from "./dom";
import * as f from "./format";
import type { Host } from "./host";
import type { Words } from "./words";

export function fillAbout(host: Host, words: Words): void {
  const h = host.store.head;
  byId("about").replaceChildren(
    el("h2", null, h.title),
    el("p", { class: "sub" }, `${h.tool}; time 0 is ${h.realtime ? words.clock(0) : h.origin}`),
    definitions(h.facts.map((x) => [x.name, x.text, x.alarm ? "alarm" : ""])),
    ...(h.problems.length > 0 ? [el("h3", null, "Problems"), ...h.problems.map((p) => el("p", { class: "alarm" }, p))] : []),
    ...(h.markers.length > 0
      ? [
          el("h3", null, `Markers (${h.markers.length})`),
          ...h.markers.slice(0, 200).map((m) => {
            const onclick = () => host.state.jump(m.time - h.duration / 200, m.time + m.length + h.duration / 200);
            return el("button", { class: "link", onclick }, el("span", { class: "sub" }, f.time(m.time)), m.text || m.kind);
          }),
        ]
      : []),
  );
}
