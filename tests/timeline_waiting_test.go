// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/timeline"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
)

// waitingPage opens the page of a server that has nothing yet.
func waitingPage(t *testing.T, title string) (*timeline.Server, *browser.Page) {
	t.Helper()
	b := needBrowser(t)
	s := testkit.Value(timeline.NewServer(title))(t)
	t.Cleanup(func() { s.Close() })
	l := testkit.Value(s.Listen(0))(t)
	t.Cleanup(func() { l.Close() })
	go func() { _ = s.Serve(l) }()
	p := testkit.Value(b.Blank(desktop))(t)
	t.Cleanup(p.Close)
	testkit.Must(t, p.Run(chromedp.Navigate(s.URL())))
	return s, p
}

// until waits until a text of the page is so. What is asked while the page loads itself again gets no answer.
func until(t *testing.T, p *browser.Page, expression string, so func(string) bool) {
	t.Helper()
	var got string
	for p.Err() == nil {
		if err := p.Eval(expression, &got); err == nil && so(got) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it never is so: the page has %q", got)
}

const saidInPage = `document.getElementById("said")?.textContent ?? ""`

// While an archive is read, its page says how far that is, and then becomes the timeline at the place that its address
// names.
func TestTimelineIsServedWhileItIsRead(t *testing.T) {
	t.Parallel()
	s, p := waitingPage(t, "a <b>job</b>")
	testkit.Must(t, p.Run(chromedp.Navigate(s.URL()+"#tab=waits")))
	for _, done := range []uint64{3210, 39_000} {
		s.Say("Reading events", done, 40_000)
		until(t, p, saidInPage, func(said string) bool {
			return said == "Reading events: "+grouped(int(done))+" of "+grouped(40_000)
		})
	}
	until(t, p, `document.getElementById("title").innerHTML`,
		func(title string) bool { return title == "a &lt;b&gt;job&lt;/b&gt;" })
	a := testkit.Value(otf2.Open(lateJob(t), nil))(t)
	defer a.Close()
	d := testkit.Value(timeline.Read(a, nil))(t)
	defer d.Close()
	testkit.Must(t, s.Fill(d, timeline.Options{Title: "job"}))
	until(t, p, `String(!!window.__timeline && !document.getElementById("waits").hidden)`,
		func(there string) bool { return there == "true" })
	errs := p.Errors()
	testkit.Check(t, len(errs) == 0, "the page complains: %q", errs)
}

// An archive that cannot be read: the page says why.
func TestTimelineThatCannotBeReadSaysSo(t *testing.T) {
	t.Parallel()
	s, p := waitingPage(t, "job")
	s.Fail(errors.New("no room <i>left</i>"))
	until(t, p, saidInPage, func(said string) bool {
		return strings.Contains(said, "cannot be shown: no room <i>left</i>")
	})
}
