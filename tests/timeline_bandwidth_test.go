// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// linksJob is a job whose operations have bandwidths as links have them: a latency, and a speed that large ones come
// near to. Their sizes are the powers of four up to the largest.
func linksJob(t *testing.T, largest uint64) string {
	return jobtest.Make(t, 4, 2, func(_ int, p *shardtest.Process) {
		world, at := p.World(), uint64(shardtest.Epoch+10_000_000)
		for size := min(1024, largest); size <= largest; size *= 4 {
			for _, link := range []struct {
				op, algorithm string
				latency, peak float64 // ns, GB/s
			}{
				{"AllReduce", "RING", 21000, 120},
				{"AllReduce", "TREE", 9000, 60},
				{"ReduceScatter", "NVLS", 14000, 250},
			} {
				length := uint64(link.latency + float64(size)/link.peak)
				for range 3 {
					p.Collective(world, shardtest.Op{Function: link.op, Begin: at, End: at + length,
						Sent: size, Received: size, Count: size / 4, Algo: link.algorithm})
					at += length + 5000
				}
			}
		}
	})
}

// Bandwidth over size has a tab of its own: in both themes and on small screens the picture fits, and marks say their
// figures.
func TestTimelineBandwidth(t *testing.T) {
	t.Parallel()
	url, _ := writePage(t, linksJob(t, 1<<30))
	for _, o := range []browser.Options{{}, {Dark: true}, {Width: 390, Height: 800, Touch: true}} {
		tb := openTab(t, url, o)
		if o.Width > 0 {
			tb.do(chromedp.Click("#panel-toggle", chromedp.ByQuery))
		}
		tb.do(chromedp.Click("#tab-bandwidth", chromedp.ByQuery))
		if got := eval[[]int](
			tb, `[".mark", ".curve .line", ".curves li", "tr"].map((s) => document.querySelectorAll("#bandwidth " + s).length)`); got[0] != 33 || got[1] != 6 || got[2] != 3 || got[3] != 37 {
			t.Errorf("%d marks, %d lines with those of the names, %d names, %d rows", got[0], got[1], got[2], got[3])
		}
		testkit.Equal(t, eval[string](
			tb, `getComputedStyle(document.querySelector("#bandwidth .curve .line")).stroke`), map[bool]string{false: "rgb(0, 114, 178)", true: "rgb(86, 180, 233)"}[o.Dark], "dark: %t, the first curve", o.Dark)
		if wide := eval[[]string](tb, `[...document.querySelectorAll("#tabs button:not([hidden]), #bandwidth > *, #bandwidth text")].filter((e) => {
			const at = e.getBoundingClientRect(), panel = document.getElementById("panel").getBoundingClientRect();
			return at.left < panel.left || at.right > panel.right || e.scrollWidth > e.clientWidth + 1 && e instanceof HTMLElement;
		}).map((e) => e.textContent)`); len(wide) > 0 {
			t.Errorf("at a width of %d px these do not fit: %q", o.Width, wide)
		}
		if eval[bool](
			tb, `document.querySelector("#bandwidth > svg").getBoundingClientRect().height > document.getElementById("bandwidth").clientHeight`) {
			t.Errorf("at a width of %d px one does not see the picture as a whole", o.Width)
		}
		least := eval[float64](
			tb, `Math.min(...[...document.querySelectorAll("#bandwidth text")].map((e) => e.getBoundingClientRect().height))`)
		testkit.Check(t, least >= 11, "at a width of %d px texts are %.1f px high", o.Width, least)
		eval[any](tb, `document.querySelector("#bandwidth .mark").dispatchEvent(new MouseEvent("click"))`)
		testkit.Equal(t, eval[string](
			tb, `document.querySelector("#bandwidth .hint").textContent`), "AllReduce RING on world, 4 ranks: 1 KiB, "+eval[string](tb, "app.store.head.bandwidth.lines[0].points[0].busbw")+" GB/s (algorithm bandwidth 0.0487), 2 operations", "the mark")
		tb.noErrors()
	}
}

// Where all operations have one size the tab is not there, and the keys that go from tab to tab leave it out.
func TestTimelineWithoutBandwidth(t *testing.T) {
	t.Parallel()
	tb, _ := showPage(t, linksJob(t, 1024), browser.Options{})
	testkit.Check(t, eval[bool](tb, `document.getElementById("tab-bandwidth").offsetParent === null`), "there is a tab")
	tb.do(chromedp.Click("#tab-matrix", chromedp.ByQuery))
	eval[any](
		tb, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }))`)
	testkit.Equal(t, eval[string](tb, "document.activeElement.id"), "tab-about", "from the matrix one comes to")
	tb.noErrors()
}
