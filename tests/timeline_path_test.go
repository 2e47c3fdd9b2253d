// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"math"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// steppedJob is a job of four ranks on two hosts that go through eight steps: an AllReduce of each host, and one of
// all. Rank 2 computes longer in steps 3 and 6, so that rank 3 of its host comes late to all of them, too.
func steppedJob(t *testing.T) string {
	t.Helper()
	return jobtest.Make(t, 4, 2, func(rank int, p *shardtest.Process) {
		const ms, epoch = uint64(1_000_000), uint64(shardtest.Epoch)
		world := p.World()
		pair := p.Comm(description.Comm{ID: 2 + uint64(rank/2), Name: fmt.Sprint("host ", rank/2), NRanks: 2,
			Rank: rank % 2, InitTime: epoch})
		thread, event := p.Writer(0), uint64(0)
		phase := func(name string) otf2.RegionRef {
			region := p.Region(name, regions.GroupApplication, otf2.RegionRoleCode)
			p.Shard.Regions[region].Paradigm = otf2.ParadigmUser
			return region
		}
		reduce := func(comm int, call, begin, end uint64) {
			event++
			p.CallFor("ncclAllReduce", event, call, call+ms/100)
			p.Collective(comm, shardtest.Op{Function: "AllReduce", Begin: begin, End: end, Sent: 1 << 20,
				Received: 1 << 20, Count: 1 << 18, Parent: event})
		}
		at := epoch + 10*ms
		for i := range 9 {
			step, forward := phase(fmt.Sprint("step ", i)), phase("forward")
			testkit.Must(t, thread.Enter(otf2.Timestamp(at), nil, step))
			testkit.Must(t, thread.Enter(otf2.Timestamp(at), nil, forward))
			// until this rank calls; until the last one of its host has
			own, hosts := 4*ms+uint64(rank)*ms/10, 4*ms+ms/10*uint64(1+2*(rank/2))
			last := 4*ms + 3*ms/10
			if i == 3 || i == 6 {
				last = 12 * ms
				if rank == 2 {
					own = 12 * ms
				}
				if rank/2 == 1 {
					hosts = 12 * ms
				}
			}
			testkit.Must(t, thread.Leave(otf2.Timestamp(at+own), nil, forward))
			reduce(pair, at+own, at+own+ms/20, at+hosts+ms)
			reduce(world, at+hosts+ms, at+hosts+ms+ms/20, at+last+3*ms)
			testkit.Must(t, thread.Leave(otf2.Timestamp(at+last+3*ms+ms/10), nil, step))
			at += last + 4*ms
		}
	})
}

// The critical path is drawn through the ranks that it is on, in rows and in the picture of all ranks; its tab has the
// report's numbers.
func TestTimelinePath(t *testing.T) {
	t.Parallel()
	anchor := steppedJob(t)
	a := openArchive(t, anchor)
	r := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	tb, url := showPage(t, anchor, desktop)
	testkit.Require(t, !eval[bool](tb, `app.stage.path.on || document.getElementById("show-path").hidden`),
		"the path is drawn before anybody wants it, or cannot be")
	tb.key("v")
	n := eval[int](tb, "app.stage.path.runs.length")
	testkit.Check(t, n >= 10, "the line has %d parts", n)
	testkit.Equal(t, eval[string](
		tb, `document.getElementById("show-path").getAttribute("aria-pressed") + document.getElementById("live").textContent`), "trueThe critical path is drawn", "said")
	// Where rank 2 computes longer the path is on it.
	slow := eval[[]float64](tb, `{
		const p = app.store.head.phases.find((p) => p.name === "step 3");
		app.go(p.from, p.to);
		return [app.state.view.x(p.from + 8e6)];
	}`)
	tb.settle()
	if !eval[bool](tb, fmt.Sprintf(`{
		const row = app.state.rows.of(app.store.head.ranks[2].row), run = app.stage.path.runs.find((r) => r.from < %[1]f && r.to > %[1]f);
		return run && Math.abs(run.y - (row.y - app.state.view.top + row.height / 2)) < 1;
	}`, slow[0])) {
		t.Error("the path is not on rank 2 while that computes")
	}
	at := eval[[]float64](tb, `{
		const box = document.getElementById("base").getBoundingClientRect(), row = app.state.rows.of(app.store.head.ranks[2].row);
		return [box.left, box.top + row.y - app.state.view.top + row.height / 2];
	}`)
	tb.mouse(input.MouseMoved, at[0]+slow[0], at[1], nil)
	tb.await(
		`!document.getElementById("tip").hidden && document.querySelector("#tip b").innerText === "Critical path: application" && document.querySelector("#tip .sub").innerText === "Rank 2"`)
	tb.key("g")
	if !eval[bool](
		tb, fmt.Sprintf(
			`{ const run = app.stage.path.runs.find((r) => r.from < %[1]f && r.to > %[1]f); return run && Math.floor(run.y / app.ranks.rows.height) === 2; }`, slow[0])) {
		t.Error("the path is not on rank 2 in the picture of all ranks")
	}
	tb.key("g")
	tb.key("0")
	tb.do(chromedp.Click("#tab-path", chromedp.ByQuery))
	tb.await("app.panel.path.shown && app.panel.path.shown.all === app.store.head.duration - " + fmt.Sprint(r.CriticalPath.After))
	for _, row := range r.CriticalPath.Activities {
		got := eval[float64](
			tb, fmt.Sprintf(
				`app.store.head.path.what.reduce((n, w, i) => n + (w.activity === %q ? app.panel.path.shown.what[i] : 0), 0)`,
				row.Activity))
		testkit.Equal(t, got, float64(row.Time), "%s: ns, the report has %d", row.Activity, row.Time)
	}
	tb.await(`location.hash.includes("path=1")`)
	again := openTab(t, url+eval[string](tb, "location.hash"), browser.Options{Width: 390, Height: 800, Dark: true})
	again.await("app.stage.path.on && app.stage.path.runs.length > 2")
	again.noErrors()
	tb.noErrors()
}

// Who caused the waiting follows the zoom: in step 3 rank 3 comes last to all, and rank 2 causes it.
func TestTimelineCausesOfWaiting(t *testing.T) {
	t.Parallel()
	tb, _ := showPage(t, steppedJob(t), desktop)
	tb.do(chromedp.Click("#tab-waits", chromedp.ByQuery))
	back := func(step string) (by []float64) {
		t.Helper()
		from := eval[float64](
			tb, fmt.Sprintf(
				`{ const p = app.store.head.phases.find((p) => p.name === %q); app.go(p.from, p.to); return p.from; }`,
				step))
		tb.await(fmt.Sprintf("app.panel.waits.shown.from === %f", from))
		return eval[[]float64](tb, "[...app.panel.waits.shown.back]")
	}
	late, usual := back("step 3"), back("step 4")
	testkit.Check(t, len(late) == 4 && late[2] >= 16e6 && late[0]+late[1]+late[3] <= late[2]/10 &&
		math.Abs(usual[2]) <= late[2]/10, "the ranks caused %v in step 3, %v in step 4", late, usual)
	tb.key("0")
	tb.await(`app.panel.waits.shown.back[2] === app.store.head.ranks[2].back && app.panel.waits.shown.back[2] > 0`)
	tb.noErrors()
}

// Phases are a ruler, and one is compared with another.
func TestTimelineSteps(t *testing.T) {
	t.Parallel()
	tb, _ := showPage(t, steppedJob(t), desktop)
	at := eval[[]float64](tb, `{
		const p = app.store.head.phases.find((p) => p.name === "step 3"), box = document.getElementById("phases").getBoundingClientRect();
		return [box.left + app.state.view.x((p.from + p.to) / 2), box.top + 8, box.left - document.getElementById("base").getBoundingClientRect().left];
	}`)
	testkit.Check(t, at[2] == 0, "the phases stand %v px beside the picture", at[2])
	tb.do(chromedp.MouseClickXY(at[0], at[1]))
	tb.await(`!document.getElementById("steps").hidden && app.panel.steps.compared?.[0].phase.name === "step 3"`)
	got := eval[[]float64](
		tb, `[app.panel.steps.compared[0].backs.by[2], app.panel.steps.compared[0].waiting.total, app.panel.steps.compared[1].waiting.total]`)
	testkit.Check(t, got[0] >= 16e6 && got[1] >= 2*got[2], "step 3 against a usual one: %v", got)
	eval[any](tb, `{
		const second = document.querySelectorAll("#steps .versus input")[1];
		second.value = "step 6";
		second.dispatchEvent(new Event("change"));
	}`)
	tb.await(`app.panel.steps.compared?.[1].phase.name === "step 6" && document.querySelector("#steps .compared")`)
	if got := eval[string](
		tb, `[...document.querySelectorAll("#steps .compared tr:first-child th")].map((e) => e.innerText).join("|")`); got != "|step 3|step 6|difference" {
		t.Errorf("compared: %s", got)
	}
	wide := eval[int](tb, `{ const e = document.getElementById("steps"); return e.scrollWidth - e.clientWidth; }`)
	testkit.Check(t, wide <= 0, "the tab is %d px too wide", wide)
	tb.noErrors()
}
