// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Events as NCCL reports them are bars with names, their states marks on them. Both can be clicked: the panel says what
// they are, of what communicator, rank and process, which event asked for them, and which states an event has.
func TestTimelineRawEvents(t *testing.T) {
	t.Parallel()
	dir, _ := play(t, recording(t, "02-allcoll-4p-net"), env("NCCL_OTF2_EVENTS=all", "NCCL_OTF2_RAW=on"))
	tb, _ := showPage(t, filepath.Join(dir, "traces.otf2"), desktop)
	const step, state = "ncclProfileProxyStep", "ncclProfilerProxyStep"
	// The longest step that has states, its row on top, with some room around it.
	event := eval[struct {
		Bar           int
		Row           string
		Start, Length float64
		States        int
	}](tb, fmt.Sprintf(`{
		const { store } = app, { head } = store;
		let best = { Bar: -1, Length: 0 };
		for (const lane of store.lanes.filter((l) => l.depth === 0 && head.rows[l.row].kind === "event" && head.rows[l.row].name.includes("ProxyStep"))) {
			const marks = store.lanes[lane.index + 1];
			if (!marks || marks.row !== lane.row) continue;
			const bars = await store.bars(lane, 0).promise, states = await store.bars(marks, 0).promise;
			for (let i = 0; i < bars.start.length; i++) {
				const n = [...states.start].filter((s) => s >= bars.start[i] && s <= bars.start[i] + bars.length[i]).length;
				if (n > 1 && bars.length[i] > best.Length && head.regions[bars.region[i]].name === %q)
					best = { Bar: lane.first + i, Row: head.rows[lane.row].name, Start: bars.start[i], Length: bars.length[i], States: n };
			}
		}
		return best;
	}`, step))
	testkit.Require(t, event.Bar >= 0, "there is no step with states")
	if !regexp.MustCompile(`^ProxyStep ch \d\d (send|recv) \d+ · comm a9f8e48f rank [0-3]$`).MatchString(event.Row) {
		t.Errorf("the row is called %q", event.Row)
	}
	eval[any](tb, fmt.Sprintf(`{ app.state.focusRow(app.store.laneOf(%d).row); app.go(%g, %g); app.stage.invalidate(); }`,
		event.Bar, event.Start-0.2*event.Length, event.Start+1.2*event.Length))
	tb.settle()
	picture(t, tb, "raw-events.png")

	b := tb.box(event.Row, step, 0)
	for nth := 1; b.Bar != event.Bar; nth++ {
		b = tb.box(event.Row, step, nth)
	}
	testkit.Require(t, b.Height >= 12 && b.Width >= 300, "the step is drawn as %+v, it is %+v", b, event)
	title := eval[string](tb, fmt.Sprintf(`document.getElementById("row" + app.store.laneOf(%d).row).title`, event.Bar))
	testkit.Check(t, strings.HasPrefix(title, event.Row+" · Rank "), "the row says %q", title)
	marks := eval[[]float64](tb, fmt.Sprintf(`{
		const at = document.getElementById("base").getBoundingClientRect();
		const b = app.stage.painted.boxes.find((b) => b.bar === %d);
		return app.stage.painted.marks.filter((m) => m.y === b.y && m.x >= b.x - 1 && m.x <= b.x + b.width + 1).map((m) => at.left + m.x);
	}`, event.Bar))
	testkit.Require(t, len(marks) != 0 && len(marks) <= event.States, "%d marks of %d states", len(marks), event.States)
	// A click beside the marks selects the event.
	x := b.X
	for near := true; near; {
		near = false
		for _, m := range marks {
			if x-m < 6 && m-x < 6 {
				x, near = x+8, true
			}
		}
	}
	tb.do(chromedp.MouseClickXY(x, b.Y))
	tb.await(
		fmt.Sprintf(
			`app.state.selected && app.state.selected.bar === %d && document.querySelectorAll("#details .state").length === %d`,
			event.Bar, event.States))
	details := strings.ToLower(tb.text("details"))
	for _, want := range []string{step, "type\nProxyStep\n", event.Row, "Rank ", "States (", state, "Parent",
		"ncclProfileProxyOp"} {
		testkit.Contains(t, details, strings.ToLower(want))
	}
	picture(t, tb, "raw-event.png")

	// A click on a mark selects the state.
	tb.do(chromedp.MouseClickXY(marks[len(marks)-1], b.Y))
	tb.await(
		fmt.Sprintf(
			`app.state.selected && app.state.selected.bar !== %d && document.querySelector("#details h2")?.innerText.startsWith(%q)`,
			event.Bar, state))
	details = strings.ToLower(tb.text("details"))
	for _, want := range []string{"State of", step, event.Row} {
		testkit.Contains(t, details, strings.ToLower(want))
	}
	picture(t, tb, "raw-state.png")
	tb.noErrors()
}

// picture keeps what the page shows, where PICTURES names a folder for it.
func picture(t *testing.T, tb *tab, name string) {
	t.Helper()
	folder := os.Getenv("PICTURES")
	if folder == "" {
		return
	}
	png := testkit.Value(tb.page.Picture(""))(t)
	testkit.Must(t, os.WriteFile(filepath.Join(folder, name), png, 0o666))
}
