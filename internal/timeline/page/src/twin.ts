// SPDX-License-Identifier: Apache-2.0
// Two pages in frames of one page: navigation in one moves the other.

import { lastAtMost } from "./bounds";
import type { Head, Phase } from "./head";
import type { View } from "./view";

// Moved is the visible time of a page: relative to the phase at that time, if there is one, and to the end of start-up.
export interface Moved {
  timeline: "moved";
  phase: string; // "": none
  fromPhase: number; // ns
  fromSteady: number;
  span: number;
}

// isMoved reports whether a message is a Moved.
export function isMoved(m: unknown): m is Moved {
  const { timeline, phase, fromPhase, fromSteady, span } = (m ?? {}) as Partial<Moved>;
  return timeline === "moved" && typeof phase === "string" && [fromPhase, fromSteady, span].every((v) => typeof v === "number" && Number.isFinite(v)) && span! > 0;
}

// moved returns the visible time as a Moved.
export function moved(head: Head, from: number, to: number): Moved {
  const phase = phaseAt(outermost(head), (from + to) / 2);
  return { timeline: "moved", phase: phase?.name ?? "", fromPhase: phase ? from - phase.from : 0, fromSteady: from - head.answer.from, span: to - from };
}

// placeOf returns the corresponding time of this run: relative to its phase of that name, if it has one.
export function placeOf(head: Head, m: Moved): { from: number; to: number } {
  const phase = m.phase === "" ? undefined : outermost(head).find((p) => p.name === m.phase);
  const from = phase ? phase.from + m.fromPhase : head.answer.from + m.fromSteady;
  return { from, to: from + m.span };
}

function outermost(head: Head): Phase[] {
  return (head.phases ?? []).filter((p) => p.depth === 0);
}

function phaseAt(phases: Phase[], time: number): Phase | undefined {
  const p = phases[lastAtMost(phases.map((p) => p.from), time)];
  return p && time <= p.to ? p : undefined;
}

export class Twin {
  private last = ""; // the last message

  constructor(
    private readonly head: Head,
    private readonly view: View,
    private readonly go: (from: number, to: number) => void,
  ) {
    if (!this.there) return;
    this.last = this.key();
    addEventListener("message", (e: MessageEvent<unknown>) => {
      if (e.source !== parent || !isMoved(e.data)) return;
      const { from, to } = placeOf(head, e.data);
      this.go(from, to);
      this.last = this.key();
    });
  }

  // there reports whether the page is in a frame.
  get there(): boolean {
    return parent !== window;
  }

  private key(): string {
    return `${this.view.from} ${this.view.to}`;
  }

  // changed notifies the other page of a change.
  changed(): void {
    if (!this.there || this.key() === this.last) return;
    this.last = this.key();
    parent.postMessage(moved(this.head, this.view.from, this.view.to), "*");
  }
}
