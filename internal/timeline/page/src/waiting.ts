// SPDX-License-Identifier: Apache-2.0
// The page served until the timeline has been read: it shows the progress.

import { byId } from "./dom";
import { count } from "./format";

// News is the tool's message; ../../news.go has the same fields.
interface News {
  version: number;
  title: string;
  what: string;
  done: number;
  total: number;
  ready: boolean;
  failed: string;
}

function fail(text: string): void {
  const said = byId("said");
  said.textContent = text;
  said.className = "alarm";
  byId("share").hidden = true;
  byId("then").hidden = true;
}

async function follow(): Promise<void> {
  for (let version = -1; ; ) {
    const answer = await fetch("progress/" + version);
    if (!answer.ok) throw new Error(answer.statusText);
    const news = (await answer.json()) as News;
    version = news.version;
    document.title = `${news.title} – timeline`;
    byId("title").textContent = news.title;
    if (news.failed) return fail(`This timeline cannot be shown: ${news.failed}`);
    if (news.ready) return location.reload();
    if (!news.what) continue;
    const known = news.total > 0;
    byId("said").textContent = news.what + (known ? `: ${count(news.done)} of ${count(news.total)}` : "…");
    const share = byId<HTMLProgressElement>("share");
    if (known) share.value = news.done / news.total;
    else share.removeAttribute("value");
  }
}

follow().catch(() => fail("The tool no longer answers: its terminal says why."));
