// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/timeline"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Two runs lie in one page: where one goes the other goes, too, to its phase of the same name; apart they stay. With
// -pages, also runs of many ranks.
func TestTimelinesBeside(t *testing.T) {
	t.Parallel()
	sizes := []browser.Options{{Width: 1440, Height: 900}, {Width: 390, Height: 800, Dark: true}}
	t.Run("a few ranks", func(t *testing.T) {
		t.Parallel()
		driveBeside(t, [2]string{steppedJob(t), steppedJob(t)}, sizes)
	})
	if !*allPages {
		return
	}
	for number := range strings.SplitSeq(*pageRanks, ",") {
		t.Run(number+" ranks", func(t *testing.T) {
			ranks := testkit.Value(strconv.Atoi(number))(t)
			var anchors [2]string
			for i, late := range []int{ranks/2 + 3, ranks / 4} {
				dir := t.TempDir()
				jobtest.WriteMarkedTraining(t, dir, ranks, late)
				anchors[i] = jobtest.Unify(t, dir)
			}
			driveBeside(t, anchors, sizes[:1])
		})
	}
}

// driveBeside tries the page of two runs.
func driveBeside(t *testing.T, anchors [2]string, sizes []browser.Options) {
	t.Helper()
	page, verdicts := writeBeside(t, anchors)
	for _, o := range sizes {
		p := testkit.Value(needBrowser(t).Blank(o))(t)
		t.Cleanup(p.Close)
		tb := &tab{t, p}
		began := time.Now()
		tb.do(chromedp.Navigate(page))
		tb.await(
			`frames.length === 2 && [0, 1].every((i) => frames[i].__timeline && frames[i].__timeline.stage.frames.length > 0)`)
		t.Logf("%d px wide: both runs drawn after %.2f s", o.Width, time.Since(began).Seconds())
		testkit.Equal(t, eval[string](
			tb, `document.querySelector("h1").innerText + ": " + document.querySelector("pre").textContent`), "before and after <b>: AllReduce: 3 % slower", "said")
		got := eval[[2]string](tb, `[0, 1].map((i) => frames[i].document.querySelector("#verdict .answer").innerText)`)
		testkit.Check(t, got == verdicts, "the runs' verdicts are %q, in their reports %q", got, verdicts)
		driveTogether(tb)
		driveAlone(tb)
		errs := p.Errors()
		testkit.Check(t, len(errs) == 0, "the page complains: %q", errs)
		p.Close()
	}
}

// writeBeside writes the page of two runs. verdicts are what their reports say.
func writeBeside(t *testing.T, anchors [2]string) (address string, verdicts [2]string) {
	t.Helper()
	var runs [2]timeline.ComparedRun
	for i, anchor := range anchors {
		a, err := otf2.Open(anchor, &otf2.ReadOptions{Nanoseconds: true}) // as the tool does
		testkit.Must(t, err)
		r := testkit.Value(operations.Observe(a, &operations.Observer{}))(t)
		verdicts[i] = r.Verdict.Text
		d := testkit.Value(timeline.Read(a, nil))(t)
		testkit.Must(t, a.Close())
		t.Cleanup(func() { d.Close() })
		runs[i] = timeline.ComparedRun{Data: d, Options: timeline.Options{Title: []string{"before", "after <b>"}[i]}}
	}
	page := filepath.Join(t.TempDir(), "both.html")
	f := testkit.Value(os.Create(page))(t)
	testkit.Must(t, timeline.WriteBeside(f, runs, "AllReduce: 3 % slower"))
	testkit.Must(t, f.Close())
	return (&url.URL{Scheme: "file", Path: page}).String(), verdicts
}

// driveTogether: where one run goes the other goes, too, unless they are apart.
func driveTogether(tb *tab) {
	tb.Helper()
	names := eval[[]string](
		tb, `frames[0].__timeline.store.head.phases.filter((p) => p.depth === 0).map((p) => p.name)`)
	if len(names) < 8 {
		tb.Fatalf("the run has the phases %q", names)
	}
	show := func(frame, step string) {
		eval[any](
			tb, `{ const run = frames[`+frame+`].__timeline, p = run.store.head.phases.find((p) => p.name === "`+step+`"); run.go(p.from, p.to); run.stage.draw(); return 1; }`)
	}
	at := func(frame string) string {
		return `(() => { const app = frames[` + frame +
			`].__timeline, p = app.store.head.phases.find((p) => p.depth === 0 && p.from <= (app.state.view.from + app.state.view.to) / 2 && (app.state.view.from + app.state.view.to) / 2 <= p.to); return p ? p.name : ""; })()`
	}
	show("0", "step 3")
	tb.await(at("1") + ` === "step 3"`)
	show("1", "step 6")
	tb.await(at("0") + ` === "step 6"`)
	tb.do(chromedp.Click("#together", chromedp.ByQuery))
	show("0", "step 2")
	tb.await(at("0") + ` === "step 2"`)
	testkit.Equal(tb, eval[string](tb, at("1")), "step 6", "apart, the other run went to")
	tb.do(chromedp.Click("#together", chromedp.ByQuery)) // a message that was under way would have arrived
	show("1", "step 7")
	tb.await(at("0") + ` === "step 7"`)
	height := `document.querySelector("iframe").clientHeight`
	before := eval[float64](tb, height)
	tb.do(chromedp.Click("#columns", chromedp.ByQuery))
	after := eval[float64](tb, height)
	testkit.Check(tb, after >= 1.5*before, "side by side a run is %v px high, before %v", after, before)
}

// driveAlone: each run has all its ranks in one picture, and its waits by rank.
func driveAlone(tb *tab) {
	tb.Helper()
	for _, frame := range []string{"0", "1"} {
		app := "frames[" + frame + "].__timeline"
		eval[any](
			tb, `{ const w = frames[`+frame+`]; w.document.getElementById("show-ranks").click(); w.document.getElementById("tab-waits").click(); return 1; }`)
		tb.await(app + `.ranks.on && ` + app + `.ranks.rows.order.length === ` + app + `.store.head.ranks.length`)
		tb.await(`frames[` + frame + `].document.querySelectorAll("#waits .wait-row, #waits .hint").length > 0`)
	}
}
