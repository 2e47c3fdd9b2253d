// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
)

// valuesOf reads the values of metrics event by event, by location and name: time and value.
func valuesOf(t *testing.T, anchor string) map[string][]string {
	t.Helper()
	a := openArchive(t, anchor)
	all := make(map[string][]string)
	for _, l := range a.Defs.Locations {
		for ev, err := range a.EventsOf(l.Self) {
			testkit.Must(t, err)
			if ev.Kind != otf2.EventMetric {
				continue
			}
			m := ev.Metric()
			class := a.Defs.MetricClass(m.Metric)
			for i := range m.Len() {
				typ, bits := m.At(i)
				value := fmt.Sprint(bits)
				switch typ {
				case otf2.TypeInt64:
					value = fmt.Sprint(int64(bits))
				case otf2.TypeDouble:
					value = strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
				}
				key := fmt.Sprintf("%d %s", l.Self, a.Defs.String(a.Defs.MetricMember(class.Members[i]).Name))
				all[key] = append(all[key], fmt.Sprintf("%d %s", uint64(ev.Time)-a.Defs.Clock.Offset, value))
			}
		}
	}
	testkit.Require(t, len(all) != 0, "the archive has no metrics")
	return all
}

// curvesOf is what the page has of them.
func curvesOf(t *tab) map[string][]string {
	t.Helper()
	type curve struct {
		Key    string
		Double bool
		Times  []uint64
		Values []string
	}
	all := make(map[string][]string)
	for _, c := range eval[[]curve](t, `{
		const out = [], { head, curves } = app.store;
		for (const c of curves.all) {
			const row = head.rows[c.row], one = { Key: head.rows[row.parent].location + " " + row.name, Double: c.metric.type === "DOUBLE", Times: [], Values: [] };
			for (let k = 0; k * head.chunk < c.series.count; k++) {
				const p = await curves.entry(c, k).promise;
				// The first point of a block is the last one of the block before, the first of all comes twice.
				for (let i = 1; i < p.time.length; i++) one.Times.push(p.time[i]), one.Values.push(p.of[c.member].stored(i));
			}
			if (c.series.closed) one.Times.pop(), one.Values.pop();
			out.push(one);
		}
		return out;
	}`) {
		for i, v := range c.Values {
			if c.Double {
				f := testkit.Value(strconv.ParseFloat(v, 64))(t)
				v = strconv.FormatFloat(f, 'g', -1, 64)
			}
			all[c.Key] = append(all[c.Key], fmt.Sprintf("%d %s", c.Times[i], v))
		}
	}
	return all
}

const (
	epoch         = 1_000_000 // of its clock
	hostileMetric = `<img src=x onerror=window.__hurt=1>`
)

// metricArchive has all kinds of values, of a thread: a counter and a gauge in one class, and many doubles.
func metricArchive(t *testing.T) (anchor string) {
	t.Helper()
	a := testkit.Value(otf2.Create(t.TempDir(), "traces", &otf2.ArchiveOptions{Creator: "test"}))(t)
	must := func(err error) {
		t.Helper()
		testkit.Must(t, err)
	}
	d := a.Definitions()
	must(d.ClockProperties(1_000_000_000, epoch, 0, 0))
	for i, s := range []string{"", "vm0", "node", "Process 0", "Thread 0", "cycles", "#", hostileMetric, "°C",
		"bandwidth", "B/s", "memory", "Bytes", "limits", "bits"} {
		must(d.String(otf2.StringRef(i), s))
	}
	must(d.SystemTreeNode(0, 1, 2, otf2.UndefinedSystemTreeNode))
	must(d.LocationGroup(0, 3, otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup))
	must(d.Location(0, 4, otf2.LocationTypeCPUThread, 0, 0))
	must(d.MetricMember(0, 5, 7, otf2.MetricTypePAPI, otf2.MetricAccumulatedStart, otf2.TypeUint64, otf2.BaseDecimal, 0,
		6))
	must(d.MetricMember(1, 7, 7, otf2.MetricTypeOther, otf2.MetricAbsolutePoint, otf2.TypeInt64, otf2.BaseDecimal, -1,
		8))
	must(d.MetricMember(2, 9, 0, otf2.MetricTypeOther, otf2.MetricAbsoluteNext, otf2.TypeDouble, otf2.BaseDecimal, 0,
		10))
	must(d.MetricMember(3, 11, 0, otf2.MetricTypeOther, otf2.MetricAbsoluteNext, otf2.TypeUint64, otf2.BaseBinary, 10,
		12))
	must(d.MetricMember(4, 13, 0, otf2.MetricTypeOther, otf2.MetricAbsolutePoint, otf2.TypeUint64, otf2.BaseDecimal, 0,
		14))
	must(d.MetricClass(0, []otf2.MetricMemberRef{0, 1}, otf2.MetricSynchronous, otf2.RecorderKindCPU))
	must(d.MetricClass(1, []otf2.MetricMemberRef{2}, otf2.MetricAsynchronous, otf2.RecorderKindCPU))
	must(d.MetricClass(2, []otf2.MetricMemberRef{3}, otf2.MetricAsynchronous, otf2.RecorderKindCPU))
	must(d.MetricClass(3, []otf2.MetricMemberRef{4}, otf2.MetricAsynchronous, otf2.RecorderKindCPU))
	w, err := a.Events(0)
	must(err)
	value := func(at uint64, metric otf2.MetricRef, types []otf2.Type, bits ...uint64) {
		must(w.Metric(otf2.Timestamp(epoch+at), nil, metric, types, bits))
	}
	pair := []otf2.Type{otf2.TypeUint64, otf2.TypeInt64}
	below := -55 // tenths of a degree
	value(1000, 0, pair, 1<<60, uint64(below))
	value(1000, 2, pair[:1], 3072)
	value(1000, 3, pair[:1], 0x24)
	value(5_001_000, 0, pair, 1<<60+12_345_000, 250)
	for i := range uint64(20_000) {
		value(6_000_000+1000*i, 1, []otf2.Type{otf2.TypeDouble}, math.Float64bits(bandwidthAt(i)))
	}
	value(40_001_000, 0, pair, 1<<60+12_345_000, 250)
	must(a.Close())
	return a.Path()
}

func bandwidthAt(i uint64) float64 { return 1e9 * float64(1+i%7) }

// Curves say what was measured, wherever one looks.
func TestTimelineMetrics(t *testing.T) {
	t.Parallel()
	anchor := metricArchive(t)
	url, page := writePage(t, anchor)
	testkit.Check(t, !strings.Contains(string(page), "onerror"), "a name stands in the page as it is")
	tb := openTab(t, url, browser.Options{Width: 1500, Height: 1000})
	tb.key("0")
	diff := cmp.Diff([]string{"vm0", "Process 0", "Thread 0", "cycles", hostileMetric, "bandwidth", "memory",
		"limits"}, eval[[]string](tb, "app.state.rows.items.map((i) => app.store.head.rows[i.row].name)"))
	testkit.Check(t, diff == "", "%v", diff)
	testkit.Same(t, valuesOf(t, anchor), curvesOf(tb))
	testkit.Equal(t, tb.text("note"), "", "the page says")
	// point is where a time is on a metric's row, in the window.
	point := func(name string, time uint64) (x, y float64) {
		at := eval[[]float64](tb, fmt.Sprintf(`{
			const item = app.state.rows.items.find((i) => app.store.head.rows[i.row].name === %q), box = document.getElementById("base").getBoundingClientRect();
			return [box.left + app.state.view.x(%d), box.top + item.y - app.state.view.top + item.height / 2];
		}`, name, time))
		return at[0], at[1]
	}
	tip := func(name string, time uint64) string {
		t.Helper()
		x, y := point(name, time)
		tb.mouse(input.MouseMoved, 1, 1, nil)
		tb.mouse(input.MouseMoved, x, y, nil)
		tb.await(
			fmt.Sprintf(
				`!document.getElementById("tip").hidden && document.getElementById("tip").innerText.startsWith(%q)`,
				name))
		return strings.Join(strings.Fields(tb.text("tip")), " ")
	}

	// The whole run: 20 000 values in less than 1000 pixels, from 1 to 7 GB/s in each of them.
	drawn := func(name string) []int { // columns with the curve's color, and how high it is
		t.Helper()
		return eval[[]int](tb, fmt.Sprintf(`{
			app.stage.draw();
			const item = app.state.rows.items.find((i) => app.store.head.rows[i.row].name === %q);
			if (!item) return [0, 0];
			const base = document.getElementById("base"), d = base.getContext("2d").getImageData(0, item.y - app.state.view.top + 1, base.width, item.height - 3);
			const word = app.state.colors.metric.words[3], rgb = [word & 255, (word >> 8) & 255, (word >> 16) & 255];
			let columns = 0, most = 0;
			for (let x = 0; x < d.width; x++) {
				let high = 0;
				for (let y = 0; y < d.height; y++) if (rgb.every((v, k) => Math.abs(d.data[4 * (y * d.width + x) + k] - v) < 3)) high = Math.max(high, d.height - y);
				columns += high > 0;
				most = Math.max(most, high);
			}
			return [columns, most, d.height];
		}`, name))
	}
	if got := drawn("bandwidth"); got[0] < 600 || got[1] < got[2]/3 || got[1] > 3*got[2]/4 {
		t.Errorf("%d columns, %d of %d pixels high: a curve at its mean, 4 GB/s of 7, is not to be seen", got[0],
			got[1], got[2])
	}
	if got := drawn("cycles"); got[0] < 90 || got[1] < got[2]-2 {
		t.Errorf("%d columns of the counter, %d of %d pixels high", got[0], got[1], got[2])
	}
	testkit.Contains(t, tip("bandwidth", 9_000_000), "around 1 GB/s to 7 GB/s, mean ")
	text := tip("cycles", 2_000_000)
	testkit.Check(t, strings.Contains(text, "mean 2.47 G/s") &&
		strings.Contains(text, "1 152 921 504 606 846 976 → 1 152 921 504 619 191 976"), "the counter says %q", text)
	testkit.Contains(t, tip(hostileMetric, 2_000_000), "value −5.50 °C since 1.000 µs for 5.000 000 ms")
	text = tip("memory", 2_000_000)
	testkit.Check(t, strings.Contains(text, "value 3 MiB") && strings.Contains(text, "for 40.000 000 ms"),
		"the memory says %q", text)

	testkit.Contains(t, tip("limits", 2_000_000), "value 0x24")

	// Close by, a value at a time.
	eval[any](tb, "app.go(9_000_000, 9_010_000)")
	tb.settle()
	const i = 3004
	text = tip("bandwidth", 6_000_000+1000*i+500)
	testkit.Check(t, strings.Contains(text, fmt.Sprintf("value %d GB/s", 1+i%7)) &&
		strings.HasSuffix(text, "since 9.004 000 ms for 1.000 µs"), "value %d says %q", i, text)
	tb.do(chromedp.MouseClickXY(point("bandwidth", 6_000_000+1000*i+500)))
	tb.await(`document.getElementById("details").innerText.includes("In the whole run".toUpperCase())`)
	text = strings.Join(strings.Fields(tb.text("details")), " ")
	testkit.Check(t, strings.Contains(text, "values 20 000") && strings.Contains(text, "ABSOLUTE_NEXT") &&
		strings.Contains(text, "greatest 7 GB/s"), "the panel says %q", text)

	// A range from the middle of one value into that of another, blocks apart.
	const from, to = 6_000_000 + 1000*100 + 300, 6_000_000 + 1000*17_003 + 600
	var area float64
	for i := uint64(100); i <= 17_003; i++ {
		begin, end := max(from, 6_000_000+1000*i), min(to, 6_001_000+1000*i)
		area += bandwidthAt(i) * float64(end-begin)
	}
	type sums struct{ Min, Max, Mean float64 }
	got := eval[map[string]sums](tb, fmt.Sprintf(`{
		app.commands.unselect();
		app.ranges.set({ from: %d, to: %d });
		const out = {};
		for (const m of (await app.ranges.sum()).metrics) out[m.curve.unit] = { Min: m.sums.min, Max: m.sums.max, Mean: m.sums.area / m.sums.time };
		return out;
	}`, from, to))
	if s, mean := got["B/s"], area/(to-from); s.Min != 1e9 || s.Max != 7e9 || math.Abs(s.Mean-mean) > 1e-9*mean {
		t.Errorf("the range has %+v, want a mean of %v", s, mean)
	}
	s := got["/s"]
	testkit.Check(t, s.Min == 0 && s.Mean == 0, "the counter stood still, the range says %+v", s)
	text = strings.Join(strings.Fields(tb.text("range")), " ")
	testkit.Check(t, strings.Contains(text, "bandwidth Thread 0 1 GB/s 4.00 GB/s 7 GB/s") &&
		strings.Contains(text, hostileMetric) && strings.Contains(text, "limits Thread 0 0x24 – 0x24"),
		"the range says %q", text)

	// Search finds them, also where they are not open; M hides them.
	eval[any](tb, "(app.commands.toggleRow(app.store.head.rows.findIndex((r) => r.kind === 'thread')), app.finder.search('bandw'))")
	testkit.Equal(t, tb.text("hits"), "1 metric", "the search says")
	eval[any](tb, "app.finder.step(true)")
	testkit.Equal(t, eval[string](tb, "app.store.head.rows[app.state.focus].name"), "bandwidth", "the search leads to")
	tb.key("\r")
	tb.await(`document.getElementById("details").innerText.startsWith("bandwidth")`)
	names := eval[[]string](tb, "app.state.rows.items.map((i) => app.store.head.rows[i.row].name)")
	testkit.Check(t, len(names) == 4 && names[3] == "bandwidth", "the search shows %q", names)
	eval[any](tb, "app.finder.search('')")
	tb.key("m")
	n := eval[int](tb, "app.state.rows.items.length")
	testkit.Check(t, n == 3, "m leaves %d rows", n)
	eval[any](tb, "app.finder.search('bandw')")
	n = eval[int](tb, "app.state.rows.items.length")
	testkit.Check(t, n == 4, "a search for what is hidden shows %d rows", n)
	eval[any](tb, "app.finder.search('')")
	if got := eval[[]int](tb, "[document.images.length, window.__hurt ?? 0]"); got[0] != 0 || got[1] != 0 {
		t.Errorf("names have become markup: %v", got)
	}
	tb.noErrors()
}
