// SPDX-License-Identifier: Apache-2.0
// Texts about the archive: attributes, paths of rows, times of day.

import type { Note } from "./columns";
import { el } from "./dom";
import * as f from "./format";
import type { Attribute, Head } from "./head";

// Words formats them.
export class Words {
  private readonly attributes = new Map<number, Attribute>();

  constructor(private readonly head: Head) {
    head.attributes.forEach((a) => this.attributes.set(a.id, a));
  }

  // plain formats an attribute without units.
  plain(note: Note): string {
    const a = this.attributes.get(note.id);
    const type = a?.type ?? "";
    if (/string/i.test(type)) return this.head.texts[String(note.value)] ?? `string ${note.value}`;
    if (/^comm$/i.test(type)) return this.head.comms.find((c) => c.ref === Number(note.value))?.name ?? `communicator ${note.value}`;
    if (/ADDRESS|_ID$|^STREAM$/.test(a?.name ?? "") && note.value > 0xffffn) return "0x" + note.value.toString(16);
    const bits = new DataView(new ArrayBuffer(8));
    bits.setBigUint64(0, note.value);
    if (/double/i.test(type)) return String(bits.getFloat64(0));
    if (/^float/i.test(type)) return String(bits.getFloat32(4));
    if (/^int/i.test(type)) return String(BigInt.asIntN(64, note.value));
    return String(note.value);
  }

  // value formats an attribute.
  value(note: Note): string {
    const a = this.attributes.get(note.id);
    const plain = this.plain(note);
    if (/string|^comm$|double|^float|^int/i.test(a?.type ?? "") || plain.startsWith("0x")) return plain;
    if (/bytes/i.test(a?.name ?? "")) return `${f.bytes(Number(note.value))} (${note.value})`;
    if (/, ns\b|\(ns\)/.test(a?.description ?? "")) return f.exact(Number(note.value));
    return f.group(String(note.value));
  }

  // notes lists attributes in the order of their definitions.
  notes(notes: Note[]): HTMLElement[] {
    return [...notes].sort((a, b) => a.id - b.id).flatMap((n) => {
      const a = this.attributes.get(n.id);
      const name = a?.name ?? `attribute ${n.id}`;
      return [el("dt", { title: a?.description ?? name }, readable(name)), el("dd", null, this.value(n))];
    });
  }

  // path names a row and the groups around it.
  path(row: number): string {
    const names: string[] = [];
    for (let r = row; r >= 0; r = this.head.rows[r]!.parent) names.unshift(this.head.rows[r]!.name);
    return names.join(" › ");
  }

  // clock returns the time of day at a time of the run.
  clock(ns: number): string {
    const t = BigInt(this.head.origin) + BigInt(Math.round(ns));
    return `${new Date(Number(t / 1_000_000n)).toISOString().slice(0, 19).replace("T", " ")}.${String(t % 1_000_000_000n).padStart(9, "0")} UTC`;
  }
}

function readable(name: string): string {
  return name.toLowerCase().replaceAll("_", " ").replace(/^buff /, "buffer ");
}
