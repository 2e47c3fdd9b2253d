// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

func TestSoundArchivesHaveNoFindings(t *testing.T) {
	path := jobtest.Typical(t, nil)
	if res := jobtest.Check(t, path); len(res.Findings) > 0 || res.Events == 0 {
		t.Errorf("as unified, %d events:\n%s", res.Events, jobtest.Lines(res))
	}
	res := jobtest.Check(t, jobtest.Load(t, path).Write())
	testkit.Check(t, len(res.Findings) == 0, "written again:\n%s", jobtest.Lines(res))
}

const incomplete = "OTF2::MPI_COMMUNICATION_COMPLETE"

func TestEachDefectIsFound(t *testing.T) {
	original := jobtest.Typical(t, nil)
	sample := func() *jobtest.Sample { return jobtest.Load(t, original) }
	jobtest.FindDefects(t, "testdata/defects.txt", jobtest.Check, sample, jobtest.Defects{
		{"regions left in the wrong order", func(s *jobtest.Sample) {
			s.Find(jobtest.Thread(0), otf2.EventLeave, 0).Args[0] = 1
		}},
		{"leave without enter", func(s *jobtest.Sample) { s.Remove(jobtest.Thread(1), 0, 1) }},
		{"enter without leave", func(s *jobtest.Sample) { s.Remove(jobtest.Thread(1), 3, 1) }},
		{"time that goes back", func(s *jobtest.Sample) {
			s.Patch(jobtest.Thread(0), func(b []byte) []byte {
				// Header, time stamp and Enter; then the second time stamp.
				binary.LittleEndian.PutUint64(b[18+9+2+1:], t0+1)
				return b
			})
		}},
		{"event before the clock's begin", func(s *jobtest.Sample) { s.Defs.Clock.Offset += 50 * us }},
		{"event after the clock's end", func(s *jobtest.Sample) { s.Defs.Clock.Length -= 50 * us }},
		{"resolution 0", func(s *jobtest.Sample) { s.Defs.Clock.Resolution = 0 }},
		{"undefined region in an event", func(s *jobtest.Sample) {
			s.Find(jobtest.Thread(2), otf2.EventEnter, 1).Args[0] = 77
		}},
		{"undefined communicator in an event", func(s *jobtest.Sample) {
			s.Find(jobtest.Stream(2), otf2.EventMpiCollectiveEnd, 1).Args[1] = 9
		}},
		{"undefined attribute", func(s *jobtest.Sample) {
			s.Find(jobtest.Stream(0), otf2.EventEnter, 0).Attributes[0].ID = 999
		}},
		{"undefined string in an attribute", func(s *jobtest.Sample) {
			s.Find(jobtest.Stream(0), otf2.EventEnter, 0).Attributes[1].Bits = 5000
		}},
		{"attribute of another type", func(s *jobtest.Sample) {
			s.Find(jobtest.Stream(0), otf2.EventEnter, 0).Attributes[0].Type = otf2.TypeUint32
		}},
		{"ids that are not dense", func(s *jobtest.Sample) { s.Defs.Regions[2].Self = 40 }},
		{"location defined twice", func(s *jobtest.Sample) { s.Defs.Locations[1].Self = s.Defs.Locations[0].Self }},
		{"string that is not defined", func(s *jobtest.Sample) { s.Defs.Regions[0].Name = 7777 }},
		{"parent after child", func(s *jobtest.Sample) { s.Defs.SystemTreeNodes[1].Parent = 3 }},
		{"group member out of range", func(s *jobtest.Sample) { s.Group(otf2.GroupTypeCommGroup).Members[1] = 17 }},
		{"communicator of a group of regions", func(s *jobtest.Sample) {
			s.Defs.Comms[0].Group = s.Group(otf2.GroupTypeRegions).Self
		}},
		{"location that is not defined in COMM_LOCATIONS",
			func(s *jobtest.Sample) { s.Group(otf2.GroupTypeCommLocations).Members[0] = 999 }},
		{"process without a thread", func(s *jobtest.Sample) { s.Defs.Locations[0].Type = otf2.LocationTypeMetric }},
		{"stream in a process", func(s *jobtest.Sample) { s.Location(jobtest.Stream(1)).Group = 1 }},
		{"accelerator that nobody created", func(s *jobtest.Sample) {
			s.Defs.LocationGroups[4].Creator = otf2.UndefinedLocationGroup
		}},
		{"wrong number of events in a definition", func(s *jobtest.Sample) { s.Location(jobtest.Stream(1)).Events++ }},
		{"wrong number of events in a header", func(s *jobtest.Sample) {
			s.Patch(jobtest.Stream(1), func(b []byte) []byte { b[10]++; return b })
		}},
		{"wrong number of definitions", func(s *jobtest.Sample) { s.Anchor.GlobalDefs = 12345 }},
		{"wrong number of locations", func(s *jobtest.Sample) { s.Anchor.Locations = 7 }},
		{"truncated event file", func(s *jobtest.Sample) {
			s.Patch(jobtest.Stream(1), func(b []byte) []byte { return b[:len(b)-20] })
		}},
		{"missing event file", func(s *jobtest.Sample) { s.Drop[jobtest.Thread(1)] = true }},
		{"collective end without begin", func(s *jobtest.Sample) {
			s.Remove(jobtest.Stream(0), s.Index(jobtest.Stream(0), otf2.EventMpiCollectiveBegin, 0), 1)
		}},
		{"collective begun twice", func(s *jobtest.Sample) {
			i := s.Index(jobtest.Stream(0), otf2.EventMpiCollectiveBegin, 0)
			s.Insert(jobtest.Stream(0), i, s.Events[jobtest.Stream(0)][i].Clone())
		}},
		{"collective without end", func(s *jobtest.Sample) {
			s.Remove(jobtest.Stream(0), s.Index(jobtest.Stream(0), otf2.EventMpiCollectiveEnd, 2), 1)
		}},
		{"collective outside a region", func(s *jobtest.Sample) {
			i := s.Index(jobtest.Stream(0), otf2.EventMpiCollectiveBegin, 0)
			s.Events[jobtest.Stream(0)][i], s.Events[jobtest.Stream(0)][i-1] =
				s.Events[jobtest.Stream(0)][i-1], s.Events[jobtest.Stream(0)][i]
		}},
		{"request never completed", func(s *jobtest.Sample) {
			s.Remove(jobtest.Stream(0), s.Index(jobtest.Stream(0), otf2.EventMpiIsendComplete, 1), 1)
		}},
		{"request completed twice", func(s *jobtest.Sample) {
			i := s.Index(jobtest.Stream(0), otf2.EventMpiIsendComplete, 0)
			s.Insert(jobtest.Stream(0), i, s.Events[jobtest.Stream(0)][i].Clone())
		}},
		{"request used twice", func(s *jobtest.Sample) {
			s.Find(jobtest.Stream(0), otf2.EventNonBlockingCollectiveRequest, 1).Args[0] = s.Find(
				jobtest.Stream(0), otf2.EventNonBlockingCollectiveRequest, 0).Args[0]
		}},
		{"request of another kind", func(s *jobtest.Sample) {
			*s.Find(jobtest.Stream(0), otf2.EventMpiIsendComplete, 0) = s.With(
				jobtest.Stream(0), otf2.EventMpiIsendComplete, 0, otf2.EventNonBlockingCollectiveComplete, 7, 0,
				uint64(otf2.CollectiveRootNone), 1200, 1200, 3)
		}},
		{"communicator used before its creation", func(s *jobtest.Sample) { s.Remove(jobtest.Stream(0), 0, 1) }},
		{"communicator created twice", func(s *jobtest.Sample) {
			s.Insert(jobtest.Stream(0), 1, s.Events[jobtest.Stream(0)][0].Clone())
		}},
		{"communicator that one member does not destroy", func(s *jobtest.Sample) {
			s.Remove(jobtest.Stream(1), len(s.Events[jobtest.Stream(1)])-1, 1)
		}},
		{"communicator created by a member too few", func(s *jobtest.Sample) {
			e := s.Events[jobtest.Stream(1)]
			i := s.Index(jobtest.Stream(1), otf2.EventEnter, 0)
			s.Events[jobtest.Stream(1)] = []otf2.Event{e[i], e[i+3]} // a region in which nothing happens
			s.Recount()
		}},
		{"communicator used after its end", func(s *jobtest.Sample) {
			n := len(s.Events[jobtest.Stream(0)])
			d := s.Events[jobtest.Stream(0)][n-1].Clone()
			s.Remove(jobtest.Stream(0), n-1, 1)
			d.Time = t0 + 460*us
			s.Insert(jobtest.Stream(0), s.Index(jobtest.Stream(0), otf2.EventMpiIsend, 0)-1, d)
		}},
		{"communicator used by no member", func(s *jobtest.Sample) {
			s.Insert(jobtest.Thread(0), 1, otf2.Event{Kind: otf2.EventMpiSend, Time: t0 + 102*us,
				Args: []uint64{1, 0, 0, 4}})
		}},
		{"root out of range", func(s *jobtest.Sample) {
			s.Find(jobtest.Stream(0), otf2.EventMpiCollectiveEnd, 2).Args[2] = 3
		}},
		{"peer out of range", func(s *jobtest.Sample) { s.Find(jobtest.Stream(0), otf2.EventMpiIsend, 0).Args[0] = 5 }},
		{"collective that one member lacks", func(s *jobtest.Sample) {
			s.Remove(jobtest.Stream(1), s.Index(jobtest.Stream(1), otf2.EventEnter, 2), 4)
		}},
		{"collective recorded twice", func(s *jobtest.Sample) {
			i := s.Index(jobtest.Stream(1), otf2.EventEnter, 0)
			for k := range 4 {
				s.Insert(jobtest.Stream(1), i+4+k, s.Events[jobtest.Stream(1)][i+k].Clone())
				s.Events[jobtest.Stream(1)][i+4+k].Time = t0 + 160*us
			}
		}},
		{"different roots", func(s *jobtest.Sample) {
			e := s.Find(jobtest.Stream(2), otf2.EventMpiCollectiveEnd, 2)
			e.Args[2] = 0
		}},
		{"different sizes", func(s *jobtest.Sample) {
			e := s.Find(jobtest.Stream(2), otf2.EventMpiCollectiveEnd, 1)
			e.Args[3], e.Args[4] = 6000, 6000
		}},
		{"sizes of no such operation", func(s *jobtest.Sample) {
			s.Find(jobtest.Stream(1), otf2.EventMpiCollectiveEnd, 2).Args[3] = 800
		}},
		{"message without receive", func(s *jobtest.Sample) {
			s.Remove(jobtest.Stream(2), s.Index(jobtest.Stream(2), otf2.EventMpiIrecvRequest, 0)-1, 4)
		}},
		{"message of another length", func(s *jobtest.Sample) {
			s.Find(jobtest.Stream(1), otf2.EventMpiIrecv, 1).Args[3] = 65
		}},
		{"counter that is not right", func(s *jobtest.Sample) { s.Property("NCCL_OTF2::TIMING::GPU", "4") }},
		{"number of processes that is not right", func(s *jobtest.Sample) { s.Property("NCCL_OTF2::PROCESSES", "4") }},
		{"what is missing where that is told", func(s *jobtest.Sample) {
			s.Property(incomplete, "false")
			s.Remove(jobtest.Stream(1), s.Index(jobtest.Stream(1), otf2.EventEnter, 2), 4)
		}},
		{"RMA window that is not defined", func(s *jobtest.Sample) {
			s.Insert(jobtest.Thread(0), 1, otf2.Event{Kind: otf2.EventRmaPut, Time: t0 + 102*us,
				Args: []uint64{0, 1, 8, 1}})
		}},
		{"RMA operation never completed", func(s *jobtest.Sample) {
			s.Defs.RmaWins = []otf2.RmaWin{{Name: 0}}
			s.Insert(jobtest.Thread(0), 1, otf2.Event{Kind: otf2.EventRmaPut, Time: t0 + 102*us,
				Args: []uint64{0, 1, 8, 1}})
		}},
		{"RMA completion of nothing", func(s *jobtest.Sample) {
			s.Defs.RmaWins = []otf2.RmaWin{{Name: 0}}
			s.Insert(jobtest.Thread(0), 1, otf2.Event{Kind: otf2.EventRmaOpCompleteNonBlocking, Time: t0 + 102*us,
				Args: []uint64{0, 7}})
		}},
		{"marker outside the clock and of nothing", func(s *jobtest.Sample) {
			s.Markers = []otf2.Marker{{Time: t0 - 5, Marker: 0, ScopeType: otf2.MarkerScopeComm, Scope: 4}}
		}},
	})
}

func TestFindingsAreLimitedByRule(t *testing.T) {
	s := jobtest.Load(t, jobtest.Typical(t, nil))
	for i := range s.Events[jobtest.Stream(0)] {
		if ev := &s.Events[jobtest.Stream(0)][i]; ev.Kind == otf2.EventEnter || ev.Kind == otf2.EventLeave {
			ev.Args[0] = 500
		}
	}
	res := testkit.Value(check.Archive(s.Write(), &check.Options{Limit: 3}))(t)
	if n := uint64(2*6 - 3); res.Dropped[check.RuleReference] != n || res.Errors() < int(n)+3 {
		t.Errorf("dropped %v, %d errors:\n%s", res.Dropped, res.Errors(), jobtest.Lines(res))
	}
}

func TestNoArchiveIsAnError(t *testing.T) {
	_, err := check.Archive(filepath.Join(t.TempDir(), "traces.otf2"), nil)
	testkit.Check(t, err != nil, "no error")
	path := filepath.Join(t.TempDir(), "traces.otf2")
	testkit.Must(t, os.WriteFile(path, []byte("no archive"), 0o666))
	_, err = check.Archive(path, nil)
	testkit.Check(t, err != nil, "no error")
}

func TestArchivesOfIncompleteJobsHaveNotesOnly(t *testing.T) {
	dir := t.TempDir()
	for r := range 3 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).Launched("slurm", r, 4) // rank 3 left nothing
		p.Shard.Host, _ = os.Hostname()
		p.GPU(r, "", "")
		c := p.Comm(description.Comm{ID: 1, NRanks: 4, Rank: r, InitTime: t0})
		for i := range uint64(100 - r) { // the ranks had got to different points
			p.AllReduce(c, t0+i*1000+10, t0+i*1000+900, 100)
		}
		p.Flush()
		p.Crash(-1, nil)
	}
	out := testkit.Value(scorep.Unify(dir, nil))(t)
	testkit.Check(t, out.Runs[0].Crashed == 3 && out.Runs[0].Missing == 1, "%+v", out.Runs[0])
	res := jobtest.Check(t, out.Runs[0].Archive)
	testkit.Check(t, res.Errors() == 0, "findings:\n%s", jobtest.Lines(res))
	rep := jobtest.Operations(t, out.Runs[0].Archive)
	testkit.Check(t, !rep.Summary.Complete && rep.Summary.Crashed == 3 && rep.Summary.Missing == 1 &&
		rep.Summary.Differences == 1, "%+v", rep.Summary)
	// The operations that all ranks have are compared, whatever their digests cover.
	testkit.Check(t, len(rep.Operations) == 1 && rep.Operations[0].Count == 98 && rep.Summary.LeftOut == 2+1,
		"%+v, %d left out", rep.Operations, rep.Summary.LeftOut)
}

// Archives of established tools must pass: a check with false alarms is of no use.
func TestArchivesOfOthersAreSound(t *testing.T) {
	for _, name := range []string{"scorep-mpi/traces.otf2", "scalasca-min/traces.otf2", "collectives/nccl.otf2"} {
		res := jobtest.Check(t, filepath.Join("..", "..", "..", "tests", "jobtest", "testdata", name))
		testkit.Check(t, len(res.Findings) == 0 && res.Events != 0,
			"%s, %d events:\n%s", name, res.Events, jobtest.Lines(res))
	}
}

// A job that is recorded completely gives an archive without findings, whatever communicators and operations it has,
// and the report counts what was done.
func TestWholeJobsAreSound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(rt, "processes")
		perProcess := rapid.IntRange(1, 2).Draw(rt, "GPUs per process")
		launched := rapid.Bool().Draw(rt, "launched")
		ranks := size * perProcess
		dir := testkit.Value(os.MkdirTemp(t.TempDir(), "job"))(rt)
		var procs []*shardtest.Process
		for i := range size {
			p := shardtest.New(t, dir, fmt.Sprint("p", i)).On(fmt.Sprint("node", i%2), 50-i)
			if launched {
				p.Launched("pmix", i, size)
			}
			for g := range perProcess {
				p.GPU(g, "", "")
			}
			procs = append(procs, p)
		}
		// at is a rank's process and local communicator.
		type at struct {
			p    *shardtest.Process
			comm int
		}
		now := uint64(t0)
		operations := uint64(0)
		for c := range rapid.IntRange(1, 4).Draw(rt, "communicators") {
			var members []int
			if c == 0 { // it spans the job
				for r := range ranks {
					members = append(members, r)
				}
			} else {
				members = rapid.Permutation(sequence(ranks)).Draw(
					rt, "members")[:rapid.IntRange(1, ranks).Draw(rt, "size")]
			}
			id := rapid.Uint64Range(1, 2).Draw(rt, "id")
			var all []at
			for rank, r := range members {
				p := procs[r/perProcess]
				all = append(all, at{p, p.Comm(description.Comm{ID: id, NRanks: len(members), Rank: rank,
					GPU: r % perProcess, InitTime: now})})
			}
			for range rapid.IntRange(0, 5).Draw(rt, "operations") {
				now += 1000
				n := rapid.Uint64Range(1, 1<<20).Draw(rt, "elements")
				kind := rapid.IntRange(0, 2).Draw(rt, "kind")
				if len(members) < 2 {
					kind = 0
				} else {
					operations += uint64([]int{1, 2, 1}[kind])
				}
				if kind == 2 {
					dst := rapid.IntRange(1, len(members)-1).Draw(rt, "receiver")
					all[0].p.Send(all[0].comm, dst, now, now+500, n)
					all[dst].p.Recv(all[dst].comm, 0, now, now+500, n)
					continue
				}
				for _, m := range all {
					delay := rapid.Uint64Range(0, 400).Draw(rt, "delay")
					if kind == 0 {
						m.p.AllReduce(m.comm, now+delay, now+500, n)
						continue
					}
					root := uint32(n % uint64(len(members)))
					b := shardtest.Op{Function: "Broadcast", Begin: now + delay, End: now + 500, Root: root, Count: n}
					g := shardtest.Op{Function: "AllGather", Begin: now + delay, End: now + 500, Count: n}
					m.p.Plan(m.comm, []shardtest.Op{b, g})
				}
			}
			now += 1000
			if c > 0 && rapid.Bool().Draw(rt, "destroyed") {
				for _, m := range all {
					m.p.Destroy(m.comm, now)
				}
				now += 1000
			}
		}
		for _, p := range procs {
			p.Finish()
		}
		out := testkit.Value(scorep.Unify(dir, nil))(rt)
		testkit.Require(rt, len(out.Runs) == 1 && out.Runs[0].Complete, "%+v", out)
		res := jobtest.Check(t, out.Runs[0].Archive)
		for _, f := range res.Findings {
			testkit.Check(rt, f.Severity != check.Error, "%v", f)
		}
		rep := jobtest.Operations(t, out.Runs[0].Archive)
		testkit.Check(rt, rep.Summary.Operations == operations && rep.Summary.Unfinished == 0,
			"%d operations, want %d; %d unfinished", rep.Summary.Operations, operations, rep.Summary.Unfinished)
	})
}

func sequence(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// Times in the test jobs.
const (
	t0 = jobtest.T0
	us = jobtest.Microsecond
)
