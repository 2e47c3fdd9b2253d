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

async function start(): Promise<void> {
  try {
    const store = new Store(await open());
    await store.open();
    window.__timeline = new App(store);
  } catch (e) {
    fail(e);
  }
}

void start();
