// SPDX-License-Identifier: Apache-2.0
// The visible range of time and of the rows.

export class View {
  from = 0;
  to = 1;
  top = 0; // scroll position of the rows, pixels
  width = 1; // of the picture, CSS pixels
  height = 1;

  constructor(readonly duration: number, readonly begin = 0) {
    this.fit();
  }

  get scale(): number {
    return this.width / (this.to - this.from);
  }
  x(t: number): number {
    return (t - this.from) * this.scale;
  }
  time(x: number): number {
    return this.from + x / this.scale;
  }

  // margin is how far the view may extend beyond the run on both sides.
  get margin(): number {
    return Math.max(1, (this.duration - this.begin) * 0.01);
  }

  fit(): void {
    const { margin } = this;
    this.from = this.begin - margin;
    this.to = this.duration + margin;
  }

  // set shows a range of time within limits: some of the run stays visible, and no more than the run is shown.
  set(from: number, to: number): void {
    const whole = Math.max(100, (this.duration - this.begin) * 1.1);
    const span = Math.min(whole, Math.max(20, to - from));
    const middle = (from + to) / 2;
    let a = middle - span / 2;
    a = Math.max(a, this.begin - span * 0.9);
    a = Math.min(a, this.duration - span * 0.1);
    if (span >= whole) a = (this.begin + this.duration - span) / 2;
    this.from = a;
    this.to = a + span;
  }

  // zoom zooms around the time at x.
  zoom(factor: number, x: number): void {
    const t = this.time(x);
    const span = (this.to - this.from) * factor;
    const share = x / this.width;
    this.set(t - span * share, t + span * (1 - share));
  }

  pan(dx: number): void {
    const dt = dx / this.scale;
    this.set(this.from + dt, this.to + dt);
  }

  scroll(dy: number, rows: number): void {
    this.top = Math.max(0, Math.min(this.top + dy, rows - this.height));
  }
}
