// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/timeline"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

var startBrowser = sync.OnceValues(func() (*browser.Browser, error) { return browser.Start(context.Background()) })

// needBrowser gives the browser that all tests of the page share.
func needBrowser(t *testing.T) *browser.Browser {
	t.Helper()
	_, err := browser.Find()
	need.NoError(t, "the browser that the timeline's page is tested in", err)
	return testkit.Value(startBrowser())(t)
}

// tab is a page with helpers that fail the test.
type tab struct {
	*testing.T
	page *browser.Page
}

// showPage writes the page of an archive and opens it.
func showPage(t *testing.T, anchor string, o browser.Options) (tb *tab, url string) {
	t.Helper()
	url, _ = writePage(t, anchor)
	return openTab(t, url, o), url
}

// desktop is a window of a usual size.
var desktop = browser.Options{Width: 1440, Height: 900}

func openTab(t *testing.T, url string, o browser.Options) *tab {
	t.Helper()
	if o.Width == 0 {
		o.Width, o.Height = 1400, 1000
	}
	o.Timeout = 30 * time.Minute // what is tested is not how busy the machine is
	p := testkit.Value(needBrowser(t).Open(url, o))(t)
	t.Cleanup(p.Close)
	tb := &tab{t, p}
	tb.settle()
	return tb
}

// part runs a part of the test on the same page.
func (t *tab) part(name string, run func(t *tab)) {
	t.Run(name, func(sub *testing.T) { run(&tab{sub, t.page}) })
}

// eval evaluates an expression; "app" in it is the page's state.
func eval[T any](t *tab, expression string) (value T) {
	t.Helper()
	err := t.page.Eval("(async (app) => "+expression+")(window.__timeline)", &value)
	testkit.Require(t, err == nil, "%s: %v", expression, err)
	return value
}

func (t *tab) settle() {
	t.Helper()
	testkit.Must(t, t.page.Settle())
}

func (t *tab) do(actions ...chromedp.Action) {
	t.Helper()
	testkit.Must(t, t.page.Run(actions...))
}

// await waits until something is so.
func (t *tab) await(condition string) {
	t.Helper()
	if !eval[bool](t, `new Promise((done) => {
		const end = Date.now() + 300000;
		const look = () => (`+condition+`) ? done(true) : Date.now() > end ? done(false) : setTimeout(look, 10);
		look();
	})`) {
		t.Fatalf("it never is so: %s", condition)
	}
}

// key presses keys one after the other.
func (t *tab) key(keys string) {
	t.Helper()
	t.do(chromedp.KeyEvent(keys))
	t.settle()
}

func (t *tab) mouse(typ input.MouseType, x, y float64, set func(*input.DispatchMouseEventParams)) {
	t.Helper()
	e := input.DispatchMouseEvent(typ, x, y)
	if set != nil {
		set(e)
	}
	t.do(e)
}

// drag moves the pointer with the button held down.
func (t *tab) drag(x0, y0, x1, y1 float64, modifiers input.Modifier) {
	t.Helper()
	left := func(e *input.DispatchMouseEventParams) {
		e.Button, e.Buttons, e.ClickCount, e.Modifiers = input.Left, 1, 1, modifiers
	}
	t.mouse(input.MousePressed, x0, y0, left)
	for i := range 5 {
		f := float64(i+1) / 5
		t.mouse(input.MouseMoved, x0+f*(x1-x0), y0+f*(y1-y0), left)
	}
	t.mouse(input.MouseReleased, x1, y1, left)
	t.settle()
}

func (t *tab) text(id string) string {
	t.Helper()
	return eval[string](t, fmt.Sprintf("document.getElementById(%q).innerText", id))
}

func (t *tab) noErrors() {
	t.Helper()
	errs := append(t.page.Errors(), eval[[]string](t, "app.state.errors")...)
	testkit.Check(t, len(errs) <= 0, "the page complains: %q", errs)
}

// box is where a bar is in the window: the first that is wide enough on the first row with a name that fits.
type box struct {
	Bar           int
	X, Y          float64 // its middle
	Width, Height float64
}

func (t *tab) box(row, region string, nth int) box {
	t.Helper()
	b := eval[box](t, fmt.Sprintf(`{
		const head = app.store.head, at = document.getElementById("base").getBoundingClientRect();
		const all = app.stage.painted.boxes.filter((b) => head.regions[b.region].name === %q && head.rows[app.store.laneOf(b.bar).row].name.includes(%q) && b.x + b.width > 4 && b.x < app.state.view.width - 4);
		const b = all[%d];
		if (!b) return { Bar: -1 };
		const from = Math.max(b.x, 0), to = Math.min(b.x + b.width, app.state.view.width);
		return { Bar: b.bar, X: at.left + (from + to) / 2, Y: at.top + b.y + b.height / 2, Width: to - from, Height: b.height };
	}`, region, row, nth))
	if b.Bar < 0 {
		t.Fatalf("no bar %s on %s is in the picture", region, row)
	}
	return b
}

func writePage(t *testing.T, anchor string) (url string, page []byte) {
	t.Helper()
	a, err := otf2.Open(anchor, &otf2.ReadOptions{Nanoseconds: true}) // as the tool does
	testkit.Must(t, err)
	defer a.Close()
	d := testkit.Value(timeline.Read(a, nil))(t)
	defer d.Close()
	path := filepath.Join(t.TempDir(), "page.html")
	f := testkit.Value(os.Create(path))(t)
	testkit.Must(t, d.WritePage(f, timeline.Options{Title: "a test", Tool: "tests"}))
	testkit.Must(t, f.Close())
	page = testkit.Value(os.ReadFile(path))(t)
	return "file://" + path, page
}

// shownBar is a bar as the page has it.
type shownBar struct {
	Row    string
	Region string
	Depth  int
	Start  uint64
	Length uint64
}

// channelsOf are the rows of channels.
func channelsOf(t *testing.T, anchor string) map[string]bool {
	t.Helper()
	a := openArchive(t, anchor)
	channel := regexp.MustCompile(` ch [0-9]+$`)
	rows := make(map[string]bool)
	for _, l := range a.Defs.Locations {
		if channel.MatchString(a.Defs.String(l.Name)) {
			rows[fmt.Sprint(uint64(l.Self))] = true
		}
	}
	return rows
}

// barsOf reads the regions of an archive event by event.
func barsOf(t *testing.T, anchor string) (all []shownBar) {
	t.Helper()
	a := openArchive(t, anchor)
	for _, l := range a.Defs.Locations {
		var open []int
		for ev, err := range a.EventsOf(l.Self) {
			testkit.Must(t, err)
			at := uint64(ev.Time) - a.Defs.Clock.Offset
			switch ev.Kind {
			case otf2.EventEnter:
				open = append(open, len(all))
				name := a.Defs.String(a.Defs.Region(otf2.RegionRef(ev.Args[0])).Name)
				if isLaunchOnly(a.Defs, ev) {
					name += " (launch only)"
				}
				all = append(all, shownBar{Row: fmt.Sprint(uint64(l.Self)), Region: name, Depth: len(open) - 1,
					Start: at})
			case otf2.EventLeave:
				b := &all[open[len(open)-1]]
				b.Length = at - b.Start
				open = open[:len(open)-1]
			}
		}
	}
	return all
}

// isLaunchOnly reports whether an operation's times are of enqueueing.
func isLaunchOnly(defs *otf2.Definitions, ev *otf2.Event) bool {
	return slices.ContainsFunc(ev.Attributes, func(v otf2.AttributeValue) bool {
		at := slices.IndexFunc(defs.Attributes, func(d otf2.Attribute) bool { return d.Self == v.ID })
		return defs.String(defs.Attributes[at].Name) == "TIMING_SOURCE" &&
			defs.String(otf2.StringRef(v.Bits)) == "enqueue"
	})
}

func sorted(all []shownBar) []string {
	var out []string
	for _, b := range all {
		out = append(out, fmt.Sprintf("%s %d %20d %d %s", b.Row, b.Depth, b.Start, b.Length, b.Region))
	}
	slices.Sort(out)
	return out
}

// The page of a recorded job, in a browser, from disk.
func TestTimelinePage(t *testing.T) {
	t.Parallel()
	dir, _ := play(t, recording(t, "02-allcoll-4p-net"), env("NCCL_OTF2_CHANNELS=on"))
	anchor := filepath.Join(dir, "traces.otf2")
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	url, page := writePage(t, anchor)
	text := strings.ReplaceAll(string(page), `"http://www.w3.org/2000/svg"`, "") // a name, which nobody fetches
	for _, foreign := range []string{"http://", "https://", "src="} {
		if at := strings.Index(text, foreign); at >= 0 {
			t.Errorf("the page names another place: %s", text[at:min(at+60, len(text))])
		}
	}
	tb := openTab(t, url, browser.Options{})
	tb.key("0")

	t.Run("rows", func(t *testing.T) {
		var want []string
		for r := range 4 {
			want = append(want, fmt.Sprintf("Rank %d", r), "Thread 0", fmt.Sprintf("comm a9f8e48f rank %d", r),
				"NCCL outstanding", "NCCL algbw", "NCCL busbw",
				"comm a9f8e48f net send", "NCCL bytes in flight", "comm a9f8e48f net recv", "NCCL bytes arrived",
				"comm a9f8e48f ch 00", "comm a9f8e48f ch 01")
		}
		names := eval[[]string](tb, "app.state.rows.items.map((i) => app.store.head.rows[i.row].name)")
		testkit.Same(t, want, names[1:])
		got := eval[int](tb, `document.querySelectorAll("#tree [role=treeitem]").length`)
		testkit.Check(t, got >= 20, "%d names of rows are in the tree", got)
	})

	t.Run("every region is there", func(t *testing.T) {
		got := eval[[]shownBar](tb, `{
			const out = [], head = app.store.head;
			for (const lane of app.store.lanes) {
				for (let k = 0; k * head.chunk < lane.count; k++) {
					const b = await app.store.bars(lane, k).promise;
					for (let i = 0; i < b.start.length; i++) out.push({ Row: head.rows[lane.row].location, Region: head.regions[b.region[i]].name, Depth: lane.depth, Start: b.start[i], Length: b.length[i] });
				}
			}
			return out;
		}`)
		testkit.Same(t, sorted(barsOf(t, anchor)), sorted(got))
	})

	t.Run("every value of every metric is there", func(st *testing.T) {
		testkit.Same(st, valuesOf(st, anchor), curvesOf(&tab{st, tb.page}))
	})

	t.Run("zoom and move", func(st *testing.T) {
		t := &tab{st, tb.page}
		span := func() float64 { return eval[float64](t, "app.state.view.to - app.state.view.from") }
		whole := span()
		t.key("+")
		s := span()
		testkit.Check(t, s <= 0.7*whole, "+ shows %.0f ns of %.0f", s, whole)
		at := eval[float64](t, "app.state.view.time(300)")
		base := eval[[]float64](
			t, `{ const r = document.getElementById("base").getBoundingClientRect(); return [r.left, r.top]; }`)
		before := span()
		t.mouse(input.MouseWheel, base[0]+300, base[1]+200,
			func(e *input.DispatchMouseEventParams) { e.DeltaY, e.Modifiers = -60, input.ModifierCtrl })
		t.settle()
		now := eval[float64](t, "app.state.view.time(300)")
		testkit.Check(t, span() < before && now-at <= whole/1e6 && at-now <= whole/1e6,
			"the wheel does not zoom at the pointer: %.0f ns, then %.0f; at %.0f, then %.0f", before, span(), at, now)
		from := eval[float64](t, "app.state.view.from")
		t.drag(base[0]+500, base[1]+200, base[0]+400, base[1]+200, 0)
		now = eval[float64](t, "app.state.view.from")
		testkit.Check(t, now > from, "dragging to the left shows what is before %.0f: %.0f", from, now)
		from = eval[float64](t, "app.state.view.from")
		t.do(chromedp.KeyEvent("\u0303")) // kb.ArrowRight
		t.settle()
		now = eval[float64](t, "app.state.view.from")
		testkit.Check(t, now > from, "the right arrow does not move on")
		t.key("0")
		s = span()
		testkit.Check(t, s == whole, "0 shows %.0f ns, want %.0f", s, whole)
	})

	tb.part("hover and select", func(t *tab) {
		b := t.box("rank 1", "AllReduce", 0)
		t.mouse(input.MouseMoved, b.X, b.Y, nil)
		t.await(`!document.getElementById("tip").hidden`)
		tip := t.text("tip")
		testkit.Contains(t, tip, "AllReduce", "comm a9f8e48f rank 1", "RING", "SIMPLE", "ncclFloat32",
			"uncertainty", "waited")
		t.do(chromedp.MouseClickXY(b.X, b.Y))
		t.await(`document.querySelector("#details table")`)
		t.settle()
		bar := eval[int](t, "app.state.selected.bar")
		testkit.Check(t, bar == b.Bar, "bar %d is selected, want %d", bar, b.Bar)
		details := t.text("details")
		testkit.Contains(t, details, "AllReduce", "COLLECTIVE", "ncclComm 0xa9f8e48f364795bd", "1 (this)", "CAUSED BY",
			"ncclAllReduce · Thread 0", "CAUSED (", "Send network")
		if got := eval[map[string]any](
			t, "({ c: app.stage.strong.collectives, p: app.stage.strong.parents, parts: app.state.selected.instances[0].parts.length "+
				"})"); got["c"] != 1.0 || got["p"].(float64) < 3 || got["parts"] != 4.0 {
			t.Errorf("lines of the selected bar: %v, want one through the 4 parts, and several to what it caused", got)
		}
		// The line through the parts is to be seen: between the rows of two ranks the picture above has color.
		if n := eval[int](t, `{
			const over = document.getElementById("over"), y = app.state.rows.items.find((i) => app.store.head.rows[i.row].name === "Rank 2").y - app.state.view.top + 4;
			const d = over.getContext("2d").getImageData(0, y, over.width, 1).data;
			let n = 0;
			for (let i = 3; i < d.length; i += 4) n += d[i] > 0;
			return n;
		}`); n == 0 {
			t.Error("nothing is drawn between the ranks")
		}
		t.key("u")
		got := eval[string](t, "app.store.head.regions[app.store.peekBar(app.state.selected.bar).region].name")
		testkit.Check(t, got == "ncclAllReduce", "u selects %s", got)
		t.key("\x1b")
		if eval[bool](t, "app.state.selected !== undefined") {
			t.Error("Escape leaves something selected")
		}
	})

	tb.part("search", func(t *tab) {
		t.key("/")
		if !eval[bool](t, `document.activeElement.id === "query"`) {
			t.Error("/ does not go to the search")
		}
		eval[any](
			t, `void (document.getElementById("query").value = "")`) // a key that comes from here leaves its sign there, too
		t.key("allreduce rank 2")
		want := 0
		for _, b := range barsOf(t.T, anchor) {
			if l := a.Defs.Location(rowOf(b)); strings.Contains(strings.ToLower(b.Region), "allreduce") &&
				l.Self%4 == 2 {
				want++
			}
		}
		hits := t.text("hits")
		testkit.Check(t, hits == fmt.Sprint(want) && want != 0, "%s are found, want %d", hits, want)
		t.key("\r")
		t.await(`app.state.selected`)
		first := eval[float64](t, "app.store.peekBar(app.state.selected.bar).start")
		eval[any](t, "app.finder.step(true)")
		second := eval[float64](t, "app.store.peekBar(app.state.selected.bar).start")
		testkit.Check(t, second > first, "the next match is at %.0f, after %.0f", second, first)
		eval[any](t, `app.finder.search("nothing of this name")`)
		hits = t.text("hits")
		testkit.Check(t, hits == "none", "found %s of nothing", hits)
		eval[any](t, `app.finder.search("")`)
		t.key("\x1b")
	})

	tb.part("lines", func(t *tab) {
		// Where the first Broadcast is there are few enough of everything.
		eval[any](t, `{
			app.commands.unselect();
			const region = app.store.head.regions.findIndex((r) => r.name === "AllGather");
			for (const lane of app.store.lanes) {
				const b = await app.store.bars(lane, 0).promise, i = b.region.indexOf(region);
				if (i >= 0) { app.go(b.start[i] - b.length[i], b.start[i] + 2 * b.length[i]); break; }
			}
			for (const s of ["parents"]) if (!app.state.shown[s]) app.toggles.shown(s);
		}`)
		t.settle()
		t.settle()
		drawn := eval[map[string]any](t, "app.stage.drawn")
		for _, kind := range []string{"parents", "collectives", "transfers"} {
			if drawn[kind].(float64) < 1 {
				t.Errorf("no %s are drawn: %v", kind, drawn)
			}
			// Each kind changes the picture.
			if !eval[bool](t, fmt.Sprintf(`{
				const base = document.getElementById("base"), c = base.getContext("2d"), take = () => c.getImageData(0, 0, base.width, base.height).data;
				const before = take();
				app.toggles.shown(%[1]q); app.stage.draw();
				const after = take();
				app.toggles.shown(%[1]q); app.stage.draw();
				return before.some((v, i) => v !== after[i]);
			}`, kind)) {
				t.Errorf("the lines of %s are not to be seen", kind)
			}
		}
		n := eval[int](t, `{ const b = app.stage.painted.boxes.filter((b) => b.wait > 0).length; return b; }`)
		testkit.Check(t, n != 0, "no waiting in the picture")
		// A transfer tells of itself where nothing else is.
		wire := eval[[]float64](t, `{
			const at = document.getElementById("base").getBoundingClientRect();
			for (const w of app.stage.lines.wires) for (let k = 1; k < 40; k++) {
				const x = w.from.x + (k / 40) * (w.to.x - w.from.x), y = w.from.y + (k / 40) * (w.to.y - w.from.y);
				if (x > 0 && x < app.state.view.width && y > 0 && y < app.state.view.height && app.pick(x, y) === undefined) return [at.left + x, at.top + y];
			}
			return [];
		}`)
		if len(wire) == 0 {
			t.Fatal("no transfer passes anything free")
		}
		t.mouse(input.MouseMoved, wire[0], wire[1], nil)
		t.await(`document.getElementById("tip").innerText.startsWith("Transfer") && !document.getElementById("tip").hidden`)
		if tip := t.text("tip"); !strings.Contains(tip, "net send → vm") || !strings.Contains(tip, "channel") ||
			!strings.Contains(tip, "GB/s") {
			t.Errorf("a transfer says %q", tip)
		}
		t.key("0")
	})

	t.Run("range", func(st *testing.T) {
		t := &tab{st, tb.page}
		eval[any](t, "(app.state.focusRow(-1), app.ranges.set({ from: 0, to: app.state.view.duration }))")
		sums := eval[map[string]any](
			t, "{ const s = await app.ranges.sum(); return { count: s.count, waited: s.waited, time: "+
				"[...s.regions.values()].reduce((n, r) => n + r.time, 0) }; }")
		var time float64
		all := barsOf(t.T, anchor)
		channels := channelsOf(t.T, anchor) // show what rows of communicator ranks show already
		all = slices.DeleteFunc(all, func(b shownBar) bool { return channels[b.Row] })
		for _, b := range all {
			time += float64(b.Length)
		}
		w := report.WaitStates
		if sums["count"] != float64(len(all)) || sums["time"] != time ||
			sums["waited"] != float64(w.Total.Waited+w.StartUp.Waited) {
			t.Errorf("%v, want %d regions, %.0f ns, %d ns of waiting", sums, len(all), time,
				w.Total.Waited+w.StartUp.Waited)
		}
		testkit.Contains(t, t.text("range"), "Recv network")
	})

	tb.part("waits and matrix", func(t *tab) {
		t.do(chromedp.Click("#tab-waits", chromedp.ByQuery))
		testkit.Equal(t, eval[int](t, `document.querySelectorAll("#waits .wait-row .meter.waited").length`), 4,
			"ranks have a bar of waiting")
		got := eval[[]uint64](t, "app.store.head.ranks.map((r) => r.waited)")
		for i, r := range report.WaitStates.Ranks {
			testkit.Equal(t, got[i], r.Waited, "%s waited", r.Name)
		}
		t.do(chromedp.Click("#tab-matrix", chromedp.ByQuery))
		var want uint64
		for _, f := range matrix.Read(a, nil).Ranks {
			want += f.Bytes
		}
		sum := eval[uint64](t, "app.store.head.matrix.transfers.reduce((n, f) => n + f.bytes, 0)")
		testkit.Check(t, sum == want && want != 0, "the matrix has %d bytes, want %d", sum, want)
		n := eval[int](t, `document.querySelectorAll("#matrix td").length`)
		testkit.Check(t, n == 16, "the matrix has %d cells", n)
		n = eval[int](t, "[...app.store.head.rows].reduce((n, r) => n + r.transfers.count, 0)")
		testkit.Check(t, n == int(report.Summary.Network["PUTS"]),
			"%d transfers, want %d", n, report.Summary.Network["PUTS"])
		t.do(chromedp.Click("#tab-details", chromedp.ByQuery))
	})

	t.Run("keys alone", func(st *testing.T) {
		t := &tab{st, tb.page}
		eval[any](t, "(app.commands.unselect(), app.commands.fit(), app.state.rows.setAll(true))")
		t.key("\u0301\u0301\u0301\u0301") // kb.ArrowDown: host, process, thread, rank
		t.key(".")
		t.await("app.state.selected")
		got := eval[string](t, "app.store.head.rows[app.store.laneOf(app.state.selected.bar).row].name")
		testkit.Check(t, got == "comm a9f8e48f rank 0", "a bar on %s is selected", got)
		bar := eval[int](t, "app.state.selected.bar")
		t.key(".")
		t.await(fmt.Sprintf("app.state.selected.bar === %d", bar+1))
		t.key("j")
		t.await(fmt.Sprintf("app.state.selected.bar !== %d", bar+1))
		t.key("\x1b")
	})

	tb.part("what is not seen is forgotten", func(t *tab) {
		held := eval[[]int](t, `{
			for (const lane of app.store.lanes) await app.store.notes(lane, 0).promise;
			const before = app.store.held;
			app.store.budget = 200;
			app.go(0, 1000);
			for (let i = 0; i < 4; i++) app.stage.draw();
			return [before, app.store.held];
		}`)
		if held[1] > held[0]/4 {
			t.Errorf("%d were held, %d still are", held[0], held[1])
		}
		eval[any](t, "app.commands.fit()")
		t.settle()
		t.box("rank 1", "AllReduce", 0)
		eval[any](t, "void (app.store.budget = 8000000)")
	})

	t.Run("rows close and open", func(st *testing.T) {
		t := &tab{st, tb.page}
		n := eval[int](t, "app.state.rows.items.length")
		t.do(chromedp.Click("#row1 .twist", chromedp.ByQuery))
		t.settle()
		testkit.Equal(t, eval[int](t, "app.state.rows.items.length"), n-11, "rows that are left")
		if eval[string](t, `document.getElementById("row1").getAttribute("aria-expanded")`) != "false" {
			t.Error("the row does not say that it is closed")
		}
		if eval[int](t, "app.stage.painted.pixels") == 0 {
			t.Error("the closed row shows nothing of what is in it")
		}
		t.key("r")
		t.key("r")
		eval[any](t, "app.state.rows.closed.size > 0 && app.commands.toggleAll()")
	})

	t.Run("paper and colors", func(st *testing.T) {
		t := &tab{st, tb.page}
		paper := eval[string](t, "app.state.colors.paper")
		t.key("l")
		now := eval[string](t, "app.state.colors.paper")
		testkit.Check(t, now != paper, "l does not change the colors")
		var pdf []byte
		t.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
			pdf, _, err = cdppage.PrintToPDF().WithPrintBackground(true).Do(ctx)
			return err
		}))
		if len(pdf) < 10_000 {
			t.Errorf("the printed page has %d bytes only", len(pdf))
		}
		now = eval[string](t, "app.state.colors.paper")
		testkit.Check(t, now != paper, "after printing the colors are not what they were")
		t.key("l")
		t.key("?")
		if !eval[bool](t, `document.getElementById("help").open`) {
			t.Error("? does not open the help")
		}
		t.do(chromedp.KeyEvent("\x1b"))
	})
	tb.noErrors()
}

func rowOf(b shownBar) (l otf2.LocationRef) {
	_, _ = fmt.Sscan(b.Row, &l)
	return l
}

// The page says first what the report says first, whole and in sight at all widths, and each culprit leads to where it
// cost the most.
func TestTimelineVerdict(t *testing.T) {
	rec := testkit.Value(replay.Load("../testdata/nccl-causes/c01-host-late-4p"))(t)
	dir, _ := play(t, rec)
	anchor := filepath.Join(dir, "traces.otf2")
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	r, err := operations.Observe(a, new(operations.Observer))
	a.Close()
	testkit.Must(t, err)
	testkit.Require(t, len(r.Verdict.Culprits) == 1 && r.Verdict.Culprits[0].Worst != nil, "%+v", r.Verdict)
	c := r.Verdict.Culprits[0]
	url, _ := writePage(t, anchor)
	for _, o := range []browser.Options{{Width: 1440, Height: 900}, {Width: 1024, Height: 768, Dark: true},
		{Width: 390, Height: 800}} {
		tb := openTab(t, url, o)
		testkit.Equal(t, eval[string](tb, `document.querySelector("#verdict .answer").innerText`), r.Verdict.Text,
			"%d wide", o.Width)
		if !eval[bool](
			tb, `[...document.querySelectorAll("#verdict .answer, .culprit")].every((e) => { const b = e.getBoundingClientRect(); return b.height > 0 && b.left >= 0 && b.right <= innerWidth && b.bottom <= innerHeight / 2 && e.scrollWidth <= e.clientWidth; })`) {
			t.Errorf("%d wide: the answer is not in sight", o.Width)
		}
		eval[bool](tb, `(document.querySelector(".culprit").click(), true)`)
		tb.settle()
		if !eval[bool](
			tb, fmt.Sprintf(
				`(() => { const v = app.state.view, at = Number(BigInt("%d") - BigInt(app.store.head.origin)); return v.from < at && at < v.to && v.to - v.from < 20 * %d; })()`, c.Worst.At, c.Worst.Late)) {
			t.Errorf("%d wide: the link does not lead to where it cost the most", o.Width)
		}
		testkit.Check(t, eval[bool](tb, fmt.Sprintf(`app.state.focus === app.store.head.ranks[%d].row`, c.Rank)),
			"%d wide: the culprit's row is not chosen", o.Width)
		// In what it is late is said of what is shown, too.
		if o.Width > 900 {
			tb.do(chromedp.Click("#tab-waits", chromedp.ByQuery))
			tb.await(
				`/^Rank [0-9]+ caused the largest part of it: .*host late/.test(document.querySelector("#waits .origin")?.innerText ?? "")`)
		}
		tb.noErrors()
	}
}

// On a small screen nothing sticks out, and fingers do what mice do.
func TestTimelineTouch(t *testing.T) {
	t.Parallel()
	tb, _ := showPage(t, hostileJob(t, "fine"),
		browser.Options{Width: 390, Height: 800, Touch: true, Dark: true, Scale: 2})
	wide := eval[int](tb, "document.documentElement.scrollWidth - innerWidth")
	testkit.Check(t, wide <= 0, "the page is %d pixels too wide", wide)
	testkit.Equal(t, eval[string](tb, "document.documentElement.dataset.theme"), "dark",
		"the page does not follow the system's dark colors")
	base := eval[[]float64](
		tb, `{ const r = document.getElementById("base").getBoundingClientRect(); return [r.left, r.top]; }`)
	touch := func(typ input.TouchType, points ...*input.TouchPoint) { tb.do(input.DispatchTouchEvent(typ, points)) }
	point := func(id, x, y float64) *input.TouchPoint {
		return &input.TouchPoint{ID: id, X: base[0] + x, Y: base[1] + y}
	}
	span := eval[float64](tb, "app.state.view.to - app.state.view.from")
	touch(input.TouchStart, point(1, 100, 60), point(2, 140, 60))
	for i := range 6 {
		d := float64(10 * i)
		touch(input.TouchMove, point(1, 100-d, 60), point(2, 140+d, 60))
	}
	touch(input.TouchEnd)
	tb.settle()
	now := eval[float64](tb, "app.state.view.to - app.state.view.from")
	testkit.Check(t, now <= 0.6*span, "two fingers do not zoom: %.0f ns, then %.0f", span, now)
	tb.key("0")
	n := eval[int](tb, "app.stage.drawn.collectives")
	testkit.Check(t, n == 2, "%d lines of operations, want that of the collective and that of the message", n)
	b := tb.box("world rank 0", "AllReduce", 0)
	touch(input.TouchStart, &input.TouchPoint{X: b.X, Y: b.Y})
	touch(input.TouchEnd)
	tb.await(`app.state.selected`)
	tb.key("0")
	tb.key("\u001b") // Escape
	tb.await(`!app.state.selected`)
	b = tb.box("world rank 0", "AllReduce", 0)
	touch(input.TouchStart, &input.TouchPoint{X: b.X, Y: b.Y})
	eval[bool](tb, `new Promise((done) => setTimeout(() => done(true), 600))`) // the finger rests
	touch(input.TouchEnd)
	tb.await(`app.state.selected && !app.state.range`) // a long tap is a tap
	tb.noErrors()
}

// hostileJob is a small job in which everything that has a name is called like that.
func hostileJob(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	const t0 = shardtest.Epoch + 1_000_000
	for r := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On("node "+name, 100+r).Launched("slurm", r, 2)
		p.GPU(r, fmt.Sprint("GPU-", r), "")
		comm := "world"
		if name != "fine" {
			comm = name
		}
		world := p.Comm(description.Comm{ID: 1, Name: comm, NRanks: 2, Rank: r, InitTime: t0})
		p.Call("nccl"+name, t0+50_000, t0+60_000)
		p.AllReduce(world, t0+100_000+uint64(r)*20_000, t0+150_000, 1000)
		if r == 0 {
			p.Send(world, 1, t0+200_000, t0+210_000, 4096)
		} else {
			p.Recv(world, 0, t0+202_000, t0+212_000, 4096)
		}
		p.Destroy(world, t0+300_000)
		p.Finish()
	}
	testkit.Value(scorep.Unify(dir, nil))(t)
	return filepath.Join(dir, "traces.otf2")
}

// Names are text, whatever they look like.
func TestTimelineNamesAreText(t *testing.T) {
	t.Parallel()
	const name = `<img src=x onerror=window.__hurt=1></script><script>window.__hurt=1</script>`
	url, page := writePage(t, hostileJob(t, name))
	testkit.Check(t, !strings.Contains(string(page), "onerror"), "a name stands in the page as it is")
	tb := openTab(t, url, browser.Options{})
	text := tb.text("tree")
	testkit.Check(t, strings.Contains(text, "<img"), "the names are not shown: %s", text)
	eval[any](tb, "(app.finder.search('nccl'), app.finder.step(true))")
	eval[any](tb, "app.finder.search('')")
	tb.key("0")
	for _, id := range []string{"details", "answer", "operations", "waits", "matrix", "about"} {
		tb.do(chromedp.Click("#tab-"+id, chromedp.ByQuery))
	}
	b := tb.box("rank 1", "AllReduce", 0)
	tb.mouse(input.MouseMoved, b.X, b.Y, nil)
	tb.await(`!document.getElementById("tip").hidden`)
	tb.do(chromedp.MouseClickXY(b.X, b.Y))
	tb.await(`document.querySelector("#details table")`)
	testkit.Contains(t, tb.text("details"), "<img src=x onerror")
	const programs = 2 // what unpacks the page's, and that
	if got := eval[[]int](
		tb, "[document.images.length, document.scripts.length - document.querySelectorAll('script[type]').length, "+
			"window.__hurt ?? 0]"); got[0] != 0 || got[1] != programs || got[2] != 0 {
		t.Errorf("names have become markup: %d images, %d programs, %d", got[0], got[1], got[2])
	}
	tb.noErrors()
}

// Where a file of the archive is missing the page says so above all else.
func TestTimelineOfADamagedArchive(t *testing.T) {
	anchor := lateJob(t)
	testkit.Must(t, os.Remove(filepath.Join(filepath.Dir(anchor), "traces", "0.evt")))
	tb, _ := showPage(t, anchor, browser.Options{})
	const banner = `document.querySelector("#verdict .damage")`
	text := eval[string](tb, banner+".innerText")
	testkit.Check(t, strings.HasPrefix(text, "Not all of the archive is shown: ") && strings.Contains(text, "0.evt"),
		"the page says %q", text)
	if !eval[bool](
		tb, `{ const b = `+banner+`.getBoundingClientRect(); return b.width > 0 && b.height > 0 && b.top >= 0 && b.bottom <= innerHeight; }`) {
		t.Error("it is not to be seen")
	}
	tb.noErrors()
}

// An archive without regions gives a page that says so.
func TestTimelineOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := testkit.Value(otf2.Create(dir, "traces", &otf2.ArchiveOptions{Creator: "test"}))(t)
	d := a.Definitions()
	for _, err := range []error{d.ClockProperties(1_000_000_000, 0, 0, 0), d.String(0, ""), a.Close()} {
		testkit.Must(t, err)
	}
	tb, _ := showPage(t, a.Path(), browser.Options{})
	testkit.Equal(t, tb.text("note"), "There are no regions in this archive.", "the page")
	for _, id := range []string{"answer", "operations", "range", "waits", "matrix", "about"} {
		tb.do(chromedp.Click("#tab-"+id, chromedp.ByQuery))
		testkit.Check(t, tb.text(id) != "", "%s is empty", id)
	}
	tb.key("+0?")
	tb.noErrors()
}
