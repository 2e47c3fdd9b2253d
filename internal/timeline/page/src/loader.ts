// SPDX-License-Identifier: Apache-2.0
// The page contains its program compressed. The loader runs it: the page's policy allows it by its hash.

import { fail } from "./failure";
import { decode, inflate } from "./unpack";

async function load(packed: HTMLElement): Promise<void> {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old: it has no DecompressionStream (Chrome 103, Firefox 113, Safari 16.4 have)");
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(await inflate(decode(packed.textContent ?? "")));
  packed.replaceWith(script);
}

load(document.getElementById("program")!).catch(fail);
