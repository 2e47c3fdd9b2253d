// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/timeline"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

var (
	allPages = flag.Bool(
		"pages", false, "drive the page of each labeled recording, and of -page-ranks; without, some of them")
	pageRanks = flag.String("page-ranks", "256,2048,10000", "with -pages: numbers of ranks of generated runs")
)

// driven is a page that is tried, with the archive that it is of and what the report says of that.
type driven struct {
	*tab
	url       string
	archive   *otf2.Archive
	report    *operations.Report
	waits     []waited
	generated bool      // by jobtest
	waited    []float64 // by rank, ns with those of start-up
	data      *timeline.Data
	part      [2]uint64          // of the run, ns from its begin: what charts that follow are looked at for
	within    *operations.Report // of the part
	many      bool               // more ranks than are looked at one by one
}

// waited is a wait of the archive.
type waited struct {
	begin        otf2.Timestamp
	ns           float64
	startUp, mpi bool
	message      bool
}

// points are what is tried of each page: what docs/timeline.md promises.
var points = []struct {
	name  string
	drive func(*driven)
}{
	{"the answer", driveAnswer},
	{"all ranks in one picture", driveRanks},
	{"waits", driveWaits},
	{"matrix", driveMatrix},
	{"critical path", drivePath},
	{"range", driveRange},
	{"operations", driveOperations},
	{"steps", driveSteps},
	{"widths and tabs", driveWidths},
}

// Each point of the page holds on the demonstration, on recordings of which it is known what was waited for, on a
// merged archive, and on generated runs of many ranks.
func TestTimelinePoints(t *testing.T) {
	type input struct {
		name   string
		anchor func(*testing.T) string
	}
	inputs := []input{
		{"demonstration", func(t *testing.T) string {
			dir, _ := play(t, recording(t, "09-straggler-4p"))
			return filepath.Join(dir, "traces.otf2")
		}},
		{"merged", mergedJob},
	}
	for i, rec := range labeled(t) {
		if few := 8; *allPages || i%few == 0 {
			inputs = append(inputs, input{rec.Name, func(t *testing.T) string {
				dir, _ := play(t, rec, env("NCCL_OTF2_EVENTS=all"))
				return filepath.Join(dir, "traces.otf2")
			}})
		}
	}
	numbers := "256"
	if *allPages {
		numbers = *pageRanks
	}
	for number := range strings.SplitSeq(numbers, ",") {
		ranks := testkit.Value(strconv.Atoi(number))(t)
		inputs = append(inputs, input{number + " ranks", func(t *testing.T) string {
			dir := t.TempDir()
			jobtest.WriteMarkedTraining(t, dir, ranks, ranks/2+3)
			return jobtest.Unify(t, dir)
		}})
	}
	for _, in := range inputs {
		t.Run(in.name, func(t *testing.T) {
			if !*allPages {
				t.Parallel() // those of many ranks take memory
			}
			d := drive(t, in.anchor(t))
			d.generated = strings.HasSuffix(in.name, " ranks")
			for _, p := range points {
				t.Run(p.name, func(t *testing.T) {
					one := *d
					one.tab = &tab{t, d.page}
					p.drive(&one)
					one.noErrors()
				})
			}
		})
	}
}

// drive opens the page of an archive as the tool serves it, beside the report.
func drive(t *testing.T, anchor string) *driven {
	t.Helper()
	needBrowser(t)
	a, err := otf2.Open(anchor, &otf2.ReadOptions{Nanoseconds: true})
	testkit.Must(t, err)
	t.Cleanup(func() { a.Close() })
	d := &driven{archive: a}
	d.report, err = operations.Observe(a, &operations.Observer{Waited: func(w *waits.Wait) {
		d.waits = append(d.waits, waited{w.Begin, float64(w.Waited), w.StartUp, strings.HasSuffix(w.Function, "(MPI)"),
			w.Peer >= 0})
		if w.World < 0 {
			return
		}
		for len(d.waited) <= w.World {
			d.waited = append(d.waited, 0)
		}
		d.waited[w.World] += float64(w.Waited)
	}})
	testkit.Must(t, err)
	ranks := len(d.report.WaitStates.Ranks)
	d.waited = append(d.waited, make([]float64, max(0, ranks-len(d.waited)))...)
	d.many = ranks > 512
	d.data = testkit.Value(timeline.Read(a, nil))(t)
	t.Cleanup(func() { d.data.Close() })
	d.url = serve(t, d.data)
	d.tab = openTab(t, d.url, desktop)
	d.choosePart()
	return d
}

// serve gives the address at which a timeline is served until the test ends.
func serve(t *testing.T, data *timeline.Data) string {
	t.Helper()
	s := testkit.Value(timeline.NewServer("a test"))(t)
	t.Cleanup(func() { s.Close() })
	testkit.Must(t, s.Fill(data, timeline.Options{Title: "a test", Tool: "tests"}))
	l := testkit.Value(s.Listen(0))(t)
	t.Cleanup(func() { l.Close() })
	go func() { _ = s.Serve(l) }()
	return s.URL()
}

// choosePart takes a part of the run behind its start-up in which operations begin, and the report of it.
func (d *driven) choosePart() {
	d.Helper()
	whole := [2]float64{0, eval[float64](d.tab, "app.store.head.duration") + 1}
	steady := eval[[2]float64](d.tab, "[app.store.head.answer.from, app.store.head.answer.to]")
	if steady[1] <= steady[0] {
		steady = whole
	}
	width := 0.3
	if d.many {
		width = 0.02
	}
	from := steady[0] + 0.4*(steady[1]-steady[0])
	begin := uint64(d.archive.Defs.Clock.Offset)
	at := func(ns uint64) string { return fmt.Sprintf("@%d.%09ds", (begin+ns)/1e9, (begin+ns)%1e9) }
	var selected *selection.Selection
	var err error
	for _, part := range [][2]float64{{from, from + width*(steady[1]-steady[0])}, {from, steady[1]}, steady,
		{0.05 * whole[1], whole[1]}, whole} {
		d.part = [2]uint64{d.between(uint64(part[0])), d.between(uint64(part[1]))}
		if selected, err = selection.Resolve(d.archive,
			selection.Spec{From: at(d.part[0]), To: at(d.part[1])}); err == nil {
			break // else no operation begins in that time
		}
	}
	testkit.Must(d, err)
	d.within = testkit.Value(operations.Observe(d.archive, &operations.Observer{Selection: selected}))(d)
}

// between is a time, not before another one, at which no launch of messages waits: launches of several are chosen by
// when any of their other ends begins, which the page does not have.
func (d *driven) between(at uint64) uint64 {
	begin := uint64(d.archive.Defs.Clock.Offset)
	for moved := true; moved; {
		moved = false
		for _, w := range d.waits {
			if from := uint64(w.begin) - begin; w.message && from < at && at < from+uint64(w.ns) {
				at, moved = from+uint64(w.ns)+1, true
			}
		}
	}
	return at
}

// open shows a tab.
func (d *driven) open(name string) {
	d.Helper()
	eval[any](d.tab, fmt.Sprintf(`document.getElementById("tab-%s").click()`, name))
	d.settle()
}

// showPart shows the part.
func (d *driven) showPart() {
	d.Helper()
	eval[any](d.tab, fmt.Sprintf("app.go(%d, %d)", d.part[0], d.part[1]))
	d.settle()
}

// same compares a sum of the page with that of the report.
func (d *driven) same(what string, got, want float64) {
	d.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		d.Errorf("%s: the page has %v, the report %v", what, got, want)
	}
}

// anew goes back to where the page opens.
func (d *driven) anew() {
	d.Helper()
	eval[any](d.tab, `(app.ranks.toggle(false), app.commands.unselect(), app.commands.steady())`)
	d.settle()
}
