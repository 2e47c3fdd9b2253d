// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
)

// The report as a page fits wide and narrow windows, is light or dark as the reader's system is, and is printed in dark
// ink with what it shows in full.
func TestReportPage(t *testing.T) {
	t.Parallel()
	dir, _ := play(t, recording(t, "02-allcoll-4p-net"))
	testkit.Output(t, exec.Command(builtFile(t, "nccl-otf2"), "report", dir, "--html"))
	type shown struct {
		Over    float64 // px by which the page is wider than the window
		Ground  string
		Ink     string
		Curves  string // ground of the picture of bandwidths
		Cut     int    // tables that are wider than their room
		Verdict string
		Loaded  int // from elsewhere
	}
	const look = `(() => {
		const style = (e, p) => getComputedStyle(e)[p], page = document.scrollingElement;
		const boxes = [...document.querySelectorAll('.wide')];
		return {
			Over: page.scrollWidth - page.clientWidth, Ground: style(document.body, 'backgroundColor'), Ink: style(document.body, 'color'),
			Curves: style(document.querySelector('.curves .ground'), 'fill'), Verdict: document.querySelector('#verdict').textContent,
			Cut: boxes.filter((b) => b.scrollWidth > b.clientWidth + 1 && style(b, 'overflowX') !== 'auto').length,
			Loaded: performance.getEntriesByType('resource').length,
		};
	})()`
	const white, black = "rgb(255, 255, 255)", "rgb(23, 25, 28)"
	for _, c := range []struct {
		width  int64
		dark   bool
		print  bool
		ground string
	}{{1440, false, false, white}, {1440, true, false, black}, {390, false, false, white}, {390, true, false, black},
		{1060, true, true, white}} {
		p := testkit.Value(needBrowser(t).Blank(browser.Options{Width: c.width, Height: 900, Dark: c.dark}))(t)
		t.Cleanup(p.Close)
		testkit.Must(t, p.Run(chromedp.Navigate("file://"+filepath.Join(dir, "report.html"))))
		if c.print {
			testkit.Must(t, p.Run(emulation.SetEmulatedMedia().WithMedia("print").WithFeatures(
				[]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}})))
		}
		var got shown
		testkit.Must(t, p.Eval(look, &got))
		testkit.Check(t, got.Over <= 0 && got.Ground == c.ground && got.Curves == c.ground && got.Ink != got.Ground &&
			got.Cut <= 0 && got.Verdict != "" && got.Loaded <= 0, "%+v: %+v", c, got)
		all := p.Errors()
		testkit.Check(t, len(all) == 0, "%+v: %q", c, all)
	}
}
