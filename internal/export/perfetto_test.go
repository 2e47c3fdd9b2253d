// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/export/tracetest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

func perfetto(t *testing.T, a *otf2.Archive) (*tracetest.Trace, *Result) {
	t.Helper()
	var out bytes.Buffer
	res := testkit.Value(Perfetto(a, "-", &out, nil))(t)
	trace := testkit.Value(tracetest.Read(out.Bytes()))(t)
	return trace, res
}

// shown is a slice as the archive has it.
type shown struct {
	row, name  string
	begin, end int64
	depth      int
}

func order(a, b shown) int {
	return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.row, b.row), cmp.Compare(a.depth, b.depth),
		cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
}

// regionsOf are the archive's regions, found without what the exports use.
func regionsOf(t *testing.T, a *otf2.Archive) (all []shown) {
	t.Helper()
	open := make(map[otf2.LocationRef][]shown)
	begin := int64(a.Defs.Clock.Offset)
	for ev, err := range a.Events(nil) {
		testkit.Must(t, err)
		stack := open[ev.Location]
		switch ev.Kind {
		case otf2.EventEnter:
			l, region := a.Defs.Location(ev.Location), a.Defs.Region(otf2.RegionRef(ev.Args[0]))
			open[ev.Location] = append(stack, shown{a.Defs.String(l.Name), a.Defs.String(region.Name),
				int64(ev.Time) - begin, 0, len(stack)})
		case otf2.EventLeave:
			s := stack[len(stack)-1]
			s.end = int64(ev.Time) - begin
			all = append(all, s)
			open[ev.Location] = stack[:len(stack)-1]
		}
	}
	return all
}

func TestPerfettoShowsTheArchive(t *testing.T) {
	a := job(t)
	trace, res := perfetto(t, a)
	if want := int64(a.Defs.Clock.Realtime); trace.Clock != 1 || trace.Begin != want {
		t.Errorf("clock %d shows %d, want %d", trace.Clock, trace.Begin, want)
	}
	want := regionsOf(t, a)
	var got []shown
	counts := make(map[string]uint64)
	var allReduce, traced *tracetest.Slice
	for _, s := range trace.Slices {
		switch path := trace.Path(s.Track); s.Category {
		case waitCategory, answerCategory, "transfer", "marker", "measurement":
			counts[s.Category]++
		default:
			got = append(got, shown{path[len(path)-1], strings.TrimSuffix(s.Name, " (launch only)"), s.Begin, s.End,
				s.Depth})
			testkit.Check(t, len(path) >= 3 && (path[0] == "node0" || path[0] == "node1") &&
				strings.HasPrefix(path[1], "Rank "), "the track of %s is %q", s.Name, path)
		}
		if s.Name == "AllReduce" && allReduce == nil {
			allReduce = s
		}
		if s.Name == "ReduceScatter" && s.Args["event_id"] != nil {
			traced = s
		}
	}
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	testkit.Check(t, slices.Equal(got, want), "slices %v\nwant %v", got, want)
	testkit.Check(t, res.Records["slices"] == uint64(len(want)) && res.Records["waits"] == counts[waitCategory] &&
		res.Records["answers"] == counts[answerCategory] &&
		res.Records["transfers"]+res.Records["arrivals"] == counts["transfer"] &&
		res.Records["counter values"] == uint64(len(trace.Counters)),
		"records %v, in the trace %v and %d counter values", res.Records, counts, len(trace.Counters))
	testkit.Check(t, allReduce.Args["algo"] == "RING" && allReduce.Args["size_bytes"] == uint64(4<<20) &&
		allReduce.Args["communicator"] == odd, "an AllReduce says %v", allReduce.Args)
	duration := float64(allReduce.End - allReduce.Begin)
	bw, _ := allReduce.Args["busbw_gbs"].(float64)
	testkit.Check(t, bw >= 0.999*(4<<20)/duration*4/3 && bw <= 1.001*(4<<20)/duration*4/3,
		"busbw %v GB/s of 4 MiB on 3 ranks in %v ns", allReduce.Args["busbw_gbs"], duration)
	if id, _ := traced.Args["event_id"].(uint64); id>>48 == 0 || traced.Args["sendbuff_address"] != uint64(0x1000) {
		t.Errorf("a traced operation says %v", traced.Args)
	}
	arrows := make(map[string]int)
	for _, all := range trace.Arrows() {
		arrows[all[0].Category+" to "+all[len(all)-1].Category]++
		for i := 1; i < len(all); i++ {
			testkit.Check(t, all[i].Begin >= all[i-1].Begin, "a line from %v back to %v", all[i-1], all[i])
		}
	}
	// Seven collectives, two messages, a call to its operation on three ranks, ten transfers.
	for what, n := range map[string]int{"NCCL collectives to NCCL collectives": 7,
		"NCCL point-to-point to NCCL point-to-point": 2, "NCCL API to NCCL collectives": 3,
		"transfer to transfer": 10} {
		testkit.Check(t, arrows[what] == n, "%d lines from %s, want %d, of %v", arrows[what], what, n, arrows)
	}
}

func TestPerfettoShowsWaits(t *testing.T) {
	a := job(t)
	trace, _ := perfetto(t, a)
	r := newRows(a.Defs, nil)
	type wait struct {
		shown
		kind, function, source string
	}
	var want, got []wait
	operations.EachMatch(a, &operations.Matches{Wait: func(w *waits.Wait) {
		begin := r.clock.fromBegin(w.Begin)
		want = append(want, wait{shown{r.of[w.Place.Location].name, "waits for " + r.world[w.For].Name, begin,
			begin + int64(w.Waited), 0}, w.Kind, w.Function, w.Source})
	}})
	for _, s := range trace.Slices {
		if s.Category == waitCategory {
			path := trace.Path(s.Track)
			got = append(got, wait{shown{path[len(path)-2], s.Name, s.Begin, s.End, s.Depth}, s.Args["kind"].(string),
				s.Args["function"].(string), s.Args["timing_source"].(string)})
			testkit.Check(t, s.Args["waited_ns"] == s.End-s.Begin && path[len(path)-1] == "waiting",
				"%v on %q", s, path)
		}
	}
	byTime := func(a, b wait) int { return order(a.shown, b.shown) }
	slices.SortFunc(want, byTime)
	slices.SortFunc(got, byTime)
	testkit.Check(t, len(want) != 0 && slices.Equal(got, want), "waits %v\nwant %v", got, want)
}

// What is open at the end ends with the data; regions that last are not held with all that lies in them, and lie around
// it.
func TestPerfettoOpenAndLongRegions(t *testing.T) {
	dir := t.TempDir()
	p := shardtest.New(t, dir, "p")
	outer, inner := p.Region("phase", "Application", otf2.RegionRoleCode),
		p.Region("step", "Application", otf2.RegionRoleCode)
	w := p.Writer(0)
	testkit.Must(t, w.Enter(t0, nil, outer))
	const n = maxSlices + maxSlices/2
	for i := range otf2.Timestamp(n) {
		testkit.Must(t, w.Enter(t0+10*i, nil, inner))
		testkit.Must(t, w.Leave(t0+10*i+10, nil, inner)) // the next one begins when it ends
	}
	p.Finish()
	trace, res := perfetto(t, jobtest.Open(t, jobtest.Unify(t, dir)))
	testkit.Require(t, len(trace.Slices) == n+2 && res.LeftOut["ends of regions that were open at the end"] == 1,
		"%d slices, left out %v", len(trace.Slices), res.LeftOut)
	regions := slices.DeleteFunc(trace.Slices, func(s *tracetest.Slice) bool { return s.Category != "Application" })
	first, last := regions[0], regions[n]
	testkit.Check(t, first.Name == "phase" && first.End == last.End && first.Depth == 0, "around all is %+v", first)
	for _, s := range regions[1:] {
		testkit.Require(t, s.Depth == 1 && s.End == s.Begin+10, "%+v", s)
	}
}

func TestPerfettoTracesAreTheSameAndPacked(t *testing.T) {
	a := job(t)
	var one, two bytes.Buffer
	testkit.Value(Perfetto(a, "-", &one, nil))(t)
	testkit.Value(Perfetto(a, "-", &two, nil))(t)
	path := filepath.Join(t.TempDir(), "run.pftrace.gz")
	res := testkit.Value(Perfetto(a, path, nil, nil))(t)
	z := testkit.Value(gzip.NewReader(bytes.NewReader(testkit.Read(t, path))))(t)
	var packed bytes.Buffer
	testkit.Value(packed.ReadFrom(z))(t)
	if !bytes.Equal(one.Bytes(), two.Bytes()) || !bytes.Equal(one.Bytes(), packed.Bytes()) ||
		!slices.Equal(res.Files, []string{path}) {
		t.Errorf("traces of %d, %d and %d bytes, files %v", one.Len(), two.Len(), packed.Len(), res.Files)
	}
}

// Kernels that overlap on a row keep their times: those that began in another one and outlast it are on a track of
// their own.
func TestTracesShowKernelsThatOverlap(t *testing.T) {
	made := testkit.Value(otf2.Create(t.TempDir(), "traces", &otf2.ArchiveOptions{Creator: "another tool"}))(t)
	defs := made.Definitions()
	for i, text := range []string{"", "node", "a", "b"} {
		testkit.Must(t, defs.String(otf2.StringRef(i), text))
	}
	testkit.Must(t, errors.Join(defs.ClockProperties(1e9, t0, 30000, 0),
		defs.SystemTreeNode(0, 1, 1, otf2.UndefinedSystemTreeNode),
		defs.LocationGroup(0, 1, otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup),
		defs.Location(0, 1, otf2.LocationTypeAcceleratorStream, 80, 0)))
	for r := range otf2.RegionRef(2) {
		testkit.Must(t, defs.Region(r, 2+otf2.StringRef(r), 0, 0, otf2.RegionRoleFunction, otf2.ParadigmHIP, 0,
			otf2.UndefinedString, 0, 0))
	}
	w := testkit.Value(made.Events(0))(t)
	for i := range otf2.Timestamp(20) {
		begin := t0 + 1000*i
		testkit.Must(t, errors.Join(w.Enter(begin, nil, 0), w.Enter(begin+10, nil, 1), w.Leave(begin+230, nil, 0),
			w.Leave(begin+330, nil, 1)))
	}
	testkit.Must(t, made.Close())
	archive := jobtest.Open(t, made.Path())
	took := make(map[string]int64)
	trace, res := perfetto(t, archive)
	for _, s := range trace.Slices {
		took[s.Name] += s.End - s.Begin
	}
	testkit.Check(t, took["a"] == 4600 && took["b"] == 6400 &&
		res.LeftOut["ends of regions that were open at the end"] == 0, "%v, left out %v", took, res.LeftOut)
}
