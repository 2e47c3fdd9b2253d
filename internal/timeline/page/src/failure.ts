// SPDX-License-Identifier: Apache-2.0
// The message of a page that cannot be shown.

declare global {
  interface Window {
    __failure?: string; // read by tests
  }
}

export function fail(e: unknown): void {
  const text = e instanceof Error ? e.message : String(e);
  window.__failure = text;
  document.getElementById("busy")!.textContent = "";
  const said = document.createElement("p");
  said.className = "fail";
  said.setAttribute("role", "alert");
  said.textContent = "This timeline cannot be shown: " + text;
  document.getElementById("middle")!.replaceChildren(said);
}
