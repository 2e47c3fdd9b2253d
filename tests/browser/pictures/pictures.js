// SPDX-License-Identifier: Apache-2.0
const app = window.__timeline;

// The part of the run in which a rank comes late, with that collective selected.
const late = async () => {
	const head = app.store.head;
	const worst = head.ranks.reduce((a, b) => b.worst > a.worst ? b : a);
	if (worst.worst === 0) return;
	app.go(worst.worstAt - 2.4 * worst.worst, worst.worstAt + 0.5 * worst.worst);
	const row = head.rows.findIndex((r, i) => r.kind === "rank" && (r.parent === worst.row || head.rows[r.parent].parent === worst.row));
	const lane = app.store.lanes[head.rows[row].lanes[0]];
	for (let k = 0; k * head.chunk < lane.count; k++) {
		const bars = await app.store.bars(lane, k).promise;
		const i = bars.start.indexOf(worst.worstAt);
		if (i >= 0) await app.selection.select(lane.first + k * head.chunk + i, "stay");
	}
};

// The critical path where a rank comes late, and what it was made of.
const path = async () => {
	await late();
	app.commands.unselect();
	app.stage.path.on || document.getElementById("show-path").click();
	document.getElementById("tab-path").click();
};

// A tab, after something else.
const chart = async (tab, first) => {
	await first?.();
	document.getElementById("tab-" + tab).click();
	await new Promise((done) => setTimeout(done, 500)); // charts follow when it has been calm
};

// All ranks in one picture.
const ranks = async () => {
	app.ranks.toggle(true);
	app.ranks.show("waiting", "rank");
};
