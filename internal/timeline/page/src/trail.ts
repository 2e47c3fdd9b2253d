// SPDX-License-Identifier: Apache-2.0
// The address bar follows what is shown, and going back and forward leads to what was shown before.

import { read, write, type Place } from "./place";

const calm = 250; // ms without a change after which the address is written

// Trail writes places into the address, and asks for those that it is led to.
export class Trail {
  private timer = 0;
  private jumped = false;
  private written = "";

  constructor(
    private readonly now: () => Place,
    private readonly show: (place: Place) => void,
  ) {}

  // begin shows what the address says; false: it says nothing.
  begin(): boolean {
    const place = read(location.hash);
    const said = Object.keys(place).length > 0;
    if (said) this.show(place);
    this.written = write(this.now());
    addEventListener("popstate", () => this.follow());
    return said;
  }

  private follow(): void {
    clearTimeout(this.timer);
    this.jumped = false;
    this.show(read(location.hash));
    this.written = write(this.now());
  }

  // settle takes what is shown for what is shown at first, which needs no address.
  settle(): void {
    this.written = write(this.now());
  }

  // jump tells that something else is about to be shown: what is shown now can be come back to.
  jump(): void {
    this.flush();
    this.jumped = true;
  }

  // changed tells that something else is shown.
  changed(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), calm) as unknown as number;
  }

  // flush writes the address now.
  flush(): void {
    clearTimeout(this.timer);
    const place = write(this.now());
    if (place === this.written || location.protocol === "about:") return; // beside another page it has no address
    this.written = place;
    const at = "#" + place;
    if (this.jumped) history.pushState(null, "", at);
    else history.replaceState(null, "", at);
    this.jumped = false;
  }
}
