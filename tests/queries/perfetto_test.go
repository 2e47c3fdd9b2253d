// SPDX-License-Identifier: Apache-2.0

package queries

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// traced is what one reader finds in a trace.
type traced struct {
	Unknown  any      `json:"unknown"` // what it does not know, or could not use
	Regions  [][4]any `json:"regions"` // category, name, number, ns
	Counters float64  `json:"counters"`
	Sizes    float64  `json:"sizes"`
	Flows    float64  `json:"flows"`
	Realtime uint64   `json:"realtime"`
}

// traceProcessor is the program that scripts/engines.sh found, or that TRACE_PROCESSOR names; "" if there is none.
func traceProcessor(t *testing.T) string {
	if path := os.Getenv("TRACE_PROCESSOR"); path != "" {
		return path
	}
	path := testkit.Value(filepath.Abs("../../build/engines/perfetto/trace_processor"))(t)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// What an archive has is what Perfetto finds in the trace made of it, by the definitions of its format and, where it is
// to be had, by its trace_processor: as many regions of each name, that take as long, waits, values of metrics, bytes.
func TestPerfettoFindsWhatTheArchiveHas(t *testing.T) {
	t.Parallel()
	path := engines(t, "perfetto")
	program := traceProcessor(t)
	for _, name := range []string{"nccl-callbacks/02-allcoll-4p-net", "nccl-callbacks/05-p2p-3p",
		"nccl-causes/c01-host-late-4p"} {
		dir := filepath.Join(t.TempDir(), filepath.Base(name))
		tool(t, []string{"NCCL_OTF2_EVENTS=all", "NCCL_OTF2_CHANNELS=on"}, "replay",
			filepath.Join("../../testdata", name), "--clock", "recorded", "--dir", dir)
		tool(t, nil, "export", "--perfetto", dir)
		args := []string{"read_pftrace.py", filepath.Join(dir, "trace.pftrace")}
		if program != "" {
			args = append(args, program)
		}
		var got map[string]traced
		testkit.Must(t, json.Unmarshal(python(t, ".", path, args...), &got))
		a := testkit.Value(otf2.Open(filepath.Join(dir, "traces.otf2"), nil))(t)
		want := ofArchive(t, a)
		testkit.Must(t, a.Close())
		for reader, r := range got {
			if unknown, none := r.Unknown.(map[string]any); r.Unknown != 0.0 && (!none || len(unknown) > 0) {
				t.Errorf("%s, %s: not known or used: %v", name, reader, r.Unknown)
			}
			testkit.Equal(t, gocmp.Diff(want.Regions, shownBoth(r.Regions)), "",
				"%s, %s: regions (archive −, trace +):\n", name, reader)
			if r.Realtime != want.Realtime || r.Counters < want.Counters || r.Sizes != want.Sizes || r.Flows <= 0 {
				t.Errorf("%s, %s: %v counter values, sizes %v, %v lines, begin %d; the archive has %v, %v, begin %d",
					name, reader, r.Counters, r.Sizes, r.Flows, r.Realtime, want.Counters, want.Sizes, want.Realtime)
			}
		}
		testkit.Check(t, len(got) != 2 || got["sql"].Flows == got["definitions"].Flows, "%s: %v lines, want %v", name,
			got["sql"].Flows, got["definitions"].Flows)
	}
	if program == "" {
		t.Log("NOT CHECKED: Perfetto's trace_processor: there is none (TRACE_PROCESSOR=FILE names one)")
	}
}

// place is a region of a row.
type place struct {
	location otf2.LocationRef
	enter    uint64
}

// shownBoth leaves what archives do not hold as such: arrivals and answers.
func shownBoth(all [][4]any) [][4]any {
	return slices.DeleteFunc(all, func(r [4]any) bool {
		return r[0] == "answer" || r[0] == "marker" || r[0] == "measurement" || r[0] == "transfer"
	})
}

// ofArchive counts an archive's regions, waits, metrics and sizes.
func ofArchive(t *testing.T, a *otf2.Archive) traced {
	t.Helper()
	begin := a.Defs.Clock.Offset
	groups := make(map[otf2.RegionRef]string)
	for _, g := range a.Defs.Groups {
		for _, m := range g.Members {
			if g.Type == otf2.GroupTypeRegions {
				groups[otf2.RegionRef(m)] = a.Defs.String(g.Name)
			}
		}
	}
	sums := make(map[[2]string][2]float64)
	add := func(category, name string, ns float64) {
		s := sums[[2]string{category, name}]
		sums[[2]string{category, name}] = [2]float64{s[0] + 1, s[1] + ns}
	}
	var out traced
	reader := facts.NewReader(facts.ArchiveNames(a.Defs, nil), attribute.Find(a.Defs))
	launched := make(map[otf2.LocationRef][]bool) // whether only the launch of open regions is known
	reader.Enter = func(r *facts.Region) {
		launched[r.Location] = append(launched[r.Location], r.Source == facts.SourceEnqueue)
	}
	reader.Leave = func(r *facts.Region) {
		name, open := a.Defs.String(a.Defs.Region(r.Region).Name), launched[r.Location]
		if open[len(open)-1] {
			name += facts.LaunchedOnly
		}
		launched[r.Location] = open[:len(open)-1]
		add(groups[r.Region], name, float64(r.End-r.Begin))
	}
	for ev, err := range a.Events(nil) {
		testkit.Must(t, err)
		begin = min(begin, uint64(ev.Time))
		reader.Event(ev)
		if ev.Kind == otf2.EventMetric {
			out.Counters += float64(ev.Metric().Len())
		}
	}
	out.Realtime = a.Defs.Clock.Realtime - (a.Defs.Clock.Offset - begin)
	world, _ := placement.Ranks(a.Defs, membership.Communicators(a.Defs))
	problems := operations.EachMatch(a, &operations.Matches{Wait: func(w *waits.Wait) {
		add("wait", "waits for "+world[w.For].Name, float64(w.Waited))
	}})
	regions := make(map[place]*operations.Part) // that operations ended in, one of each: those of one size
	mixed := make(map[place]bool)
	more, err := operations.EachPart(a, nil, analysis.Slice{}, func(p *operations.Part) error {
		at := place{p.Location, p.Enter}
		if old := regions[at]; old != nil {
			mixed[at] = mixed[at] || old.Size != p.Size
			return nil
		}
		one := *p
		regions[at] = &one
		return nil
	})
	testkit.Must(t, err)
	testkit.Check(t, len(problems)+len(more) == 0, "%v %v", problems, more)
	for at, p := range regions {
		if !mixed[at] {
			out.Sizes += float64(p.Size)
		}
	}
	for key, s := range sums {
		out.Regions = append(out.Regions, [4]any{key[0], key[1], s[0], s[1]})
	}
	slices.SortFunc(out.Regions, func(x, y [4]any) int {
		return cmp.Or(cmp.Compare(x[0].(string), y[0].(string)), cmp.Compare(x[1].(string), y[1].(string)))
	})
	return out
}
