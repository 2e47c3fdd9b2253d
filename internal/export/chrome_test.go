// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/jobtest"
	"github.com/nccl-otf2/nccl-otf2/scorep/shardtest"
)

// traceEvent is an event as the trace event format describes it (Google's document "Trace Event Format"), times in ns.
type traceEvent struct {
	Phase    string         `json:"ph"`
	Name     string         `json:"name"`
	Category string         `json:"cat"`
	PID      int            `json:"pid"`
	TID      int            `json:"tid"`
	Time     json.Number    `json:"ts"`
	Duration json.Number    `json:"dur"`
	ID       string         `json:"id"`
	Bind     string         `json:"bp"`
	Args     map[string]any `json:"args"`

	begin, end int64
}

// nanoseconds are exact: the numbers have three decimals.
func nanoseconds(t *testing.T, n json.Number) int64 {
	t.Helper()
	if n == "" {
		return 0
	}
	whole, frac, ok := strings.Cut(string(n), ".")
	if !ok || len(frac) != 3 {
		t.Fatalf("time %q", n)
	}
	v, err := strconv.ParseInt(strings.TrimPrefix(whole, "-")+frac, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if whole[0] == '-' {
		v = -v
	}
	return v
}

type track struct{ pid, tid int }

// readTrace parses a trace and checks what a viewer relies on: that slices of a track nest, that every track has a
// name, that each flow has one start and one end, in order of time, each inside a slice, and that asynchronous events
// end.
func readTrace(t *testing.T, r io.Reader) (events []traceEvent, slices_ map[track][]traceEvent) {
	t.Helper()
	var doc struct {
		Unit   string         `json:"displayTimeUnit"`
		Events []traceEvent   `json:"traceEvents"`
		Other  map[string]any `json:"otherData"`
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v in\n%.2000s", err, text)
	}
	if doc.Unit != "ns" || doc.Other["begin_ns"] == "" {
		t.Errorf("head %q %v", doc.Unit, doc.Other)
	}
	tracks := make(map[track][]traceEvent)
	processes, threads := make(map[int]string), make(map[track]string)
	flows := make(map[string][]traceEvent)
	open := make(map[string]traceEvent)
	for _, e := range doc.Events {
		e.begin = nanoseconds(t, e.Time)
		e.end = e.begin + nanoseconds(t, e.Duration)
		at := track{e.PID, e.TID}
		switch e.Phase {
		case "X":
			if e.end < e.begin || e.Name == "" {
				t.Errorf("slice %+v", e)
			}
			tracks[at] = append(tracks[at], e)
		case "M":
			name, _ := e.Args["name"].(string)
			switch e.Name {
			case "process_name":
				processes[e.PID] = name
			case "thread_name":
				threads[at] = name
			}
		case "s", "t", "f":
			flows[e.ID] = append(flows[e.ID], e)
		case "b":
			if _, twice := open[e.ID]; twice {
				t.Errorf("two events with id %s", e.ID)
			}
			open[e.ID] = e
		case "e":
			if b, ok := open[e.ID]; !ok || b.PID != e.PID || b.Category != e.Category || e.begin < b.begin {
				t.Errorf("end without begin: %+v", e)
			}
			delete(open, e.ID)
		}
		events = append(events, e)
	}
	for id, e := range open {
		t.Errorf("asynchronous event %s does not end: %+v", id, e)
	}
	for at, all := range tracks {
		if threads[at] == "" || processes[at.pid] == "" {
			t.Errorf("track %v has no name", at)
		}
		slices.SortStableFunc(all, func(a, b traceEvent) int {
			return cmp.Or(
				cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end))
		})
		var stack []traceEvent
		for _, e := range all {
			for len(stack) > 0 && stack[len(stack)-1].end <= e.begin &&
				!(stack[len(stack)-1].begin == e.begin && e.begin == e.end) {
				stack = stack[:len(stack)-1]
			}
			if n := len(stack); n > 0 && e.end > stack[n-1].end {
				t.Errorf("%s %d-%d reaches out of %s %d-%d on %s", e.Name, e.begin, e.end, stack[n-1].Name,
					stack[n-1].begin, stack[n-1].end, threads[at])
			}
			stack = append(stack, e)
		}
		tracks[at] = all
	}
	for id, all := range flows {
		for i, e := range all {
			want := "t"
			if i == 0 {
				want = "s"
			} else if i == len(all)-1 {
				want = "f"
			}
			inside := slices.ContainsFunc(tracks[track{e.PID, e.TID}],
				func(s traceEvent) bool { return s.begin <= e.begin && e.begin <= s.end })
			if e.Phase != want || i > 0 && (e.begin < all[i-1].begin || e.Bind != "e") || e.Name != all[0].Name ||
				e.Category != all[0].Category || !inside {
				t.Errorf("flow %s, %d of %d: %+v (inside a slice: %v)", id, i, len(all), e, inside)
			}
		}
		if len(all) < 2 {
			t.Errorf("flow %s has one end only: %+v", id, all)
		}
	}
	return events, tracks
}

func TestTheTraceIsWhatTheArchiveShows(t *testing.T) {
	a := job(t)
	path := filepath.Join(t.TempDir(), "trace.json.gz")
	res, err := Chrome(a, path, nil, &Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	events, tracks := readTrace(t, z)

	enters := 0
	for ev, err := range a.Events(nil) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == otf2.EventEnter {
			enters++
		}
	}
	got, flows := 0, make(map[string]int)
	counters, async := 0, 0
	var waited []traceEvent
	for _, all := range tracks {
		for _, e := range all {
			if e.Category == waitCategory {
				waited = append(waited, e)
			} else {
				got++
			}
		}
	}
	wantWaits(t, a, waited)
	for _, e := range events {
		switch e.Phase {
		case "s":
			flows[e.Category]++
		case "C":
			counters++
			if e.Name != "GPU 0 metrics: GPU power" && !strings.Contains(e.Name, ": ") || len(e.Args) != 1 {
				t.Errorf("counter %+v", e)
			}
		case "b":
			async++
			if e.Args["bytes"] == nil {
				t.Errorf("transfer %+v", e)
			}
		}
	}
	if got != enters || res.Records["slices"] != uint64(enters) {
		t.Errorf("%d slices, the archive has %d regions", got, enters)
	}
	// Seven collectives, two messages, a call to its operation on three ranks, ten transfers of which one is drawn to a
	// row that shows nothing at the time.
	if flows["collective"] != 7 || flows["message"] != 2 || flows["parent"] != 3 || async != 10 ||
		flows["transfer"]+int(res.LeftOut["lines of transfers to rows that show nothing at the time"]) != 10 ||
		counters != 3 {
		t.Errorf("flows %v, %d transfers, %d counter values, %v", flows, async, counters, res.LeftOut)
	}
	all := slices.IndexFunc(events, func(e traceEvent) bool { return e.Phase == "X" && e.Name == "AllReduce" })
	if e := events[all]; e.Args["algo"] != "RING" || e.Args["count"] != float64(1<<20) ||
		e.Category != "NCCL collectives" || e.Args["size_bytes"] != float64(4<<20) || e.Args["busbw_gbs"] == nil {
		t.Errorf("%+v", e)
	}
	traced := slices.IndexFunc(events, func(e traceEvent) bool {
		return e.Phase == "X" && e.Name == "ReduceScatter" && e.Args["event_id"] != nil
	})
	if e := events[traced]; e.Args["event_id"] != strconv.FormatUint(e.eventID(t), 10) ||
		e.Args["sendbuff_address"] != "0x1000" {
		t.Errorf("ids %+v", e)
	}
	first := slices.IndexFunc(events, func(e traceEvent) bool {
		return e.Phase == "s" && e.Category == "collective" &&
			e.Name == "AllReduce"
	})
	if chain := events[first : first+3]; chain[0].begin > chain[1].begin || chain[1].begin != chain[0].begin+10*us ||
		chain[2].begin != chain[0].begin+20*us {
		t.Errorf("the line of an AllReduce: %+v", chain)
	}
}

// Regions that last are not held with all that lies in them, and what is open at the end ends with the data.
func TestOpenAndLongRegions(t *testing.T) {
	dir := t.TempDir()
	p := shardtest.New(t, dir, "p")
	outer, inner := p.Region("phase", "Application", otf2.RegionRoleCode),
		p.Region("step", "Application", otf2.RegionRoleCode)
	w := p.Writer(0)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Enter(t0, nil, outer))
	const n = maxSlices + maxSlices/2
	for i := range otf2.Timestamp(n) {
		must(w.Enter(t0+10*i, nil, inner))
		must(w.Leave(t0+10*i+5, nil, inner))
	}
	p.Finish()
	var out bytes.Buffer
	made, err := Chrome(jobtest.Open(t, jobtest.Unify(t, dir)), "-", &out, nil)
	must(err)
	_, tracks := readTrace(t, &out)
	for _, all := range tracks {
		if len(all) != n+1 || all[0].Name != "phase" || all[0].end != all[n].end {
			t.Errorf("%d slices, first %+v", len(all), all[0])
		}
	}
	if made.LeftOut["ends of regions that were open at the end"] != 1 {
		t.Errorf("left out %v", made.LeftOut)
	}
}

func TestTracesGoToStandardOutput(t *testing.T) {
	var out bytes.Buffer
	res, err := Chrome(job(t), "-", &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	readTrace(t, &out)
	if len(res.Files) != 0 {
		t.Errorf("files %v", res.Files)
	}
}

// eventID is the id of a slice's event. It has all 64 bits, so it must be a text.
func (e *traceEvent) eventID(t *testing.T) uint64 {
	t.Helper()
	text, _ := e.Args["event_id"].(string)
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id>>48 == 0 {
		t.Errorf("event_id %v", e.Args["event_id"])
	}
	return id
}

// wantWaits compares slices with the waits that the report adds up.
func wantWaits(t *testing.T, a *otf2.Archive, got []traceEvent) {
	t.Helper()
	type wait struct {
		name           string
		begin, length  int64
		kind, function any
	}
	c := clock(a.Defs.Clock)
	var want, have []wait
	r := newRows(a.Defs, nil)
	operations.EachMatch(a, &operations.Matches{Wait: func(w *waits.Wait) {
		want = append(want, wait{"waits for " + r.world[w.For].Name, c.fromBegin(w.Begin), int64(w.Waited), w.Kind,
			w.Function})
	}})
	for _, e := range got {
		have = append(have, wait{e.Name, e.begin, e.end - e.begin, e.Args["kind"], e.Args["function"]})
		if e.Args["waited_ns"] != float64(e.end-e.begin) {
			t.Errorf("waited_ns of %+v", e)
		}
	}
	order := func(a, b wait) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.length, b.length), cmp.Compare(a.name, b.name))
	}
	slices.SortFunc(want, order)
	slices.SortFunc(have, order)
	if len(want) == 0 || !slices.Equal(want, have) {
		t.Errorf("waits %v\nwant %v", have, want)
	}
}
