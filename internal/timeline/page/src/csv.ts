// SPDX-License-Identifier: Apache-2.0
// Tables as text with commas (RFC 4180).

// csvOf writes a table. Texts that a spreadsheet would evaluate as formulas get a leading apostrophe.
export function csvOf(head: string[], rows: (string | number)[][]): string {
  return [head, ...rows].map((r) => r.map(field).join(",")).join("\n") + "\n";
}

function field(v: string | number): string {
  if (typeof v === "number") return String(v);
  const safe = /^[=+\-@\t\r]/.test(v) ? "'" + v : v;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
