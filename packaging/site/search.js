// SPDX-License-Identifier: Apache-2.0
// The search: sections (index.js) that have all words, those first that have them in their title.
"use strict";

function find(sections, words, most) {
  const asked = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (asked.length === 0) return [];
  const hits = [];
  for (const s of sections) {
    const title = s.t.toLowerCase(), text = s.x.toLowerCase();
    let score = 0;
    for (const word of asked) {
      if (title.includes(word)) score += 10;
      else if (text.includes(word)) score += 1;
      else { score = -1; break; }
    }
    if (score > 0) hits.push({ section: s, score });
  }
  hits.sort((a, b) => b.score - a.score || a.section.t.length - b.section.t.length);
  return hits.slice(0, most).map((h) => h.section);
}

// Some words around the first that was asked for.
function excerpt(text, words) {
  const word = words.toLowerCase().split(/\s+/).filter(Boolean).find((w) => text.toLowerCase().includes(w));
  const at = word ? text.toLowerCase().indexOf(word) : 0;
  const begin = Math.max(0, text.lastIndexOf(" ", Math.max(0, at - 60)));
  return (begin > 0 ? "… " : "") + text.slice(begin, begin + 180).trim() + (begin + 180 < text.length ? " …" : "");
}

if (typeof document !== "undefined") {
  const input = document.getElementById("search"), list = document.getElementById("found");
  const show = () => {
    const found = find(sections, input.value, 30);
    list.replaceChildren(...found.map((s) => {
      const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("p");
      link.href = input.dataset.top + s.p;
      link.textContent = s.t;
      text.textContent = excerpt(s.x, input.value);
      item.append(link, text);
      return item;
    }));
    list.hidden = found.length === 0;
  };
  input.addEventListener("input", show);
  input.addEventListener("keydown", (e) => {
    if (e.key === "Escape") { input.value = ""; show(); input.blur(); }
    if (e.key === "Enter") list.querySelector("a")?.click();
  });
  list.addEventListener("click", (e) => { if (e.target.closest("a")) { input.value = ""; setTimeout(show); } });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && document.activeElement !== input) { e.preventDefault(); input.focus(); }
  });
}
