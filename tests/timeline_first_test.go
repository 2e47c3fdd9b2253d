// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
)

// The style lies packed with the program. Before both are there, and where they never come, the page has no bare
// buttons and menus, but one line that says why.
func TestTimelineBeforeItIsUnpacked(t *testing.T) {
	t.Parallel()
	b := needBrowser(t)
	url, made := writePage(t, lateJob(t))

	t.Run("without scripts", func(t *testing.T) {
		p := testkit.Value(b.Blank(browser.Options{Width: 800, Height: 600}))(t)
		t.Cleanup(p.Close)
		testkit.Must(t, p.Run(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(url)))
		until(t, p, "document.body.innerText.trim()", func(said string) bool {
			return said == "This page needs JavaScript, which is switched off."
		})
	})
	t.Run("while it loads", func(t *testing.T) {
		// Without what unpacks the program.
		at := regexp.MustCompile(`(?s)<script>.*?</script>`).FindIndex(made)
		testkit.Require(t, at != nil, "the page has no loader")
		p := changedPage(t, b, string(made[:at[0]])+string(made[at[1]:]))
		until(t, p, "document.body.innerText.trim()", func(said string) bool { return said == "Loading…" })
	})
	t.Run("cut off", func(t *testing.T) {
		program := regexp.MustCompile(`(id="program">.{1000})[^<]*`)
		testkit.Require(t, program.Match(made), "the page has no program")
		p := changedPage(t, b, program.ReplaceAllString(string(made), "$1"))
		until(t, p, "document.body.innerText.trim()", func(said string) bool {
			return strings.HasPrefix(said, "This timeline cannot be shown: ")
		})
	})
	t.Run("unpacked", func(t *testing.T) {
		tab := openTab(t, url, browser.Options{Width: 800, Height: 600})
		n := eval[int](tab, `document.querySelectorAll("style").length`)
		testkit.Check(t, n == 1, "the page has %d styles: the one of its first moment goes", n)
		color := eval[string](tab, `getComputedStyle(document.body).backgroundColor`)
		testkit.Check(t, color == "rgb(255, 255, 255)",
			"the page has the background %q: its policy kept its style from it", color)
		tab.noErrors()
	})
}

// changedPage shows a page that is not as it was made.
func changedPage(t *testing.T, b *browser.Browser, text string) *browser.Page {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	p := testkit.Value(b.Blank(browser.Options{Width: 800, Height: 600}))(t)
	t.Cleanup(p.Close)
	testkit.Must(t, p.Run(chromedp.Navigate("file://"+file)))
	return p
}
