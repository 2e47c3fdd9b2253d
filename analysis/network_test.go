// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/scorep/jobtest"
	"github.com/nccl-otf2/nccl-otf2/scorep/shardtest"
)

func networks(a *otf2.Archive) ([]NetworkMatrix, []string) {
	r := Matrix(a)
	return r.Networks, r.Problems
}

// networkJob is a job with transfers in a ring; rank 1 sends some for rank 0 (PXN).
func networkJob(t testing.TB) string {
	t.Helper()
	var origin uint16
	return makeJob(t, func(r int, p *shardtest.Process) {
		p.Network(0)
		for i := range uint64(3) {
			p.Put(0, (r+1)%3, t0+(310+20*i)*us, t0+(320+20*i)*us, 1000+uint64(r))
		}
		p.Put(0, (r+2)%3, t0+390*us, t0+395*us, 7)
		switch r {
		case 0:
			origin = p.Shard.Tag
		case 1:
			f := p.Foreign(experiment.ForeignComm{Tag: origin, Rank: 0, PID: 100})
			p.Put(-1-f, 2, t0+400*us, t0+401*us, 500)
		}
	})
}

func TestTheNetworkMatrixIsThatOfThePuts(t *testing.T) {
	path := networkJob(t)
	if res := check(t, path); len(res.Findings) > 0 {
		t.Errorf("findings:\n%s", lines(res))
	}
	got, problems := networks(jobtest.Open(t, path))
	want := []NetworkMatrix{{
		Communicator: "world", Comm: 1, Ranks: 3, Total: Traffic{13, 3*1000 + 3*1001 + 3*1002 + 21 + 500},
		Cells: []Cell{
			{0, 1, Traffic{3, 3000}}, {0, 2, Traffic{2, 507}}, {1, 0, Traffic{1, 7}}, {1, 2, Traffic{3, 3003}},
			{2, 0, Traffic{3, 3006}}, {2, 1, Traffic{1, 7}},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Error(problems, diff)
	}
	// The rest of the report does not take the network for a communicator of the program.
	with, without := operationsOfArchive(t, path).Summary, operationsOfArchive(t, makeJob(t, nil)).Summary
	if with.Communicators != without.Communicators || with.Ranks != without.Ranks || with.GPUs != without.GPUs || with.Processes != without.Processes {
		t.Errorf("with a network %+v,\nwithout %+v", with, without)
	}
}

func TestSendersThatAreNotToldAreNotGuessed(t *testing.T) {
	s := load(t, networkJob(t))
	told := 0 // whose sends: rank 0's only
	s.defs.LocationProperties = slices.DeleteFunc(s.defs.LocationProperties, func(p otf2.LocationProperty) bool {
		if s.defs.String(p.Name) == facts.PropRank.Key() {
			told++
		}
		return told > 1
	})
	got, _ := networks(jobtest.Open(t, s.write()))
	if len(got) != 1 || got[0].UnknownSender.Transfers != 9 || len(got[0].Cells) != 2 || got[0].Total.Transfers != 13 {
		t.Errorf("%+v", got)
	}
}

func TestArchivesWithoutNetworksHaveNoMatrix(t *testing.T) {
	for _, path := range []string{makeJob(t, nil), filepath.Join("testdata", "scorep-mpi", "traces.otf2")} {
		if got, problems := networks(jobtest.Open(t, path)); len(got) > 0 || len(problems) > 0 {
			t.Errorf("%s: %+v, %v", path, got, problems)
		}
	}
}

// Whatever is sent by whomever: the matrix has it where it belongs.
func TestNetworkMatrixOfAnyJob(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "job")
		if err != nil {
			rt.Fatal(err)
		}
		size := rapid.IntRange(2, 5).Draw(rt, "ranks")
		var procs []*shardtest.Process
		for r := range size {
			p := shardtest.New(t, dir, fmt.Sprint("p", r)).On("node0", r).Launched("slurm", r, size)
			p.GPU(r, "", "")
			p.Comm(experiment.Comm{ID: 1, Name: "world", NRanks: size, Rank: size - 1 - r, InitTime: t0})
			if rapid.Bool().Draw(rt, "network") {
				p.Network(0)
				procs = append(procs, p)
			} else {
				p.Finish()
			}
		}
		want := make(map[[2]int]Traffic)
		now := uint64(t0)
		for range rapid.IntRange(0, 20).Draw(rt, "transfers") {
			if len(procs) == 0 {
				break
			}
			now += 1000
			p := rapid.SampledFrom(procs).Draw(rt, "sender")
			to, bytes := rapid.IntRange(0, size-1).Draw(rt, "receiver"), rapid.Uint64Range(1, 1<<40).Draw(rt, "bytes")
			p.Put(0, to, now, now+500, bytes)
			at := [2]int{p.Shard.Comms[0].Rank, to}
			cell := want[at]
			cell.add(bytes)
			want[at] = cell
		}
		for _, p := range procs {
			p.Finish()
		}
		anchor := jobtest.Unify(t, dir)
		if res := check(t, anchor); res.Errors() > 0 {
			rt.Errorf("findings:\n%s", lines(res))
		}
		got := make(map[[2]int]Traffic)
		matrices, _ := networks(jobtest.Open(t, anchor))
		for _, m := range matrices {
			for _, c := range m.Cells {
				got[[2]int{c.From, c.To}] = c.Traffic
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || (len(matrices) == 1) != (len(procs) > 0) {
			rt.Error(len(matrices), diff)
		}
	})
}

func TestDefectsOfNetworksAndPausesAreFound(t *testing.T) {
	original := networkJob(t)
	sends := otf2.LocationRef(2 << 32) // of rank 0
	findDefects(t, check, func(t testing.TB) *sample { return load(t, original) }, []defect{
		{"put to a rank that is not there", func(s *sample) { s.find(sends, otf2.EventRmaPut, 0).Args[1] = 7 },
			`error: rank: location 8589934592, event 2, time 1760000000001310000: RmaPut: rank 7 of "world network", which has 7 ranks`},
		{"put by a location that is no member", func(s *sample) {
			s.insert(thread(0), 1, otf2.Event{Kind: otf2.EventRmaPut, Time: t0 + 102*us, Args: []uint64{0, 1, 8, 1}})
			s.insert(thread(0), 2, otf2.Event{Kind: otf2.EventRmaOpCompleteBlocking, Time: t0 + 102*us, Args: []uint64{0, 1}})
		}, `error: communicator: location 0, event 2, time 1760000000001102000: RmaPut: the location is no member of "world network"`},
		{"put that never ends", func(s *sample) {
			s.remove(sends, s.index(sends, otf2.EventRmaOpCompleteNonBlocking, 1), 1)
		}, "error: request: location 8589934592, event 6, time 1760000000001330000: the RMA operation of matching id 1 is never completed"},
		{"window of no communicator", func(s *sample) { s.defs.RmaWins[0].Comm = 9 }, "error: reference: RMA window 0: communicator 9 is not defined"},
		{"window without a name", func(s *sample) { s.defs.RmaWins[0].Name = 9999 }, "error: reference: name of RMA window 0: string 9999 is not defined"},
		{"property of no location", func(s *sample) { s.defs.LocationProperties[0].Location = 99 }, "error: reference: property of location 99, which is not defined"},
		{"phases in the wrong order", func(s *sample) { s.find(sends, otf2.EventLeave, 0).Args[0] = 0 }, "error: nesting: location 8589934592, event 4"},
		{"off twice", func(s *sample) {
			for i := range 2 {
				s.insert(stream(0), 1+i, otf2.Event{Kind: otf2.EventMeasurementOnOff, Time: t0 + 100*us, Args: []uint64{uint64(otf2.MeasurementOff)}})
			}
		}, "error: measurement: location 4294967296, event 3, time 1760000000001100000: recording goes off, but is off since event 2"},
		{"on without off", func(s *sample) {
			s.insert(stream(0), 1, otf2.Event{Kind: otf2.EventMeasurementOnOff, Time: t0 + 100*us, Args: []uint64{uint64(otf2.MeasurementOn)}})
		}, "recording goes on, but was not off"},
		{"marker that lasts too long", func(s *sample) {
			s.markers = []otf2.Marker{{Time: t0 + 5*us, Duration: 1 << 62, Marker: 0, ScopeType: otf2.MarkerScopeGlobal}}
		}, "error: time-range: marker 0 at 1760000000001005000 lasts 4611686018427387904, beyond the clock properties"},
	})
	s := load(t, original)
	for i, mode := range []otf2.MeasurementMode{otf2.MeasurementOff, otf2.MeasurementOn, otf2.MeasurementOff} {
		s.insert(stream(0), 1+i, otf2.Event{Kind: otf2.EventMeasurementOnOff, Time: t0 + 100*us, Args: []uint64{uint64(mode)}})
	}
	if res := check(t, s.write()); len(res.Findings) > 0 {
		t.Errorf("in turn:\n%s", lines(res))
	}
}

func TestArchivesTellOfTheirMaking(t *testing.T) {
	path := makeJob(t, func(r int, p *shardtest.Process) {
		if r == 2 {
			p.Shard.Clock.Source, p.Shard.LibraryPath = "monotonic", "/opt/a|b: processes 9/libnccl.so"
		}
		c := &p.Shard.Counts
		c.Starts = map[string]uint64{"Coll": 4, "ProxyStep": 100}
		c.Paused = map[string]uint64{"Coll": 3}
		if r > 0 {
			c.Lost = map[string]map[string]uint64{"ring": {"ProxyStep": uint64(r)}}
		}
		p.Shard.Comms[0].Gaps = []experiment.Gap{{From: 2, To: 4, FromTime: t0 + 200*us, ToTime: t0 + 300*us}}
		p.Shard.Costs = []experiment.Cost{{Callback: "start", Type: "ProxyStep", Samples: 10, MeanNs: 17.5, MostNs: 90}}
	})
	a := jobtest.Open(t, path)
	s := SelfReport(a)
	s.Archive = "traces.otf2"
	var text, table, markdown bytes.Buffer
	for _, err := range []error{s.WriteText(&text), s.WriteCSV(&table), s.WriteMarkdown(&markdown)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	golden.Text(t, "testdata/self.txt", text.String())
	golden.Text(t, "testdata/self.csv", table.String())
	golden.Text(t, "testdata/self.md", markdown.String())
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(rows) < 20 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	var out bytes.Buffer
	if err := s.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var back Self
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*s, back); diff != "" {
		t.Error(diff)
	}
	// An archive of another tool says nothing of itself.
	other := SelfReport(jobtest.Open(t, filepath.Join("testdata", "scorep-mpi", "traces.otf2")))
	if len(other.Recording)+len(other.Costs)+len(other.Counts)+len(other.Remarks) > 0 || !other.Complete {
		t.Errorf("%+v", other)
	}
}

// A collector that died leaves an archive that says so and is sound.
func TestContinuedProcessesAreSound(t *testing.T) {
	dir := t.TempDir()
	var before map[string]experiment.Sequence
	for _, uuid := range []string{"p0", "p1", "p1-again"} {
		rank := int(uuid[1] - '0')
		p := shardtest.New(t, dir, uuid).On("node0", rank).Launched("slurm", rank, 2)
		p.Shard.Tag, p.Shard.Host = uint16(rank+1), hostname(t)
		p.GPU(rank, "", "")
		comm := experiment.Comm{ID: 1, Name: "world", NRanks: 2, Rank: rank, InitTime: t0}
		if uuid == "p1-again" {
			comm.Sequences = maps.Clone(before)
		}
		p.Comm(comm)
		p.Network(0)
		first, n := uint64(0), uint64(130)
		if rank == 1 {
			n = 65
		}
		if uuid == "p1-again" {
			first = 65
			p.Shard.Settings = map[string]string{experiment.SettingContinues: "p1"}
		}
		for i := range n {
			p.AllReduce(0, t0+(first+i+1)*us, t0+(first+i+1)*us+500, 10)
			p.Put(0, 1-rank, t0+(first+i+1)*us, t0+(first+i+1)*us+500, 40)
		}
		if uuid == "p1" {
			before = p.Shard.Comms[0].Sequences
			p.Flush()
			p.Crash(-1, nil)
		} else {
			p.Finish()
		}
	}
	out, err := scorep.Unify(dir, nil)
	if err != nil || len(out.Runs) != 1 || !out.Runs[0].Complete { // nothing was in the memory of the one that died
		t.Fatalf("%+v, %v", out, err)
	}
	if res := check(t, out.Runs[0].Archive); res.Errors() > 0 || len(res.Findings) > 0 {
		t.Errorf("findings:\n%s", lines(res))
	}
	matrices, _ := networks(jobtest.Open(t, out.Runs[0].Archive))
	want := []Cell{{0, 1, Traffic{130, 130 * 40}}, {1, 0, Traffic{130, 130 * 40}}}
	if len(matrices) != 1 || cmp.Diff(want, matrices[0].Cells) != "" {
		t.Errorf("%+v", matrices)
	}
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}
