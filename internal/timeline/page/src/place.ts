// SPDX-License-Identifier: Apache-2.0
// The state of the page in its address: #t=FROM,TO&… Times are ns; rows and bars are numbers of this page.

export interface Place {
  time?: [from: number, to: number];
  top?: number; // scroll position of the rows, pixels
  row?: number; // the chosen row
  bar?: number; // the selected bar
  range?: [from: number, to: number];
  query?: string; // of the search
  list?: string; // filter of the table of operations
  tab?: string;
  path?: string; // "1": the critical path is drawn
  ranks?: string; // measure and order of the picture of all ranks
  pinned?: number[];
  hidden?: number[];
}

// keys are the names in the address, with the functions that read and write the values.
const keys: { [K in keyof Required<Place>]: [key: string, read: (text: string) => Place[K]] } = {
  time: ["t", span],
  top: ["top", whole],
  row: ["row", whole],
  bar: ["bar", whole],
  range: ["range", span],
  query: ["q", text],
  list: ["ops", text],
  tab: ["tab", text],
  path: ["path", text],
  ranks: ["ranks", text],
  pinned: ["pin", list],
  hidden: ["hide", list],
};

function whole(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function span(text: string): [number, number] | undefined {
  const m = /^(-?\d{1,18}),(-?\d{1,18})$/.exec(text);
  return m && Number(m[1]) < Number(m[2]) ? [Number(m[1]), Number(m[2])] : undefined;
}

function text(text: string): string | undefined {
  return text === "" ? undefined : text;
}

function list(text: string): number[] | undefined {
  const all = text.split(",").map(whole);
  return all.some((n) => n === undefined) ? undefined : (all as number[]);
}

// write returns the fragment of the address.
export function write(place: Place): string {
  const out: string[] = [];
  for (const [name, [key]] of Object.entries(keys)) {
    const value = place[name as keyof Place];
    if (value === undefined || value === "" || (Array.isArray(value) && value.length === 0)) continue;
    const words = (Array.isArray(value) ? value.map(rounded) : [typeof value === "number" ? rounded(value) : value]).map((v) => encodeURIComponent(v).replaceAll("%20", "+"));
    out.push(`${key}=${words.join(",")}`);
  }
  return out.join("&");
}

function rounded(v: number): string {
  return String(Math.round(v));
}

// read parses the fragment. Invalid parts are ignored.
export function read(hash: string): Place {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const place: Place = {};
  for (const [name, [key, understand]] of Object.entries(keys)) {
    const value = given.get(key);
    const understood = value === null ? undefined : understand(value);
    if (understood !== undefined) (place as Record<string, unknown>)[name] = understood;
  }
  return place;
}
