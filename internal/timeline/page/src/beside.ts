// SPDX-License-Identifier: Apache-2.0
// Two runs on one page, each in a frame; navigation in one moves the other, too.

import { isMoved } from "./twin";

const frames = [...document.querySelectorAll("iframe")];

function pressed(id: string, change: (on: boolean) => void): () => boolean {
  const button = document.getElementById(id)!;
  const on = () => button.getAttribute("aria-pressed") === "true";
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(!on()));
    change(on());
  });
  return on;
}

const together = pressed("together", () => {});
pressed("columns", (on) => document.querySelector("main")!.classList.toggle("columns", on));

addEventListener("message", (e: MessageEvent<unknown>) => {
  const from = frames.findIndex((f) => f.contentWindow === e.source);
  if (from < 0 || !together() || !isMoved(e.data)) return;
  frames.forEach((f, i) => i !== from && f.contentWindow?.postMessage(e.data, "*"));
});
