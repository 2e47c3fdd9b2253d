// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/emulation"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// driveAnswer: the panel says what the report says, and each sentence leads to what it is of.
func driveAnswer(d *driven) {
	if got := eval[string](
		d.tab, `document.querySelector("#verdict .answer").innerText`); got != d.report.Verdict.Text {
		d.Errorf("the verdict is %q, the report's %q", got, d.report.Verdict.Text)
	}
	if got := eval[int](d.tab, `document.querySelectorAll(".culprit").length`); got != len(d.report.Verdict.Culprits) {
		d.Errorf("%d culprits, the report has %d", got, len(d.report.Verdict.Culprits))
	}
	var text []string
	for _, l := range report.LinesBelowVerdict(d.report) {
		text = append(text, l.Text)
	}
	if got := eval[[]string](
		d.tab, `[...document.querySelectorAll("#answer .said > :nth-child(2n)")].map((e) => e.textContent)`); !slices.Equal(got, text) {
		d.Errorf("the page says %q, the report %q", got, text)
	}
	for i := range eval[int](d.tab, `document.querySelectorAll("#answer .said button").length`) {
		if !eval[bool](d.tab, fmt.Sprintf(`{
			const said = app.store.head.answer.lines.filter((l) => l.to !== undefined || l.search !== undefined)[%[1]d];
			document.querySelectorAll("#answer .said button")[%[1]d].click();
			if (said.to === undefined) return !document.getElementById("operations").hidden && document.getElementById("operations-query").value === said.search;
			return Math.abs(app.state.view.from - (said.from ?? 0)) < 2 + 1e-9 * said.to && Math.abs(app.state.view.to - said.to) < 2 + 1e-9 * said.to;
		}`, i)) {
			d.Errorf("sentence %d does not lead to what it is of", i)
		}
	}
	d.settle()
	d.open("answer")
	worst := d.report.WaitStates.Worst
	testkit.Equal(d, eval[int](d.tab, `document.querySelectorAll("#answer .worst td:first-child button").length`), len(
		worst), "operations cost the most, the report has %d", len(worst))
	if len(worst) > 0 && worst[0].Rank != "" {
		eval[any](d.tab, `document.querySelector("#answer .worst td:first-child button").click()`)
		d.await("app.state.selected")
		d.settle()
		if !eval[bool](
			d.tab, fmt.Sprintf(
				`app.store.peekBar(app.state.selected.bar).start === Number(BigInt("%d") - BigInt(app.store.head.origin))`,
				worst[0].At)) {
			d.Error("what cost the most is not what is selected")
		}
		if !eval[bool](
			d.tab, `{ const item = app.state.rows.of(app.store.laneOf(app.state.selected.bar).row); return item !== undefined && item.y + item.height > app.state.view.top && item.y < app.state.view.top + app.state.view.height; }`) {
			d.Error("what cost the most is not in the picture")
		}
		eval[any](d.tab, "void history.back()")
		d.await("!app.state.selected")
	}
	d.anew()
}

// driveRanks: all ranks are in the picture, in each order, with each number.
func driveRanks(d *driven) {
	if len(d.report.WaitStates.Ranks) == 0 || eval[bool](d.tab, `document.getElementById("show-ranks").hidden`) {
		d.Fatal("there is no picture of all ranks")
	}
	d.key("g")
	defer d.anew()
	ranks := len(d.report.WaitStates.Ranks)
	of := map[string]func(r int) float64{
		"waiting": func(r int) float64 { return float64(d.report.WaitStates.Ranks[r].Waited) },
		"caused":  func(r int) float64 { return float64(d.report.WaitStates.Ranks[r].Caused) },
		"back":    func(r int) float64 { return eval[float64](d.tab, fmt.Sprintf("app.store.head.ranks[%d].back", r)) },
	}
	d.showPart()
	for _, measure := range eval[[]string](d.tab,
		`[...document.querySelector("#rank-bar select").options].map((o) => o.value)`) {
		for _, order := range []string{"rank", "host", "waiting", "caused", "back", "role", "likeness"} {
			eval[any](d.tab, fmt.Sprintf("app.ranks.show(%q, %q)", measure, order))
			got := eval[[]int](d.tab, "[...app.ranks.rows.order]")
			if all := slices.Sorted(slices.Values(got)); len(all) != ranks || all[0] != 0 || all[ranks-1] != ranks-1 ||
				len(slices.Compact(all)) != ranks {
				d.Errorf("%s by %s: %d ranks, there are %d", measure, order, len(got), ranks)
				continue
			}
			if value := of[order]; value != nil && value(got[0]) < value(got[ranks-1]) {
				d.Errorf("by %s first comes rank %d with %v, last %d with %v", order, got[0], value(got[0]),
					got[ranks-1], value(got[ranks-1]))
			}
		}
		d.await("!app.ranks.pending")
	}
	if got := eval[[]float64](
		d.tab, `[app.ranks.rows.lines * app.ranks.rows.height - app.state.view.height, app.ranks.rows.height, new Set(Array.from({ length: app.ranks.rows.lines }, (_, i) => app.ranks.rows.of(i)).flat()).size]`); got[0] > 0.5 || got[1] < 2 || int(got[2]) != ranks {
		d.Errorf("lines stick out by %v px, are %v px high, and have %v of %d ranks", got[0], got[1], got[2], ranks)
	}
	// The cells of the whole run add up to what the ranks waited, start-up among it.
	d.key("0")
	eval[any](d.tab, `app.ranks.show("waiting", "rank")`)
	d.settle()
	for _, r := range someRanks(ranks) {
		d.same(fmt.Sprintf("rank %d waited", r),
			eval[float64](d.tab, fmt.Sprintf(`app.ranks.heat.exact(%d, "waiting", 0, app.store.head.duration + 1)`, r)),
			d.waited[r])
	}
	if n := eval[int](d.tab, "app.ranks.pixels"); (n > 0) != (d.report.WaitStates.Total.Waited+d.report.WaitStates.StartUp.Waited > 0) {
		d.Errorf("%d cells have waiting", n)
	}
	// Lines of several ranks lead to fewer, and those to a rank's rows.
	if !eval[bool](d.tab, `{
		const base = document.getElementById("base").getBoundingClientRect();
		for (let i = 0; i < 12 && app.ranks.on; i++) {
			const rank = app.ranks.click(app.ranks.rows.height / 2);
			app.stage.draw();
			if (rank !== undefined) return rank === app.ranks.rows.of(0)[0];
		}
		return base.width < 0;
	}`) {
		d.Error("no line leads to a rank")
	}
}

// someRanks are the first, the last, one that is late in generated runs, and one of a great number.
func someRanks(ranks int) []int {
	all := []int{0, ranks/2 + 3, 3000, ranks - 1}
	return slices.Compact(slices.DeleteFunc(all, func(r int) bool { return r < 0 || r >= ranks }))
}

// driveWaits: of the run and of a part of it they are the report's, by rank, and by operation and communicator.
func driveWaits(d *driven) {
	d.open("waits")
	d.key("0")
	for _, c := range []struct {
		what string
		from uint64
		r    *operations.Report
	}{{"the run", 0, d.report}, {"a part", d.part[0], d.within}} {
		if c.from > 0 {
			d.showPart()
		}
		total := c.r.WaitStates.Total.Waited
		d.await(fmt.Sprintf("app.panel.waits.shown.from === %s && app.panel.waits.shown.total === %d",
			map[bool]string{true: fmt.Sprint(c.from), false: "app.store.head.begin"}[c.from > 0], total))
		got := eval[[][2]float64](
			d.tab, "app.store.head.ranks.map((_, r) => [app.panel.waits.shown.waited[r], app.panel.waits.shown.caused[r]])")
		for i, r := range c.r.WaitStates.Ranks {
			if got[i] != [2]float64{float64(r.Waited), float64(r.Caused)} {
				d.Fatalf("%s: %s has %v, the report %d and %d", c.what, r.Name, got[i], r.Waited, r.Caused)
			}
		}
		want := make(map[string]float64)
		for _, p := range c.r.WaitStates.Pairs {
			if p.Waited > 0 {
				want[p.Name+" on "+p.Communicator] += float64(p.Waited)
			}
		}
		in := make(map[string]float64)
		for _, w := range eval[[]struct {
			Name   string
			Comm   string
			Waited float64
		}](d.tab,
			`app.panel.waits.shown.of.map((o) => ({ Name: o.name, Comm: app.store.head.comms[o.comm]?.name ?? "", Waited: o.waited }))`) {
			in[w.Name+" on "+w.Comm] += w.Waited
		}
		const most = 64 // that the page has of the whole run
		for name, ns := range in {
			d.same(c.what+": "+name, ns, want[name])
		}
		if len(in) != len(want) && len(in) != most {
			d.Errorf("%s: %d operations, the report has %d", c.what, len(in), len(want))
		}
		text := d.text("waits")
		if total > 0 && !strings.Contains(text, "BY OPERATION AND COMMUNICATOR") || total == 0 &&
			!strings.Contains(text, "waits in operations") && !strings.Contains(text, "No rank waited") &&
			!strings.Contains(text, "Nothing could be compared") {
			d.Errorf("%s: the tab says %q", c.what, text)
		}
	}
	if by := eval[[]float64](
		d.tab, `app.panel.waits.shown.kinds.map((by) => by.reduce((n, ns) => n + ns, 0)).concat(app.panel.waits.shown.back.reduce((n, ns) => n + ns, 0))`); len(by) == 3 {
		d.same("waiting caused in a part, by kinds", by[0]+by[1], by[2])
	}
	d.anew()
}

// driveMatrix: of the run it is the report's, for each kind and measure, of ranks, hosts and places alike; of a part it
// follows.
func driveMatrix(d *driven) {
	d.open("matrix")
	d.key("0")
	m := matrix.Read(d.archive, nil)
	var bytes, nominal float64
	for _, f := range m.Ranks {
		bytes += float64(f.Bytes)
	}
	for _, f := range m.Nominal {
		nominal += float64(f.Bytes)
	}
	sum := func(kind, measure, of string) float64 {
		return eval[float64](d.tab, fmt.Sprintf(
			`{ await app.panel.matrix.show(%q, %q); return app.panel.matrix.total.%s; }`, kind, measure, of))
	}
	for _, group := range []string{"hosts", "places", "ranks"} {
		eval[any](d.tab, fmt.Sprintf("app.panel.matrix.group(%q)", group))
		d.same(group+": bytes of transfers", sum("network", "bytes", "bytes"), bytes)
		d.same(group+": bytes of operations", sum("operations", "bytes", "bytes"), nominal)
		d.same(group+": waited", sum("waiting", "waited", "time"), float64(d.report.WaitStates.Total.Waited))
	}
	for _, c := range [][2]string{{"network", "count"}, {"network", "bandwidth"}, {"network", "under"},
		{"operations", "operations"}, {"waiting", "waits"}} {
		if got := sum(c[0], c[1], "count"); got == 0 &&
			(c[0] == "network" && bytes > 0 || c[0] == "operations" && nominal > 0 || c[0] == "waiting" &&
				d.report.WaitStates.Total.Waited > 0) {
			d.Errorf("%s, %s: there is nothing", c[0], c[1])
		}
	}
	if ranks := len(d.report.WaitStates.Ranks); ranks > 10 {
		eval[any](d.tab, `document.querySelector("#matrix canvas").click()`)
		if got := eval[int](d.tab, "app.panel.matrix.shown.count"); got >= ranks {
			d.Errorf("a click shows %d of %d ranks", got, ranks)
		}
		eval[any](d.tab, `app.panel.matrix.group("ranks")`)
	}
	d.showPart()
	d.await(fmt.Sprintf("app.panel.matrix.shownFrom === %d && app.panel.matrix.total.time === %d", d.part[0],
		d.within.WaitStates.Total.Waited))
	if got := sum("network", "bytes", "bytes"); got > bytes {
		d.Errorf("%v bytes in a part, %v in all", got, bytes)
	}
	d.anew()
}

// drivePath: it is the report's, of a part it has all of its time, and it is drawn through rows and through all ranks.
func drivePath(d *driven) {
	p := d.report.CriticalPath
	if p == nil || p.NotKnown != "" {
		if !eval[bool](d.tab, `document.getElementById("tab-path").hidden`) {
			d.Error("there is a path that the report does not know")
		}
		return
	}
	d.open("path")
	d.key("0")
	d.await(fmt.Sprintf(
		"app.panel.path.shown && app.panel.path.shown.from <= app.store.head.begin && app.panel.path.shown.all === app.store.head.duration - "+
			"%d", p.After))
	for _, row := range p.Activities {
		d.same(row.Activity, eval[float64](d.tab,
			fmt.Sprintf(
				`app.store.head.path.what.reduce((n, w, i) => n + (w.activity === %q ? app.panel.path.shown.what[i] : 0), 0)`,
				row.Activity)), float64(row.Time))
	}
	d.key("v")
	if n := eval[int](d.tab, "app.stage.path.runs.length"); n == 0 {
		d.Error("the path is not drawn")
	}
	d.showPart()
	d.await(fmt.Sprintf("app.panel.path.shown.from === %d", d.part[0]))
	steady := eval[[2]uint64](d.tab, "[app.store.head.answer.from, app.store.head.answer.to]")
	if p.Unknown == 0 && steady[0] <= d.part[0] && d.part[1] <= steady[1] {
		d.same("of a part", eval[float64](d.tab, "app.panel.path.shown.all"), float64(d.part[1]-d.part[0]))
	}
	d.key("g")
	if n := eval[int](d.tab, "app.stage.path.runs.length"); n == 0 {
		d.Error("the path is not drawn through all ranks")
	}
	d.key("v")
	d.anew()
}

// driveRange: a range that is selected has all regions of the chosen row, also of one of many ranks.
func driveRange(d *driven) {
	ranks := len(d.report.WaitStates.Ranks)
	all := d.regionsOf(someRanks(ranks))
	for _, r := range someRanks(ranks) {
		if eval[int](d.tab, fmt.Sprintf("app.store.head.ranks[%d].row", r)) < 0 {
			continue
		}
		eval[any](d.tab, fmt.Sprintf("(app.state.focusRow(app.store.head.ranks[%d].row), app.ranges.set({ from: %d, to: %d }))",
			r, d.part[0], d.part[1]))
		got := eval[[]float64](
			d.tab, "{ const s = await app.ranges.sum(); return [s.count, [...s.regions.values()].reduce((n, r) => n + "+
				"r.time, 0)]; }")
		d.same(fmt.Sprintf("regions of rank %d", r), got[0], all[r][0])
		d.same(fmt.Sprintf("time in regions of rank %d", r), got[1], all[r][1])
		if text := d.text("range"); all[r][0] > 0 && !strings.Contains(text, "BY REGION") {
			d.Errorf("rank %d: the tab says %q", r, text)
		}
		// Without a range it is of what is shown, if that is not too much; of one row it never is.
		eval[any](d.tab, fmt.Sprintf("(app.ranges.set(undefined), app.go(%d, %d))", d.part[0], d.part[1]))
		d.await(fmt.Sprintf(
			`document.querySelector("#range h2")?.innerText.endsWith("shown") && document.querySelector("#range dd")?.innerText === %q`, grouped(int(all[r][0]))))
	}
	eval[any](d.tab, "(app.state.focusRow(-1), app.ranges.set(undefined))")
	d.showPart()
	d.await(`document.querySelector("#range h2")?.innerText.endsWith("shown") || document.querySelector("#range button")`)
	d.anew()
}

// grouped is a number as the page writes it.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "\u202f" + text[at:]
	}
	return text
}

// driveOperations: what begins in a part is there, with what was waited in it; words choose, columns sort, a line leads
// to the picture, all can be copied.
func driveOperations(d *driven) {
	d.open("operations")
	d.showPart()
	list := func(filter string) (n, waited float64) {
		got := eval[[]float64](d.tab, fmt.Sprintf(`{
			const all = (await app.commands.list(%q, %t)).all.filter((o) => app.store.head.rows[o.row].kind === "rank"), waits = new Map(all.map((o) => [o.bar, o.startUp ? 0 : o.wait]));
			return [all.length, [...waits.values()].reduce((n, ns) => n + ns, 0)];
		}`, filter, filter == ""))
		return got[0], got[1]
	}
	// Of many rows it asks first, but not if ranks are chosen.
	many := eval[int](d.tab, `app.store.head.rows.filter((r) => r.operations.count > 0).length`) > 2048
	if asks := eval[bool](
		d.tab, `(await app.commands.list("")) === undefined && document.querySelector("#operations [role=status] button") !== null`); asks != many {
		d.Errorf("more than 2048 rows: %t; it asks: %t", many, asks)
	}
	parts, waitedIn, ofRank := d.operationsIn()
	n, waited := list("")
	const kept = 20_000
	testkit.Equal(d, n, min(kept, parts), "operations begin in the part, the archive has %v", parts)
	if n < kept {
		d.same("waited in the table", waited, waitedIn)
	}
	for _, r := range someRanks(len(ofRank)) {
		if n, _ := list(fmt.Sprintf("rank:%d", r)); n != ofRank[r] {
			d.Errorf("rank:%d lists %v operations, the archive has %v", r, n, ofRank[r])
		}
	}
	if n == 0 {
		d.anew()
		return
	}
	for _, column := range []string{"begin", "number", "rank", "size", "algorithm", "time", "wait"} {
		eval[any](d.tab, fmt.Sprintf(`document.querySelector('#operations button[title="Sort by %s"]').click()`,
			column))
		d.settle()
	}
	d.await(`document.querySelector("#operations tr[data-bar] button")`)
	lines := strings.Count(eval[string](d.tab, "app.panel.operations.csv()"), "\n")
	if want := eval[int](d.tab, fmt.Sprintf(`(await app.commands.list("rank:%d")).all.length + 1`,
		len(ofRank)-1)); lines != want {
		d.Errorf("%d lines are copied, want %d", lines, want)
	}
	bar := eval[int](
		d.tab, `{ const row = document.querySelector("#operations tr[data-bar]"); row.querySelector("button").click(); return Number(row.dataset.bar); }`)
	d.await(fmt.Sprintf("app.state.selected?.bar === %d", bar))
	d.settle()
	list("")
	d.anew()
}

// driveSteps: the application's phases are there, and one is compared with another.
func driveSteps(d *driven) {
	phases := eval[int](d.tab, "(app.store.head.phases ?? []).length")
	if len(d.report.Phases) == 0 {
		if phases > 0 || !eval[bool](d.tab, `document.getElementById("tab-steps").hidden`) {
			d.Errorf("%d phases, the report has none", phases)
		}
		return
	}
	d.open("steps")
	d.await(`app.panel.steps.compared && document.querySelector("#steps .compared")`)
	got := eval[[][]float64](
		d.tab, `app.panel.steps.compared.map((s) => [s.phase.to - s.phase.from, s.phase.time, s.waiting.total, s.path ? s.path.all : -1, s.regions ? 1 : 0])`)
	if got[0][1] < got[1][1] {
		d.Errorf("the longest phase took %v, another one %v", got[0][1], got[1][1])
	}
	var all float64
	for _, p := range d.report.Phases {
		all += p.Time.Avg * float64(p.Count)
	}
	sum := eval[float64](d.tab, "app.store.head.phases.reduce((n, p) => n + p.time, 0)")
	if sum < 0.999999*all || sum > 1.000001*all {
		d.Errorf("phases of %v ns, the report has %v", sum, all)
	}
	if got[0][4] == 0 {
		testkit.Contains(d, d.text("versus"), "not added up")
		eval[any](d.tab, `document.querySelector("#versus button").click()`)
		d.await("app.panel.steps.compared[0].regions")
	}
	// All of a phase's operations are there: as many as the steps of a generated run have.
	if d.generated && !eval[bool](d.tab, fmt.Sprintf(
		`app.panel.steps.compared.every((s) => [...s.regions.entries()].every(([r, sum]) => app.store.head.regions[r].name !== "AllReduce" || sum.count >= 5 * %d))`, len(d.report.WaitStates.Ranks))) {
		d.Error("operations of phases are missing")
	}
	d.anew()
}

// driveWidths: on each width nothing sticks out of any tab, in light and dark colors.
func driveWidths(d *driven) {
	defer func() {
		d.do(emulation.SetDeviceMetricsOverride(desktop.Width, desktop.Height, 1, false))
		d.settle()
	}()
	for _, width := range []int64{1440, 1024, 390} {
		d.do(emulation.SetDeviceMetricsOverride(width, 800, 1, false))
		d.key("l")
		if eval[bool](d.tab, `document.body.classList.contains("no-panel")`) {
			eval[any](d.tab, `document.getElementById("panel-toggle").click()`)
		}
		if verdict := eval[[]string](
			d.tab, `[...document.querySelectorAll("#verdict *")].filter((e) => { const at = e.getBoundingClientRect(); return at.left < 0 || at.right > innerWidth || e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0; }).map((e) => e.textContent)`); len(verdict) > 0 {
			d.Errorf("%d wide: of the verdict these stick out: %q", width, verdict)
		}
		if wide := eval[int](d.tab, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
			d.Errorf("%d wide: the page sticks out by %d px", width, wide)
		}
		for _, name := range eval[[]string](d.tab,
			`[...document.querySelectorAll("#tabs button:not([hidden])")].map((e) => e.id.replace("tab-", ""))`) {
			d.open(name)
			d.await(fmt.Sprintf(
				`document.getElementById(%q).innerText.trim() !== "" && !document.getElementById(%q).innerText.includes("Reading…")`, name, name))
			wide := eval[[]string](d.tab, fmt.Sprintf(`[...document.querySelectorAll("#%s *")].filter((e) => {
				const at = e.getBoundingClientRect(), panel = document.getElementById("panel").getBoundingClientRect();
				return at.width > 1 && !e.closest(".wide") && (at.left < panel.left - 0.5 || at.right > panel.right + 0.5) && getComputedStyle(e).visibility !== "hidden";
			}).map((e) => e.tagName + ": " + e.textContent.slice(0, 60))`, name))
			if len(wide) > 0 {
				d.Errorf("%d wide, %s: these stick out: %q", width, name, wide)
			}
		}
	}
}

// regionsOf counts the regions of ranks that touch the part, and adds up their time in it, from the archive's events:
// by rank.
func (d *driven) regionsOf(ranks []int) map[int][2]float64 {
	d.Helper()
	all := make(map[int][2]float64)
	for _, r := range ranks {
		var sums [2]float64
		for _, l := range eval[[]string](d.tab, fmt.Sprintf(`{
			const { rows, ranks } = app.store.head, inside = (row) => row >= 0 && (row === ranks[%d].row || inside(rows[row].parent));
			return rows.filter((row, i) => row.location && row.kind !== "channel" && row.kind !== "event" && inside(i)).map((row) => row.location);
		}`, r)) {
			ref := testkit.Value(strconv.ParseUint(l, 10, 64))(d)
			var open []uint64
			for ev, err := range d.archive.EventsOf(otf2.LocationRef(ref)) {
				testkit.Must(d, err)
				at := uint64(ev.Time) - d.archive.Defs.Clock.Offset
				switch ev.Kind {
				case otf2.EventEnter:
					open = append(open, at)
				case otf2.EventLeave:
					begin := open[len(open)-1]
					open = open[:len(open)-1]
					if begin <= d.part[1] && at >= d.part[0] {
						sums[0]++
						sums[1] += float64(min(at, d.part[1]) - max(begin, d.part[0]))
					}
				}
			}
		}
		all[r] = sums
	}
	return all
}

// operationsIn counts the operations of NCCL that begin in the part, in all and by rank, and adds up the waits in them,
// from the archive's events.
func (d *driven) operationsIn() (n, waited float64, ofRank []float64) {
	d.Helper()
	rankOf := make(map[string]int)
	for _, one := range eval[[]struct {
		Location string
		Rank     int
	}](d.tab, `{
		const { rows, ranks } = app.store.head, processes = new Map(ranks.map((r, i) => [r.row, i]));
		const rank = (row) => row < 0 ? -1 : processes.get(row) ?? rank(rows[row].parent);
		return rows.flatMap((row, i) => row.operations.count > 0 ? [{ Location: row.location, Rank: rank(i) }] : []);
	}`) {
		rankOf[one.Location] = one.Rank
	}
	ofRank = make([]float64, len(d.report.WaitStates.Ranks))
	inside := func(t otf2.Timestamp) bool {
		at := uint64(t) - d.archive.Defs.Clock.Offset
		return d.part[0] <= at && at < d.part[1]
	}
	for _, w := range d.waits {
		if !w.startUp && !w.mpi && inside(w.begin) {
			waited += w.ns
		}
	}
	_, err := operations.EachPart(d.archive, nil, analysis.Slice{}, func(p *operations.Part) error {
		if !inside(p.Begin) || p.Source == "call" {
			return nil
		}
		n++
		if r, known := rankOf[fmt.Sprint(uint64(p.Location))]; known && r >= 0 {
			ofRank[r]++
		}
		return nil
	})
	testkit.Must(d, err)
	return n, waited, ofRank
}
