// SPDX-License-Identifier: Apache-2.0
// The source of the data: elements of the page, or the tool that serves it.

import { formatVersion, type Head } from "./head";
import { decode, inflate } from "./unpack";

export interface Source {
  head: Head;
  block(n: number): Promise<Uint8Array>;
  atOnce?: number; // blocks that it gives as soon as one; not there: it gives one after the other
}

function parse(bytes: Uint8Array): Head {
  const head = JSON.parse(new TextDecoder().decode(bytes)) as Head;
  if (head.version !== formatVersion) throw new Error(`the data have version ${head.version}, and the page reads version ${formatVersion}`);
  return head;
}

// embedded reads blocks from elements of the page. An element is a text in Base64; blocks begin at multiples of three
// bytes, so that each is a substring.
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

// mostAtOnce is the number of blocks in one answer of the tool; ../../serve.go has the same.
const mostAtOnce = 64;

// Asker combines requests for blocks: many ranks need many small blocks.
export class Asker {
  private wanted: { n: number; resolve: (b: Uint8Array) => void; reject: (e: unknown) => void }[] = [];

  constructor(private readonly get: (path: string) => Promise<Uint8Array>) {}

  block(n: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.wanted.push({ n, resolve, reject }) === 1) setTimeout(() => this.ask(), 0);
    });
  }

  private ask(): void {
    const all = this.wanted;
    this.wanted = [];
    for (let i = 0; i < all.length; i += mostAtOnce) void this.some(all.slice(i, i + mostAtOnce));
  }

  // some splits an answer: each block is preceded by its length, four bytes, the lowest first.
  private async some(all: Asker["wanted"]): Promise<void> {
    try {
      const answer = await this.get("blocks/" + all.map((w) => w.n).join(","));
      const view = new DataView(answer.buffer, answer.byteOffset, answer.byteLength);
      let at = 0;
      for (const w of all) {
        const length = view.getUint32(at, true);
        if (at + 4 + length > answer.length) throw new Error("the tool's answer ends too early");
        w.resolve(answer.subarray(at + 4, at + 4 + length));
        at += 4 + length;
      }
    } catch (e) {
      for (const w of all) w.reject(e);
    }
  }
}

async function served(): Promise<Source> {
  const head = parse(await inflate(await get("head")));
  const asker = new Asker(get);
  return { head, atOnce: mostAtOnce, block: (n) => asker.block(n) }; // it unpacks them: of many ranks they are many small ones
}

export function open(): Promise<Source> {
  const element = document.getElementById("head");
  return element ? embedded(element) : served();
}
