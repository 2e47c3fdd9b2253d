// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/view"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// simplePlays are recordings, played with all events, and with those that tell of operations only.
func simplePlays(t *testing.T) map[string][]change {
	plays := map[string][]change{"05-p2p-3p, no transfers": {env("NCCL_OTF2_EVENTS=gpu")}}
	for _, rec := range recordings(t) {
		plays[rec.Name] = nil
	}
	return plays
}

// The simple view of every recording is sound, has all regions of all rows, none of them at one time with another event
// of its row, all collectives as blocking ones, and as messages what `report --matrix` has.
func TestSimpleViewsOfRecordings(t *testing.T) {
	t.Parallel()
	for name, changes := range simplePlays(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			native, res := simpleView(t, name, changes)
			found := testkit.Value(check.Archive(res.Archive, nil))(t)
			var want []check.Finding
			if res.Transfers > 0 {
				want = []check.Finding{{Severity: check.Note, Rule: check.RuleMessage,
					Text: fmt.Sprintf(
						"%d transfers of the network have no receive: nobody records that one has arrived",
						res.Transfers)}}
			}
			testkit.Same(t, want, found.Findings, cmpopts.EquateEmpty())
			otf2Print(t, res.Archive)
			a := opened(t, res.Archive)
			testkit.Same(t, rowsOf(native), rowsOf(a))
			for _, l := range a.Defs.Locations {
				last := otf2.Timestamp(0)
				for ev, err := range a.EventsOf(l.Self) {
					if err != nil || ev.Time <= last {
						t.Fatalf("location %d: %v at %d after %d: %v", l.Self, ev.Kind, ev.Time, last, err)
					}
					last = ev.Time
				}
			}
			if want := countOf(native, otf2.EventMpiCollectiveEnd,
				otf2.EventNonBlockingCollectiveComplete); res.Collectives != want ||
				countOf(a, otf2.EventMpiCollectiveEnd) != want ||
				countOf(a, otf2.EventMpiCollectiveBegin) != want {
				t.Errorf("%d collectives, want %d", res.Collectives, want)
			}
		})
	}
}

// pipit reads the simple view of every recording: all regions of all rows, each enter with its leave, and who sent how
// much to whom.
func TestPipitReadsSimpleViews(t *testing.T) {
	python := need.Pipit(t)
	for name, changes := range simplePlays(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			native, res := simpleView(t, name, changes)
			cmd := exec.Command(python, "reference/read_pipit.py", filepath.Dir(res.Archive))
			out := testkit.Output(t, cmd)
			var got struct {
				Rows []struct {
					Process, Thread, Enters, Leaves, Unmatched, Negative int
				}
				Matrix [][]float64
			}
			testkit.Must(t, json.Unmarshal(out, &got))
			a := opened(t, res.Archive)
			first := make(map[otf2.LocationGroupRef]otf2.LocationRef)
			for _, l := range slices.Backward(a.Defs.Locations) {
				first[l.Group] = l.Self
			}
			var rows []string
			for _, r := range got.Rows {
				l := a.Defs.Location(first[otf2.LocationGroupRef(r.Process)] + otf2.LocationRef(r.Thread))
				rows = append(rows, fmt.Sprintf("%s: %d enters, %d leaves", a.Defs.String(l.Name), r.Enters, r.Leaves))
				testkit.Check(t, r.Unmatched+r.Negative <= 0,
					"%s: %d enters and leaves without the other, %d of negative length", rows[len(rows)-1], r.Unmatched,
					r.Negative)
			}
			slices.Sort(rows)
			testkit.Same(t, rowsOf(native), rows)
			for i := range got.Matrix { // what a rank sends itself is no communication to `report`
				got.Matrix[i][i] = 0
			}
			testkit.Same(t, matrixOf(native, a), got.Matrix)
		})
	}
}

// simpleView plays a recording and makes the simple view of its archive.
func simpleView(t *testing.T, name string, changes []change) (*otf2.Archive, *view.SimpleResult) {
	t.Helper()
	if len(changes) > 0 {
		name = name[:len("05-p2p-3p")]
	}
	dir, _ := play(t, recording(t, name), append(changes, clock(replay.ClockRecorded))...)
	res := testkit.Value(view.Simple(filepath.Join(dir, "traces.otf2"), filepath.Join(dir, "simple"), nil))(t)
	testkit.Check(t, len(res.Problems) == 0 && res.Others+res.Unplaced <= 0, "%+v", res)
	return opened(t, filepath.Join(dir, "traces.otf2")), res
}

func opened(t *testing.T, anchor string) *otf2.Archive {
	t.Helper()
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	t.Cleanup(func() { a.Close() })
	return a
}

// rowsOf lists the locations that have events, with their enters and leaves.
func rowsOf(a *otf2.Archive) (rows []string) {
	for _, l := range a.Defs.Locations {
		if l.Type == otf2.LocationTypeMetric || l.Events == 0 {
			continue
		}
		n := make(map[otf2.EventKind]int)
		for ev := range a.EventsOf(l.Self) {
			n[ev.Kind]++
		}
		rows = append(rows, fmt.Sprintf("%s: %d enters, %d leaves", a.Defs.String(l.Name), n[otf2.EventEnter],
			n[otf2.EventLeave]))
	}
	slices.Sort(rows)
	return rows
}

func countOf(a *otf2.Archive, kinds ...otf2.EventKind) (n uint64) {
	for ev := range a.Events(&otf2.Selection{Kinds: otf2.Kinds(kinds...)}) {
		if ev != nil {
			n++
		}
	}
	return n
}

// matrixOf is what `report --matrix` has, by the processes of the view.
func matrixOf(native, simple *otf2.Archive) [][]float64 {
	process := make(map[string]int)
	for _, g := range simple.Defs.LocationGroups {
		process[simple.Defs.String(g.Name)] = int(g.Self)
	}
	m := make([][]float64, len(process))
	for i := range m {
		m[i] = make([]float64, len(process))
	}
	r := matrix.Read(native, nil)
	flows := r.Ranks
	if len(r.Networks) == 0 {
		flows = r.Nominal
	}
	for _, f := range flows {
		m[process[f.From]][process[f.To]] = float64(f.Bytes)
	}
	return m
}
