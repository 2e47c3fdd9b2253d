// SPDX-License-Identifier: Apache-2.0

import { startApp, type App } from "./app";
import { fail } from "./failure";
import { open } from "./source";
import { Store } from "./store";

declare global {
  interface Window {
    // Access for tests and the browser's console.
    __timeline?: App;
  }
}

declare const STYLE: string; // style.css, inserted by build.mjs and compressed with the program

// dress replaces the initial style.
function dress(): void {
  const style = document.createElement("style");
  style.textContent = STYLE;
  document.querySelector("style")!.replaceWith(style);
}

async function start(): Promise<void> {
  try {
    const store = new Store(await open());
    await store.open();
    window.__timeline = startApp(store);
  } catch (e) {
    fail(e);
  }
}

dress();
void start();
