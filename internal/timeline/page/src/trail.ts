// SPDX-License-Identifier: Apache-2.0
// The address follows the visible state, and the browser's back and forward buttons restore earlier ones.

import { read, write, type Place } from "./place";

const calm = 250; // ms without a change after which the address is written

// Trail writes places into the address and shows the places that it reads from there.
export class Trail {
  private timer = 0;
  private jumped = false;
  private written = "";

  constructor(private readonly now: () => Place, private readonly show: (place: Place) => void) {}

  // begin shows the place in the address; false: it has none.
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

  // settle makes the present state the initial one, which needs no address.
  settle(): void {
    this.written = write(this.now());
  }

  // jump announces a jump: the browser's back button can return to the present state.
  jump(): void {
    this.flush();
    this.jumped = true;
  }

  // changed notes a change of the state.
  changed(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), calm) as unknown as number;
  }

  // flush writes the address immediately.
  flush(): void {
    clearTimeout(this.timer);
    const place = write(this.now());
    if (place === this.written || location.protocol === "about:") return; // in a frame it has no address
    this.written = place;
    const at = "#" + place;
    if (this.jumped) history.pushState(null, "", at);
    else history.replaceState(null, "", at);
    this.jumped = false;
  }
}
