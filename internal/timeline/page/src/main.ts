// SPDX-License-Identifier: Apache-2.0

import { App } from "./app";
import { fail } from "./failure";
import { open } from "./source";
import { Store } from "./store";

declare global {
  interface Window {
    // What tests look at, and what can be called from the browser's console.
    __timeline?: App;
  }
}

declare const STYLE: string; // style.css: build.mjs puts it here, as it is packed with the program

// dress replaces the style of the first moment.
function dress(): void {
  const style = document.createElement("style");
  style.textContent = STYLE;
  document.querySelector("style")!.replaceWith(style);
}

async function start(): Promise<void> {
  try {
    const store = new Store(await open());
    await store.open();
    window.__timeline = new App(store);
  } catch (e) {
    fail(e);
  }
}

dress();
void start();
