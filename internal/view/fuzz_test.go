// SPDX-License-Identifier: Apache-2.0

package view

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2test"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/scoutrules"
)

// FuzzView: whatever stands in an archive's definitions and in one rank's events, its view is an error, or an archive
// that scout can carry out.
func FuzzView(f *testing.F) {
	m := makeJob(f, 3)
	world, pair := m.comm("world", 0, 1, 2), m.comm("pair", 2, 0)
	for r, c := range world {
		late := uint64(r) * us
		c.one(f, late, 10*us, "AllReduce", -1)
		c.plan(f, 20*us+late, 30*us, regions.TimingGPU, "", item{fn: "Broadcast", peer: 1, sent: 8},
			item{fn: "Reduce", peer: 2, sent: 8})
		c.plan(f, 40*us+late, 50*us, regions.TimingGPU, "", item{fn: "Send", peer: (r + 1) % 3, sent: 8},
			item{fn: "Recv", peer: (r + 2) % 3, sent: 8})
	}
	for _, c := range pair {
		c.one(f, 45*us, 60*us, "AllGather", -1)
	}
	anchor := m.unify()
	rank0 := ""
	read := func(path string) []byte { return testkit.Value(os.ReadFile(path))(f) }
	files := testkit.Value(filepath.Glob(filepath.Join(filepath.Dir(anchor), "traces", "*.evt")))(f)
	for _, path := range files { // the largest that is there first
		if rank0 == "" || len(read(path)) > len(read(rank0)) {
			rank0 = path
		}
	}
	defs, events := read(filepath.Join(filepath.Dir(anchor), "traces.def")), read(rank0)
	f.Add(defs, events)
	for _, n := range []int{0, 9, 100, len(events) / 2, len(events) - 1} {
		f.Add(defs, events[:n])
		f.Add(defs[:min(n, len(defs))], events)
	}
	f.Fuzz(func(t *testing.T, defs, events []byte) {
		dir := t.TempDir()
		testkit.Must(t, os.CopyFS(dir, os.DirFS(filepath.Dir(anchor))))
		for path, b := range map[string][]byte{filepath.Join(dir, "traces.def"): defs,
			filepath.Join(dir, "traces", filepath.Base(rank0)): events} {
			if err := os.Remove(path); err != nil { // may be a link to the shard
				t.Fatal(err)
			}
			testkit.Write(t, path, b)
		}
		res, err := Scalasca(filepath.Join(dir, filepath.Base(anchor)), filepath.Join(dir, "scalasca"), nil)
		if err != nil {
			return
		}
		found := testkit.Value(scoutrules.Check(res.Archive, nil))(t)
		for _, f := range found.Findings {
			testkit.Check(t, f.Severity != check.Error, "%v", f)
		}
	})
}

// FuzzSimple: whatever stands in an archive, its simple view is an error, or an archive whose events are in order and
// whole.
func FuzzSimple(f *testing.F) {
	otf2test.Fuzz(f, []string{anyJob(f)}, func(t *testing.T, anchor string) { readSimple(t, anchor) })
}

// anyJob has collectives, messages in a group, and a broadcast of a root.
func anyJob(t testing.TB) (anchor string) {
	m := makeJob(t, 3)
	for r, c := range m.comm("world", 0, 1, 2) {
		c.one(t, 0, 10*us, "AllReduce", -1)
		c.plan(t, 40*us, 50*us, regions.TimingGPU, "", item{fn: "Send", peer: (r + 1) % 3, sent: 8},
			item{fn: "Recv", peer: (r + 2) % 3, sent: 8})
		c.plan(t, 60*us, 70*us, regions.TimingGPU, "", item{fn: "Broadcast", peer: 1, sent: 8})
	}
	return m.unify()
}

// readSimple makes a simple view and reads it to its end.
func readSimple(t *testing.T, anchor string) {
	t.Helper()
	made, err := Simple(anchor, filepath.Join(t.TempDir(), "simple"), nil)
	if err != nil {
		return
	}
	a := testkit.Value(otf2.Open(made.Archive, nil))(t)
	defer a.Close()
	for _, l := range a.Defs.Locations {
		n, last := uint64(0), otf2.Timestamp(0)
		for e, err := range a.EventsOf(l.Self) {
			testkit.Require(t, err == nil, "row %d: %v", l.Self, err)
			testkit.Require(t, n <= 0 || e.Time > last, "row %d: %v follows %v", l.Self, e.Time, last)
			n, last = n+1, e.Time
		}
		testkit.Check(t, n == l.Events, "row %d: %d events, announced: %d", l.Self, n, l.Events)
	}
}

// What happens at a location that is not defined is left out, or the archive is refused.
func TestUndefinedLocations(t *testing.T) {
	otf2test.EachWithoutLocation(t, anyJob(t), func(t *testing.T, anchor string) {
		made, err := Scalasca(anchor, filepath.Join(t.TempDir(), "scalasca"), nil)
		testkit.Check(t, made != nil || err != nil, "neither result nor error")
		readSimple(t, anchor)
	})
}
