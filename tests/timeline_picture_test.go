// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
)

// textsOf reads an SVG as XML and gives its texts, and how many shapes of each kind it has.
func textsOf(t *testing.T, svg string) (texts []string, shapes map[string]int) {
	t.Helper()
	shapes = make(map[string]int)
	in := ""
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, shapes
		}
		testkit.Require(t, err == nil, "the SVG cannot be read: %v", err)
		switch token := token.(type) {
		case xml.StartElement:
			in = token.Name.Local
			shapes[in]++
		case xml.CharData:
			if in == "text" {
				texts = append(texts, string(token))
			}
		case xml.EndElement:
			in = ""
		}
	}
}

// The view can be saved: as SVG with its names, phases and lines, as PNG with as many pixels as it shows.
func TestTimelinePictures(t *testing.T) {
	t.Parallel()
	tb, _ := showPage(t, steppedJob(t), browser.Options{Width: 1024, Height: 768, Dark: true})
	tb.key("v")
	svg := eval[string](tb, "app.picture.svg()")
	texts, shapes := textsOf(t, svg)
	for _, want := range []string{"a test", "node1", "Rank 2", "world rank 2", "step 3", "AllRe"} {
		testkit.Check(t, slices.ContainsFunc(texts, func(s string) bool { return strings.HasPrefix(s, want) }),
			"the picture has no %q, but %q", want, texts)
	}
	testkit.Check(t, shapes["rect"] >= 50 && shapes["path"] >= 4 && strings.Contains(svg, "url(#hatch)"),
		"the picture has %v", shapes)
	size := eval[[]int](
		tb, `[Math.round(document.getElementById("tree").clientWidth + app.state.view.width), document.querySelector("#phase-bar").clientHeight]`)
	data := eval[string](tb, `{
		const blob = await app.picture.png(), bytes = new Uint8Array(await blob.arrayBuffer());
		let text = "";
		for (const b of bytes) text += String.fromCharCode(b);
		return btoa(text);
	}`)
	raw := testkit.Value(base64.StdEncoding.DecodeString(data))(t)
	img := testkit.Value(png.Decode(bytes.NewReader(raw)))(t)
	b := img.Bounds()
	testkit.Check(t, b.Dx() == 2*size[0], "the PNG is %v, the page shows %d px", b, size[0])

	// The browser gets it as a file, by the keyboard and by the dialog.
	folder := t.TempDir()
	tb.do(cdpbrowser.SetDownloadBehavior(cdpbrowser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(
		folder).WithBrowserContextID(chromedp.FromContext(tb.page).BrowserContextID))
	tb.key("E")
	tb.await(`document.getElementById("live").textContent === "The view was saved as a-test.svg"`)
	tb.do(chromedp.Click("#save-open", chromedp.ByQuery), chromedp.Click("#save-png", chromedp.ByQuery))
	tb.await(`document.getElementById("live").textContent === "The view was saved as a-test.png"`)
	for _, name := range []string{"a-test.svg", "a-test.png"} {
		tb.await("true")
		testkit.Check(t, arrives(tb, filepath.Join(folder, name)), "%s was not saved", name)
	}

	tb.key("g")
	texts, shapes = textsOf(t, eval[string](tb, "app.picture.svg()"))
	testkit.Check(t, slices.ContainsFunc(texts, func(s string) bool { return strings.HasPrefix(s, "Rank 3") }) &&
		shapes["image"] == 1, "the picture of all ranks has %v and %q", shapes, texts)
	tb.noErrors()
}

// arrives waits until the browser has written a file.
func arrives(tb *tab, path string) bool {
	for range 600 {
		if st, err := os.Stat(path); err == nil && st.Size() > 0 {
			return true
		}
		eval[any](tb, "new Promise((done) => setTimeout(done, 100))")
	}
	return false
}

// Hosts and places on hosts are matrices, too, with the same sums; ranks stand by communicator, and by how alike they
// are.
func TestTimelineGroups(t *testing.T) {
	t.Parallel()
	tb, _ := showPage(t, steppedJob(t), desktop)
	tb.do(chromedp.Click("#tab-matrix", chromedp.ByQuery))
	eval[any](tb, `app.panel.matrix.show("waiting")`)
	tb.await(`app.panel.matrix.total.time > 0 && document.querySelectorAll("#matrix .cells tr").length === 5`)
	whole := eval[float64](tb, "app.panel.matrix.total.time")
	eval[any](tb, `app.panel.matrix.group("hosts")`)
	tb.await(`document.querySelectorAll("#matrix .cells tr").length === 3`)
	got := eval[float64](tb, "app.panel.matrix.total.time")
	testkit.Check(t, got == whole, "hosts waited %v, ranks %v", got, whole)
	if got := eval[string](
		tb, `[...document.querySelectorAll("#matrix .cells th")].map((e) => e.innerText).join("|")`); got != "who ↓ for →|node0|node1|node0|node1" {
		t.Errorf("hosts: %s", got)
	}
	eval[any](tb, `app.panel.matrix.group("places")`)
	tb.await(`document.querySelector("#matrix .cells th[scope=row]").innerText === "Place 0"`)
	tb.key("g")
	order := func(by string) []int {
		eval[any](tb, `app.ranks.show("waiting", "`+by+`")`)
		return eval[[]int](tb, "app.ranks.rows.order")
	}
	if got := order("role"); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("by communicator: %v", got)
	}
	if got := order("back"); got[0] != 2 {
		t.Errorf("by the waiting caused by them: %v", got)
	}
	similar := order("likeness")
	if at := slices.Index(similar, 0); slices.Index(similar, 1) != at+1 && slices.Index(similar, 1) != at-1 {
		t.Errorf("ranks 0 and 1 wait alike, and stand %v", similar)
	}
	tb.noErrors()
}
