// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// lateJob is a job of four ranks on two hosts with a long start-up, in which rank 2 comes 5 ms late to the 3rd and the
// 6th of nine AllReduces, the others of which are 1 MiB by RING; these are 4 MiB by TREE.
func lateJob(t *testing.T) string {
	return jobtest.Make(t, 4, 2, func(rank int, p *shardtest.Process) {
		world, at := p.World(), uint64(shardtest.Epoch+10_000_000)
		for i := range 9 {
			late, length, size, algorithm := uint64(0), uint64(100_000), uint64(1<<20), "RING"
			switch i {
			case 0: // start-up
				length = 900_000_000
			case 3, 6:
				size, algorithm = 4<<20, "TREE"
				if rank == 2 {
					late = 5_000_000
				}
			}
			end := at + 5_000_000 + length
			p.Collective(world, shardtest.Op{Function: "AllReduce", Begin: at + late, End: end, Sent: size,
				Received: size, Count: size / 4, Algo: algorithm})
			at = end + 1_000_000
		}
	})
}

// The page opens on the part without start-up, beside what the report says; each of its sentences leads to its place,
// and back leads to what was shown before.
func TestTimelineAnswer(t *testing.T) {
	t.Parallel()
	anchor := lateJob(t)
	a := openArchive(t, anchor)
	r := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	url, _ := writePage(t, anchor)
	for _, o := range []browser.Options{{Width: 1440, Height: 900}, {Width: 1024, Height: 768, Dark: true},
		{Width: 390, Height: 800}} {
		tb := openTab(t, url, o)
		if o.Width < 900 {
			tb.do(chromedp.Click("#panel-toggle", chromedp.ByQuery))
		}
		var text []string
		for _, l := range report.LinesBelowVerdict(r) {
			text = append(text, l.Text)
		}
		if got := eval[[]string](
			tb, `[...document.querySelectorAll("#answer .said > :nth-child(2n)")].map((e) => e.innerText)`); strings.Join(got, "\n") != strings.Join(text, "\n") {
			t.Errorf("%d wide: the page says %q, the report %q", o.Width, got, text)
		}
		if !eval[bool](tb, `{ const { from, to } = app.store.head.answer; return to - from === `+fmt.Sprint(
			r.CriticalPath.Steady)+` && app.state.view.from < from && app.state.view.to > to && app.state.view.to - app.state.view.from < 1.1 * (to - from); }`) {
			t.Errorf("%d wide: the page does not open on the steady part", o.Width)
		}
		if wide := eval[[]string](tb, `[...document.querySelectorAll("#answer *, #tabs button:not([hidden])")].filter((e) => {
			const at = e.getBoundingClientRect(), panel = document.getElementById("panel").getBoundingClientRect();
			return at.width > 1 && (at.left < panel.left || at.right > panel.right + 0.5);
		}).map((e) => e.textContent)`); len(wide) > 0 {
			t.Errorf("%d wide: these stick out: %q", o.Width, wide)
		}
		tb.noErrors()
	}

	tb := openTab(t, url, browser.Options{})
	testkit.Equal(t, eval[string](tb, "location.hash"), "", "the address of what is shown at first")
	first := eval[[]float64](tb, "[app.state.view.from, app.state.view.to]")
	got := eval[[]string](
		tb, `[...document.querySelectorAll("#answer .worst td:first-child button")].map((e) => e.innerText)`)
	testkit.Require(t, len(got) == len(r.WaitStates.Worst) && strings.HasPrefix(got[0], "AllReduce "),
		"what cost the most: %q, the report has %d", got, len(r.WaitStates.Worst))
	tb.do(chromedp.Click("#answer .worst td:first-child button", chromedp.ByQuery))
	tb.await("app.state.selected")
	tb.settle()
	worst := r.WaitStates.Worst[0]
	if !eval[bool](tb, fmt.Sprintf(`{
		const at = Number(BigInt("%d") - BigInt(app.store.head.origin)), bar = app.store.peekBar(app.state.selected.bar);
		return bar.start === at && app.state.view.from < at && at < app.state.view.to && app.state.view.to - app.state.view.from < 3 * %d;
	}`, worst.At, worst.Skew)) {
		t.Error("the operation that cost the most is not what is shown and selected")
	}
	tb.await(`location.hash.includes("bar=")`)
	hash := eval[string](tb, "location.hash")
	eval[any](tb, "void history.back()")
	tb.await(fmt.Sprintf("Math.abs(app.state.view.from - %f) < 2 && !app.state.selected", first[0]))
	eval[any](tb, "void history.forward()")
	tb.await("app.state.selected")
	tb.settle()

	again := openTab(t, url+hash, browser.Options{})
	again.await("app.state.selected")
	again.settle()
	for _, what := range []string{"app.state.selected.bar", "app.state.focus", "Math.round(app.state.view.from)",
		"Math.round(app.state.view.to)", `document.querySelector("#tabs [aria-selected=true]").id`} {
		was, is := eval[any](tb, what), eval[any](again, what)
		testkit.Check(t, was == is, "%s is %v, and %v where the address is opened", what, was, is)
	}
	tb.noErrors()
	again.noErrors()
}

// The table of operations follows what is shown and selected; words and conditions choose from it, and all that is
// chosen can be copied.
func TestTimelineOperations(t *testing.T) {
	t.Parallel()
	tb, _ := showPage(t, lateJob(t), desktop)
	count := func(filter string) int {
		return eval[int](tb, fmt.Sprintf("(await app.commands.list(%q)).all.length", filter))
	}
	for filter, want := range map[string]int{
		"": 32, "allreduce": 32, "broadcast": 0, ">1MiB": 8, "<=1M": 24, "rank:3": 8, "rank:0-1,3 >2m": 6,
		"algo:tree": 8, "wait>4ms": 6, "algo:ring wait>4ms": 0, "number:6 rank:2": 1, "time<200us": 2,
	} {
		got := count(filter)
		testkit.Check(t, got == want, "%q lists %d operations, want %d", filter, got, want)
	}
	count("wait>4ms")
	tb.await(`document.querySelectorAll("#operations tr[data-bar]").length === 6`)
	wide := eval[int](
		tb, `{ const e = document.querySelector("#operations .wide"); return e.scrollWidth - e.clientWidth; }`)
	testkit.Check(t, wide <= 0, "the table is %d px too wide", wide)
	rank := func() string {
		return eval[string](tb, `document.querySelector("#operations tr[data-bar] td:nth-child(3)").innerText`)
	}
	tb.do(chromedp.Click(`#operations button[title="Sort by rank"]`, chromedp.ByQuery))
	tb.await(`document.querySelector("#operations th[aria-sort=ascending]").innerText.startsWith("rank")`)
	testkit.Equal(t, rank(), "0", "the first by rank is of")
	tb.do(chromedp.Click(`#operations button[title="Sort by rank"]`, chromedp.ByQuery))
	tb.await(`document.querySelector("#operations th[aria-sort=descending]")`)
	testkit.Equal(t, rank(), "3", "the last by rank is of")
	tb.do(chromedp.Click(`#operations tr[data-bar] button`, chromedp.ByQuery))
	tb.await("app.state.selected")
	tb.settle()
	tb.do(chromedp.Click(`#tab-operations`, chromedp.ByQuery))
	tb.await(`document.querySelector("#operations tr.chosen")`)
	if !eval[bool](tb, `Number(document.querySelector("#operations tr.chosen").dataset.bar) === app.state.selected.bar`) {
		t.Error("the selected bar is not marked in the table")
	}
	tb.key("0")
	tb.await(`document.querySelectorAll("#operations tr[data-bar]").length === 6`)
	count("number:0")
	tb.await(
		`document.querySelectorAll("#operations tr[data-bar]").length === 4`) // start-up, which was not shown before
	tb.key("1")
	tb.await(`document.querySelectorAll("#operations tr[data-bar]").length === 0`)

	count("wait>4ms rank:3")
	lines := strings.Split(strings.TrimSpace(eval[string](tb, "app.panel.operations.csv()")), "\n")
	testkit.Check(t, len(lines) == 3 && strings.HasPrefix(lines[0], "begin_ns,operation,communicator,rank,") &&
		strings.Contains(lines[1], ",AllReduce,world,3,") &&
		strings.Contains(lines[1], ",4194304,TREE,,5100000,5000000,Rank 2,0,1"), "copied: %q", lines)
	tb.noErrors()
}
