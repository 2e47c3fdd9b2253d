// SPDX-License-Identifier: Apache-2.0
// Formatting of numbers.

const units: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

// time formats a duration with three significant digits.
export function time(ns: number): string {
  if (ns === 0) return "0";
  const a = Math.abs(ns);
  if (a >= 3600e9) return `${digits(ns / 3600e9)} h`;
  if (a >= 300e9) return `${digits(ns / 60e9)} min`;
  const [factor, unit] = units.find(([f]) => a >= f) ?? units[3]!;
  return `${factor === 1 ? ns.toFixed(0) : digits(ns / factor)} ${unit}`;
}

// exact formats a duration to the nanosecond.
export function exact(ns: number): string {
  const a = Math.abs(ns);
  const [factor, unit] = units.find(([f]) => a >= f) ?? units[3]!;
  const places = Math.round(Math.log10(factor));
  return `${group((ns / factor).toFixed(places))} ${unit}`;
}

// digits formats three significant digits, or all digits of the integer part, as the tool does (units.Number).
export function digits(v: number): string {
  const a = Math.abs(v);
  if (Number.isInteger(v) || a >= 99.95) return v.toFixed(0);
  return v.toFixed(a >= 9.995 ? 1 : 2);
}

// group inserts thin spaces between thousands, on both sides of the decimal point.
export function group(text: string): string {
  const [whole, part] = text.split(".");
  const left = whole!.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  return part ? left + "." + part.replace(/(\d{3})(?=\d)/g, "$1\u202f") : left;
}

export function count(n: number): string {
  return group(String(n));
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const names = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = -1;
  let v = n;
  while (v >= 1024 && i < names.length - 1) {
    v /= 1024;
    i++;
  }
  return `${digits(v)} ${names[i]}`;
}

// Units that take the prefixes of powers of 1000.
const prefixed = /^(B\/s|bit\/s|b\/s|Hz|W|J|V|A|eV|\/s|FLOPS?|FLOPS?\/s|)$/i;

// quantity formats a value with its unit, rounded to three significant digits if it is long.
export function quantity(v: number, unit: string): string {
  if (!Number.isFinite(v)) return "–";
  if (unit === "bits") return "0x" + v.toString(16);
  const sign = v < 0 ? "−" : "";
  const a = Math.abs(v);
  const name = unit === "#" ? "" : unit.replace(/^bytes?(?=\/|$)/i, "B"); // as Score-P writes them
  if (name === "B") return sign + bytes(a < 1024 ? Number(digits(a)) : a);
  if (name === "s") return sign + time(a * 1e9);
  if (prefixed.test(name)) {
    if (a >= 1000 && (a >= 1e5 || name !== "" || !Number.isInteger(a))) {
      const prefixes = ["k", "M", "G", "T", "P", "E"];
      const i = Math.min(prefixes.length - 1, Math.floor(Math.log10(a) / 3 + 1e-12) - 1);
      return `${sign}${digits(a / 1000 ** (i + 1))} ${prefixes[i]}${name}`;
    }
    if (a > 0 && a < 1 && name !== "" && name !== "/s") {
      const [factor, prefix] = a >= 1e-3 ? [1e3, "m"] : a >= 1e-6 ? [1e6, "µ"] : [1e9, "n"];
      return `${sign}${digits(a * factor)} ${prefix}${name}`;
    }
  }
  const number = Number.isInteger(a) ? (a < 1e15 ? group(String(a)) : a.toExponential(2)) : a >= 1e6 ? group(a.toFixed(0)) : a < 0.01 ? a.toExponential(2) : digits(a);
  return name === "" ? sign + number : `${sign}${number} ${name}`;
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "–";
}

// cause returns the name of a kind of cause: "host late" for "host_late".
export function cause(kind: string): string {
  return kind.replaceAll("_", " ").replace(/^gpu\b/, "GPU");
}

export function plural(n: number, one: string, many: string): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// ticks chooses round times for a ruler, about one per room pixels.
export function ticks(from: number, to: number, width: number, room: number): { step: number; at: number[] } {
  const least = ((to - from) / Math.max(width, 1)) * room;
  let step = 1;
  while (step < least) step *= 10;
  for (const s of [step / 5, step / 2]) {
    if (s >= least && s >= 1) {
      step = s;
      break;
    }
  }
  const at: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to && at.length < 1000; t += step) at.push(t);
  return { step, at };
}

// onRuler formats a time with as many digits as the step needs.
export function onRuler(t: number, step: number): string {
  if (t === 0) return "0";
  const a = Math.max(Math.abs(t), step);
  const [factor, unit] = units.find(([f]) => a >= f) ?? units[3]!;
  const places = Math.max(0, Math.ceil(Math.log10(factor / step) - 1e-9));
  return `${group((t / factor).toFixed(places))} ${unit}`;
}
