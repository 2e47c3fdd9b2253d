// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Keys move and zoom without losing one's place; what is found is found by its size and attributes, too.
func TestTimelineHands(t *testing.T) {
	t.Parallel()
	tb, url := showPage(t, lateJob(t), desktop)
	span := func() float64 { return eval[float64](tb, "app.state.view.to - app.state.view.from") }
	from := func() float64 { return eval[float64](tb, "app.state.view.from") }
	whole := span()
	tb.key("w")
	s := span()
	testkit.Check(t, s <= 0.7*whole, "w shows %.0f of %.0f ns", s, whole)
	before := from()
	tb.key("d")
	testkit.Check(t, from() > before, "d does not move on")
	tb.key("a")
	now := from()
	testkit.Check(t, now-before <= 1 && before-now <= 1, "a moves to %.0f, not back to %.0f", now, before)
	tb.key("s")
	s = span()
	testkit.Check(t, s >= 0.99*whole && s <= 1.01*whole, "s shows %.0f of %.0f ns", s, whole)

	// From bar to bar the zoom stays, however small bars are.
	tb.key("0")
	all := span()
	tb.key(".")
	tb.await("app.state.selected")
	for range 3 {
		bar := eval[int](tb, "app.state.selected.bar")
		tb.key(".")
		tb.await(fmt.Sprintf("app.state.selected.bar === %d", bar+1))
	}
	s = span()
	testkit.Check(t, s == all, "after four bars %.0f ns are shown, not %.0f", s, all)
	testkit.Contains(t, tb.text("live"), "AllReduce on world rank 0")

	// The next wait is the next one of what is shown.
	tb.key("\x1b")
	tb.await("!app.state.selected")
	eval[any](tb, "app.go(936e6, 960e6)")
	tb.key("x")
	tb.await("app.state.selected")
	at := eval[float64](tb, "app.store.peekBar(app.state.selected.bar).start")
	testkit.Check(t, at == 945_500_000, "x goes to the wait at %.0f", at)

	// Conditions find operations.
	for text, want := range map[string]string{">1MiB": "8", "allreduce algo:tree rank:1": "2",
		"wait>1ms rank:2": "none", "wait>1ms rank:3": "2", "size>5GiB": "none", "rank:x": "not understood: rank:x"} {
		eval[any](tb, fmt.Sprintf("app.finder.search(%q)", text))
		tb.await(fmt.Sprintf(`document.getElementById("hits").textContent === %q`, want))
	}
	eval[any](tb, `app.finder.search("algo:tree rank:1")`)
	tb.await(`document.getElementById("hits").textContent === "2"`)
	tb.key("1")
	tb.key("\x1b")
	eval[any](tb, `app.finder.search("algo:tree rank:1")`)
	tb.await(`document.getElementById("hits").textContent === "2"`)
	for _, want := range []uint64{927_200_000, 945_500_000, 927_200_000} {
		eval[any](tb, "app.finder.step(true)")
		testkit.Equal(t, eval[uint64](tb, "app.store.peekBar(app.state.selected.bar).start"), want,
			"the next match is at")
	}

	// Where a search shows other rows, the lines of what is selected lead nowhere else.
	tb.key("1")
	eval[any](tb, `{ const o = (await app.commands.list("number:3 rank:0")).all[0]; await app.selection.select(o.bar, "stay"); }`)
	tb.settle()
	testkit.Equal(t, eval[int](tb, "app.stage.strong.collectives"), 1, "lines of the selected bar")
	eval[any](tb, `app.finder.search("world rank 3")`)
	tb.settle()
	testkit.Equal(t, eval[int](tb, "app.stage.strong.collectives"), 0, "lines of a bar that is not shown")
	tb.key("\x1b")
	tb.await("!app.state.selected")

	// Rows are pinned and hidden, and come back.
	names := func() string {
		return eval[string](tb, `app.state.rows.items.map((i) => app.store.head.rows[i.row].name).join(", ")`)
	}
	rows := names()
	eval[any](tb, `app.state.focusRow(app.store.head.rows.findIndex((r) => r.name === "Rank 2"))`)
	tb.key("o")
	if now := names(); !strings.HasPrefix(now, "Rank 2, ") || strings.Count(now, "Rank 2") != 1 {
		t.Errorf("pinned: %s", now)
	}
	tb.key("o")
	testkit.Equal(t, names(), rows, "no longer pinned")
	tb.key("k")
	if now := names(); strings.Contains(now, "Rank 2") || !strings.Contains(now, "Rank 3") {
		t.Errorf("hidden: %s", now)
	}
	tb.await(`location.hash.includes("hide=")`)
	again := openTab(t, url+eval[string](tb, "location.hash"), desktop)
	if now := eval[string](
		again, `app.state.rows.items.map((i) => app.store.head.rows[i.row].name).join(", ")`); strings.Contains(
		now, "Rank 2") {
		t.Errorf("hidden by the address: %s", now)
	}
	again.noErrors()
	tb.key("K")
	testkit.Equal(t, names(), rows, "all again")
	tb.noErrors()
}
