// SPDX-License-Identifier: Apache-2.0

import { App } from "./app";
import { byId, el } from "./dom";
import { open } from "./source";
import { Store } from "./store";

declare global {
  interface Window {
    // What tests look at, and what can be called from the browser's console.
    __timeline?: App;
    __failure?: string;
  }
}

async function start(): Promise<void> {
  try {
    const store = new Store(await open());
    await store.open();
    window.__timeline = new App(store);
  } catch (e) {
    const text = e instanceof Error ? e.message : String(e);
    window.__failure = text;
    byId("busy").textContent = "";
    byId("middle").replaceChildren(el("p", { class: "fail", role: "alert" }, "This timeline cannot be shown: " + text));
  }
}

void start();
