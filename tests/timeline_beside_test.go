// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
	"github.com/nccl-otf2/nccl-otf2/timeline"
)

// Two runs lie in one page: where one goes the other goes, too, to its phase of the same name; apart they stay.
func TestTimelinesBeside(t *testing.T) {
	t.Parallel()
	var runs [2]timeline.Beside
	for i, anchor := range []string{steppedJob(t), steppedJob(t)} {
		a, err := otf2.Open(anchor, nil)
		testkit.Must(t, err)
		d, err := timeline.Read(a, nil)
		testkit.Must(t, err)
		a.Close()
		defer d.Close()
		runs[i] = timeline.Beside{Data: d, Options: timeline.Options{Title: []string{"before", "after <b>"}[i]}}
	}
	page := filepath.Join(t.TempDir(), "both.html")
	f, err := os.Create(page)
	testkit.Must(t, err)
	testkit.Must(t, timeline.WriteBeside(f, runs, "AllReduce: 3 % slower"))
	testkit.Must(t, f.Close())
	for _, o := range []browser.Options{{Width: 1440, Height: 900}, {Width: 390, Height: 800, Dark: true}} {
		p, err := needBrowser(t).Blank(o)
		testkit.Must(t, err)
		t.Cleanup(p.Close)
		tb := &tab{t, p}
		tb.do(chromedp.Navigate((&url.URL{Scheme: "file", Path: page}).String()))
		tb.await(`frames.length === 2 && [0, 1].every((i) => frames[i].__timeline && frames[i].__timeline.frames.length > 0)`)
		if got := eval[string](tb, `document.querySelector("h1").innerText + ": " + document.querySelector("pre").textContent`); got != "before and after <b>: AllReduce: 3 % slower" {
			t.Errorf("said: %q", got)
		}
		show := func(frame, step string) {
			eval[any](tb, `{ const run = frames[`+frame+`].__timeline, p = run.store.head.phases.find((p) => p.name === "`+step+`"); run.go(p.from, p.to); run.draw(); return 1; }`)
		}
		at := func(frame string) string {
			return `(() => { const app = frames[` + frame + `].__timeline, p = app.store.head.phases.find((p) => p.depth === 0 && p.from <= (app.view.from + app.view.to) / 2 && (app.view.from + app.view.to) / 2 <= p.to); return p ? p.name : ""; })()`
		}
		show("0", "step 3")
		tb.await(at("1") + ` === "step 3"`)
		show("1", "step 6")
		tb.await(at("0") + ` === "step 6"`)
		tb.do(chromedp.Click("#together", chromedp.ByQuery))
		show("0", "step 2")
		tb.await(at("0") + ` === "step 2"`)
		if got := eval[string](tb, at("1")); got != "step 6" {
			t.Errorf("apart, the other run went to %q", got)
		}
		tb.do(chromedp.Click("#together", chromedp.ByQuery)) // a message that was under way would have arrived
		show("1", "step 7")
		tb.await(at("0") + ` === "step 7"`)
		height := `document.querySelector("iframe").clientHeight`
		before := eval[float64](tb, height)
		tb.do(chromedp.Click("#columns", chromedp.ByQuery))
		if after := eval[float64](tb, height); after < 1.5*before {
			t.Errorf("side by side a run is %v px high, before %v", after, before)
		}
		if errs := p.Errors(); len(errs) > 0 {
			t.Errorf("the page complains: %q", errs)
		}
	}
}
