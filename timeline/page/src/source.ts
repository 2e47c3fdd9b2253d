// SPDX-License-Identifier: Apache-2.0
// Where the data come from: elements of the page, or the tool that serves it.

import { formatVersion, type Head } from "./head";
import { decode, inflate } from "./unpack";

export interface Source {
  head: Head;
  block(n: number): Promise<Uint8Array>;
}

function parse(bytes: Uint8Array): Head {
  const head = JSON.parse(new TextDecoder().decode(bytes)) as Head;
  if (head.version !== formatVersion) throw new Error(`the data are of version ${head.version}, the page of ${formatVersion}`);
  return head;
}

// embedded takes blocks out of the elements of the page. An element is a text in base64; blocks begin at multiples of
// three bytes, so that each is a part of the text.
async function embedded(element: HTMLElement): Promise<Source> {
  const head = parse(await inflate(decode((element.textContent ?? "").trim())));
  const texts: (string | undefined)[] = [];
  const places = head.blocks ?? [];
  return {
    head,
    async block(n) {
      const place = places[n];
      if (!place) throw new Error(`there is no block ${n}`);
      const [blob, from, length] = place;
      const text = (texts[blob] ??= document.getElementById("b" + blob)?.textContent ?? "");
      const end = Math.ceil((from + length) / 3) * 4;
      return inflate(decode(text.slice((from / 3) * 4, end)).subarray(0, length));
    },
  };
}

async function get(path: string): Promise<Uint8Array> {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`the tool does not answer (${answer.status}): is it still running?`);
  return new Uint8Array(await answer.arrayBuffer());
}

async function served(): Promise<Source> {
  const head = parse(await inflate(await get("head")));
  return { head, block: async (n) => inflate(await get("block/" + n)) };
}

export function open(): Promise<Source> {
  const element = document.getElementById("head");
  return element ? embedded(element) : served();
}
