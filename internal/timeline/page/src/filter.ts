// SPDX-License-Identifier: Apache-2.0
// Filters of operations in words: AllReduce >1MiB rank:3 wait>1ms algorithm:ring

// Subject is an operation as filters see it.
export interface Subject {
  name: string; // of the operation, its communicator and row, in small letters
  comm: string;
  rank: number; // of the job; −1: unknown
  number: number;
  size: number;
  time: number;
  wait: number;
  begin: number;
  attribute(name: string): string[]; // values of the attributes whose name begins with name
}

export interface Filter {
  text: string;
  attributes: boolean; // it has conditions on attributes, which must be unpacked
  conditional: boolean; // it has conditions besides words
  wrong: string[]; // parts that are not valid
  onRank(rank: number): boolean; // whether operations of a rank can match
  meets(o: Subject): boolean;
}

type Test = (o: Subject) => boolean;
type Comparison = ">" | "<" | ">=" | "<=" | "=" | ":";

// Multiples of units, in bytes or ns. As in nccl-tests, K is 1024.
const bytes: Record<string, number> = { "": 1, b: 1, k: 2 ** 10, kib: 2 ** 10, kb: 1e3, m: 2 ** 20, mib: 2 ** 20, mb: 1e6, g: 2 ** 30, gib: 2 ** 30, gb: 1e9, t: 2 ** 40, tib: 2 ** 40 };
const times: Record<string, number> = { "": 1, ns: 1, us: 1e3, "µs": 1e3, "μs": 1e3, ms: 1e6, s: 1e9 };

// amount reads a number with its unit; undefined: it is not valid.
export function amount(text: string, units: Record<string, number>): number | undefined {
  const m = /^(\d+(?:\.\d+)?)([a-zµμ]*)$/i.exec(text);
  const unit = m?.[2]!.toLowerCase() ?? "";
  return m && Object.hasOwn(units, unit) ? Number(m[1]) * units[unit]! : undefined;
}

const compares: Record<Comparison, (v: number, to: number) => boolean> = {
  ">": (v, to) => v > to, "<": (v, to) => v < to, ">=": (v, to) => v >= to, "<=": (v, to) => v <= to, "=": (v, to) => v === to, ":": (v, to) => v === to,
};

// numbers parses lists such as 3,5-7.
function numbers(text: string): ((n: number) => boolean) | undefined {
  const parts = text.split(",").map((p) => /^(\d+)(?:-(\d+))?$/.exec(p));
  if (parts.some((m) => !m)) return undefined;
  return (n) => parts.some((m) => n >= Number(m![1]) && n <= Number(m![2] ?? m![1]));
}

// figures are the quantities that conditions compare, with their units.
const figures: Record<string, [of: (o: Subject) => number, units: Record<string, number>]> = {
  size: [(o) => o.size, bytes],
  time: [(o) => o.time, times],
  wait: [(o) => o.wait, times],
  begin: [(o) => o.begin, times],
};

function condition(key: string, by: Comparison, value: string): Test | undefined {
  if (Object.hasOwn(figures, key)) {
    const figure = figures[key]!;
    const to = amount(value, figure[1]);
    return to === undefined ? undefined : (o) => compares[by](figure[0](o), to);
  }
  const exact = by === ":" || by === "=";
  if (key === "rank" || key === "number") {
    const of = key === "rank" ? (o: Subject) => o.rank : (o: Subject) => o.number;
    const among = exact ? numbers(value) : undefined;
    const to = amount(value, { "": 1 });
    return among ? (o) => among(of(o)) : to === undefined ? undefined : (o) => compares[by](of(o), to);
  }
  if (key === "comm" || key === "communicator") return exact ? (o) => o.comm.includes(value) : undefined;
  if (exact) return (o) => o.attribute(key).some((t) => t.includes(value));
  const to = amount(value, bytes);
  return to === undefined ? undefined : (o) => o.attribute(key).some((t) => compares[by](Number(t), to));
}

const own = new Set([...Object.keys(figures), "rank", "number", "comm", "communicator"]);

// parseFilter parses words, which match names, and conditions.
export function parseFilter(text: string): Filter {
  const tests: Test[] = [];
  const wrong: string[] = [];
  const ofRank: Test[] = [];
  let attributes = false;
  let conditional = false;
  for (const part of text.toLowerCase().split(/\s+/).filter((w) => w !== "")) {
    const m = /^([a-z][\w]*)?(>=|<=|>|<|=|:)(.*)$/.exec(part);
    if (!m) {
      tests.push((o) => o.name.includes(part));
      continue;
    }
    conditional = true;
    const key = m[1] ?? "size";
    const test = m[3] === "" || (m[1] === undefined && m[2] === ":") ? undefined : condition(key, m[2] as Comparison, m[3]!);
    if (!test) wrong.push(part);
    else {
      attributes ||= !own.has(key);
      tests.push(test);
      if (key === "rank") ofRank.push(test);
    }
  }
  return { text, attributes, conditional, wrong, meets: (o) => tests.every((t) => t(o)), onRank: (rank) => ofRank.every((t) => t({ rank } as Subject)) };
}
