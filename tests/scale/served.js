// SPDX-License-Identifier: Apache-2.0
// What is done in the page, and what it is waited for: a part for each measurement, which stands between two lines of "//: NAME". Each is of
// another part of the run, so that nothing has been read before. What all parts use comes first.
const settled = async () => {
	for (let calm = 0; calm < 2; calm += app.store.loading === 0 && app.stage.painted.coarse === 0 ? 1 : -calm) await new Promise((done) => requestAnimationFrame(done));
};
const begins = (at) => Math.round(app.state.view.duration * at);
const part = (at) => app.go(begins(at), begins(at) + app.state.view.duration / 10);
const select = (at) => app.ranges.set({ from: begins(at), to: begins(at) + app.state.view.duration / 10 });
const of = async (at, from) => {
	const begin = begins(at);
	part(at);
	while (Math.abs((from() ?? -1) - begin) > 1) await new Promise((done) => setTimeout(done, 5));
};
//: all ranks in one picture, waiting
app.ranks.toggle(true); await settled()
//: waits and what caused them, of a tenth of the run
document.getElementById("tab-waits").click(); await of(0.1, () => app.panel.waits.shown.from)
//: critical path of a tenth of the run
document.getElementById("tab-path").click(); await of(0.3, () => app.panel.path.shown?.from)
//: matrix of waiting, of a tenth of the run
await app.panel.matrix.show("waiting"); document.getElementById("tab-matrix").click(); await of(0.5, () => app.panel.matrix.shownFrom)
//: matrix of transfers, of a tenth of the run (which has none)
await app.panel.matrix.show("network"); await of(0.7, () => app.panel.matrix.shownFrom)
//: by how much ranks were late, of a thousandth of the run (of 10000 ranks the page says that these are too many)
app.go(0.62 * app.state.view.duration, 0.621 * app.state.view.duration);
app.ranks.show("late", "rank");
for (app.stage.draw(); app.ranks.pending; ) await new Promise((done) => setTimeout(done, 5));
//: rows again, a tenth of the run
app.ranks.show("waiting", "rank"); app.ranks.toggle(false); part(0.7); await settled()
//: statistics of one rank, of a tenth of the run
app.state.focusRow(app.store.head.ranks[3].row); select(0.2); if (!await app.ranges.sum()) throw new Error("it asks")
//: operations of one rank, of a tenth of the run
app.ranges.set(undefined); app.state.focusRow(-1); part(0.4); if (!await app.commands.list("rank:3")) throw new Error("it asks")
//: until it asks: operations of all ranks, of a tenth of the run
part(0.8); if (await app.commands.list("")) throw new Error("it does not ask")
//: the first 20 000 of these, when it is told to read all
await app.commands.list("", true)
//: until it asks: statistics of all ranks, of a tenth of the run
select(0.8); if (await app.ranges.sum()) throw new Error("it does not ask")
//: statistics of all ranks, of a tenth of the run, when it is told to add up all
document.querySelector("#range button").click(); while (!document.querySelector("#range table")) await new Promise((done) => setTimeout(done, 5))
//: a selected part of a collective of all ranks
app.ranges.set(undefined); document.querySelector("#answer .worst td:first-child button").click(); while (!app.state.selected) await new Promise((done) => setTimeout(done, 5)); await settled()
//: a search by name
app.commands.unselect(); app.finder.search("AllReduce rank 3"); await settled()
