// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// All ranks are in one picture: in an order, several to a line where there are many, each cell with its number.
func TestTimelineRanks(t *testing.T) {
	t.Parallel()
	tb, url := showPage(t, lateJob(t), desktop)
	tb.key("g")
	testkit.Require(t, eval[bool](tb, `app.ranks.on && !document.getElementById("rank-bar").hidden`),
		"g does not show all ranks")
	names := eval[[]string](tb, `[...document.querySelectorAll(".rank-name")].map((e) => e.firstChild.textContent)`)
	testkit.Check(t, slices.Equal(names, []string{"Rank 0", "Rank 1", "Rank 2", "Rank 3"}), "the names are %q", names)
	// Where rank 2 comes late the others wait, all of the time.
	at := eval[[]float64](tb, `{
		const w = app.store.head.answer.worst[0], middle = (w.since + w.at) / 2;
		app.go(w.since - 1e6, w.at + 1e6);
		const box = document.getElementById("base").getBoundingClientRect();
		return [box.left + app.state.view.x(middle), box.top, app.ranks.rows.height];
	}`)
	tb.settle()
	tip := func(rank int) string {
		t.Helper()
		tb.mouse(input.MouseMoved, 1, 1, nil)
		tb.mouse(input.MouseMoved, at[0], at[1]+(float64(rank)+0.5)*at[2], nil)
		tb.await(
			fmt.Sprintf(
				`!document.getElementById("tip").hidden && document.querySelector("#tip b").innerText === "Rank %d"`,
				rank))
		return eval[string](tb, `document.querySelector("#tip dd").innerText`)
	}
	for rank := range 4 {
		want := "(100.0 %)"
		if rank == 2 {
			want = "(0.0 %)"
		}
		got := tip(rank)
		testkit.Check(t, got[max(0, len(got)-len(want)):] == want, "rank %d waited %q, want %s", rank, got, want)
	}
	eval[any](tb, `app.ranks.show("late", "caused")`)
	tb.await("!app.ranks.pending && app.ranks.pixels > 0")
	got := eval[[]any](tb, `[app.ranks.rows.of(0)[0], document.querySelector(".scale").innerText.replace(/\s+/g, " ")]`)
	testkit.Check(t, got[0] == 2.0 && got[1] == "0 5 ms", "who was waited for most, and how late ranks came: %v", got)
	tb.await(`location.hash.includes("ranks=late,caused") || location.hash.includes("ranks=late%2Ccaused")`)
	again := openTab(t, url+eval[string](tb, "location.hash"), desktop)
	again.await(`app.ranks.on && !app.ranks.pending && app.ranks.pixels > 0`)
	again.noErrors()
	tb.do(chromedp.MouseClickXY(at[0], at[1]+0.5*at[2])) // the first one
	tb.await(`!app.ranks.on && app.state.focus === app.store.head.ranks[2].row`)
	tb.noErrors()
}

// Of 256 ranks all are seen, and the matrix shows them in bins that a click opens.
func TestTimelineManyRanks(t *testing.T) {
	t.Parallel()
	path := testkit.Value(jobtest.NewLarge(60_000, 256).Write(t.TempDir()))(t)
	tb, url := showPage(t, path, browser.Options{Width: 390, Height: 600})
	tb.key("g")
	if got := eval[[]float64](
		tb, `[app.ranks.rows.per, app.ranks.rows.lines * app.ranks.rows.height, app.state.view.height, app.ranks.rows.height]`); got[0] < 2 || got[1] > got[2] || got[3] < 2 {
		t.Errorf("%v ranks a line of %v px, in all %v of %v px", got[0], got[3], got[1], got[2])
	}
	testkit.Equal(t, eval[int](
		tb, `new Set(Array.from({ length: app.ranks.rows.lines }, (_, i) => app.ranks.rows.of(i)).flat()).size`), 256, "ranks are in the picture")
	base := eval[[]float64](
		tb, `{ const r = document.getElementById("base").getBoundingClientRect(); return [r.left, r.top, r.height]; }`)
	tb.do(chromedp.MouseClickXY(base[0]+20, base[1]+base[2]/2))
	tb.await(`app.ranks.rows.per === 1 && !app.ranks.rows.whole`)
	tb.key("\x1b")
	tb.await(`app.ranks.rows.whole`)

	tb = openTab(t, url, desktop)
	tb.do(chromedp.Click("#tab-matrix", chromedp.ByQuery))
	tb.await(`document.querySelector("#matrix canvas")`)
	sum := eval[uint64](tb, `app.panel.matrix.total.bytes`)
	want := eval[uint64](tb, `app.store.head.matrix.transfers.reduce((n, f) => n + f.bytes, 0)`)
	testkit.Check(t, sum == want && want != 0, "the matrix has %d bytes, want %d", sum, want)
	eval[any](tb, `app.go(app.state.view.begin, app.state.view.duration * 0.5)`)
	tb.await(fmt.Sprintf(`app.panel.matrix.total.bytes > 0 && app.panel.matrix.total.bytes < %d`, sum))
	at := eval[[]float64](
		tb, `{ const r = document.querySelector("#matrix canvas").getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; }`)
	tb.do(chromedp.MouseClickXY(at[0]+at[2]/2, at[1]+at[3]/2))
	tb.await(`app.panel.matrix.shown.count === 64`)
	eval[any](tb, `app.panel.matrix.show("waiting")`)
	tb.await(`app.panel.matrix.total.time > 0`)
	tb.noErrors()
}
