// SPDX-License-Identifier: Apache-2.0

package scoutrules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/scoutrules"
)

func checkScalasca(t testing.TB, path string) *check.Result {
	t.Helper()
	return testkit.Value(scoutrules.Check(path, nil))(t)
}

const ms = 1_000_000

const none = otf2.UndefinedComm

// Each of the requirements, broken. What is not an error is a note, or nothing.
func TestEachRequirementOfScalascaIsHeld(t *testing.T) {
	original := func() *jobtest.Sample { return jobtest.SmallestOfScalasca(t) }
	jobtest.FindDefects(t, "testdata/defects.txt", checkScalasca, original, jobtest.Defects{
		{"old format", func(s *jobtest.Sample) { s.Anchor.Version = [3]uint8{1, 1, 0} }},
		{"accelerator stream", func(s *jobtest.Sample) {
			s.Defs.Locations[2].Type = otf2.LocationTypeAcceleratorStream
		}},
		{"metric location without events", func(s *jobtest.Sample) {
			s.Defs.Locations = append(s.Defs.Locations, otf2.Location{Self: 4, Type: otf2.LocationTypeMetric, Group: 3})
			s.Anchor.Locations++
		}},
		{"second thread", func(s *jobtest.Sample) {
			s.Defs.Locations = append(s.Defs.Locations,
				otf2.Location{Self: 4, Type: otf2.LocationTypeCPUThread, Group: 3})
			s.Anchor.Locations++
		}},
		{"accelerator", func(s *jobtest.Sample) { s.Defs.LocationGroups[1].Type = otf2.LocationGroupTypeAccelerator }},
		{"groups not from 0", func(s *jobtest.Sample) {
			for i := range s.Defs.LocationGroups {
				s.Defs.LocationGroups[i].Self++
				s.Defs.Locations[i].Group++
			}
		}},
		{"group without location", func(s *jobtest.Sample) {
			g := s.Defs.LocationGroups[3]
			g.Self = 4
			s.Defs.LocationGroups = append(s.Defs.LocationGroups, g)
		}},
		{"no groups", func(s *jobtest.Sample) { s.Defs.LocationGroups = nil }},
		{"group without node", func(s *jobtest.Sample) {
			s.Defs.LocationGroups[2].SystemTreeParent = otf2.UndefinedSystemTreeNode
		}},
		{"child before parent", func(s *jobtest.Sample) {
			n := s.Defs.SystemTreeNodes
			n[0].Parent, n[1].Parent = 1, otf2.UndefinedSystemTreeNode
		}},
		{"nodes not from 0", func(s *jobtest.Sample) { s.Defs.SystemTreeNodes[1].Self = 7 }},
		{"regions not from 0", func(s *jobtest.Sample) { s.Defs.Regions[5].Self = 9 }},
		{"no machine", func(s *jobtest.Sample) { s.Defs.SystemTreeNodes[0].Class = s.Text("cluster") }},
		{"no node", func(s *jobtest.Sample) { s.Defs.SystemTreeNodes[1].Class = s.Text("host") }},
		{"two lists of MPI's locations", func(s *jobtest.Sample) { s.LocationsOf(otf2.ParadigmMPI) }},
		{"two lists of paradigms that are unknown to it", func(s *jobtest.Sample) {
			s.LocationsOf(otf2.ParadigmHIP)
			s.LocationsOf(otf2.ParadigmKokkos)
		}},
		{"list of CUDA's locations", func(s *jobtest.Sample) { s.LocationsOf(otf2.ParadigmCUDA) }},
		{"communicator of a paradigm without locations",
			func(s *jobtest.Sample) { s.Comm(otf2.ParadigmCUDA, none, 0, 1) }},
		{"operation on a communicator of another paradigm", func(s *jobtest.Sample) {
			s.LocationsOf(otf2.ParadigmCUDA)
			c := s.Comm(otf2.ParadigmCUDA, none, 0, 1, 2, 3)
			s.Find(2, otf2.EventMpiCollectiveEnd, 0).Args[1] = c
		}},
		{"operation on no communicator", func(s *jobtest.Sample) {
			s.Find(2, otf2.EventMpiCollectiveEnd, 0).Args[1] = 9
		}},
		{"operation of no member", func(s *jobtest.Sample) {
			s.Allreduce(2, 10*ms, s.Comm(otf2.ParadigmMPI, 0, 0, 1))
		}},
		{"parent with a greater id", func(s *jobtest.Sample) {
			s.Comm(otf2.ParadigmMPI, 2, 0, 1)
			s.Comm(otf2.ParadigmMPI, 0, 0, 1)
		}},
		{"parent of another paradigm", func(s *jobtest.Sample) {
			s.LocationsOf(otf2.ParadigmCUDA)
			s.Comm(otf2.ParadigmCUDA, 0, 0, 1)
		}},
		{"communicator of a group of locations", func(s *jobtest.Sample) { s.Defs.Comms[0].Group = 0 }},
		{"communicators that nobody uses", func(s *jobtest.Sample) {
			for range 50 {
				s.Comm(otf2.ParadigmMPI, 0, 3, 2)
			}
		}},
		{"region that is not left", func(s *jobtest.Sample) { s.Remove(1, len(s.Events[1])-1, 1) }},
		{"region that was not entered", func(s *jobtest.Sample) { s.Remove(1, 0, 1) }},
		{"collective without begin", func(s *jobtest.Sample) {
			s.Remove(1, s.Index(1, otf2.EventMpiCollectiveBegin, 0), 1)
		}},
		{"collective without end", func(s *jobtest.Sample) {
			s.Remove(1, s.Index(1, otf2.EventMpiCollectiveEnd, 0), 1)
		}},
		{"collective in a collective", func(s *jobtest.Sample) {
			i := s.Index(1, otf2.EventMpiCollectiveBegin, 0)
			s.Insert(1, i, s.Events[1][i].Clone())
		}},
		{"operation of OTF2 3", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Find(l, otf2.EventMpiCollectiveEnd, 0).Args[0] = uint64(otf2.CollectiveOpCreateHandle)
			}
		}},
		{"program without region", func(s *jobtest.Sample) {
			s.Insert(0, 0, otf2.Event{Kind: otf2.EventProgramBegin, Time: ms,
				Args: []uint64{uint64(s.Text("/bin/train")), 0}})
		}},
		{"program with region", func(s *jobtest.Sample) {
			s.Insert(0, 0, otf2.Event{Kind: otf2.EventProgramBegin, Time: ms,
				Args: []uint64{uint64(s.Text("/bin/train")), 1, uint64(s.Text("-x"))}})
			r := s.Defs.Regions[0]
			r.Self, r.Role, r.Paradigm = otf2.RegionRef(len(s.Defs.Regions)), otf2.RegionRoleArtificial,
				otf2.ParadigmMeasurementSystem
			r.Name, r.CanonicalName = s.Text("train"), s.Text("/bin/train -x")
			s.Defs.Regions = append(s.Defs.Regions, r)
		}},
		{"short name", func(s *jobtest.Sample) {
			s.Defs.Regions[jobtest.RegionKernel].SourceFile,
				s.Defs.Regions[jobtest.RegionKernel].CanonicalName = s.Text("MPI"), s.Text("Put")
		}},
		{"region of another source file",
			func(s *jobtest.Sample) { s.Defs.Regions[jobtest.RegionAllreduce].SourceFile = s.Text("mpi") }},
		{"NCCL's name", func(s *jobtest.Sample) {
			s.Defs.Regions[jobtest.RegionAllreduce].Name = s.Text("ncclAllReduce")
		}},
		{"record outside regions", func(s *jobtest.Sample) {
			s.Events[1][0], s.Events[1][1] = otf2.Event{Kind: otf2.EventMpiCollectiveBegin, Time: ms}, s.Events[1][0]
		}},
		{"rank without MPI_Init", func(s *jobtest.Sample) { s.Remove(3, s.Index(3, otf2.EventEnter, 1), 2) }},
		{"rank without MPI_Finalize", func(s *jobtest.Sample) { s.Remove(3, s.Index(3, otf2.EventEnter, 3), 2) }},
		{"MPI_Init_thread", func(s *jobtest.Sample) {
			s.Defs.Regions[jobtest.RegionInit].CanonicalName = s.Text("mpi_INIT_THREAD")
		}},
		{"collective that a member lacks", func(s *jobtest.Sample) { s.Remove(2, s.Index(2, otf2.EventEnter, 2), 4) }},
		{"members in different orders", func(s *jobtest.Sample) {
			a, b := s.Comm(otf2.ParadigmMPI, 0, 0, 1), s.Comm(otf2.ParadigmMPI, 0, 0, 1)
			s.Allreduce(0, 10*ms, a)
			s.Allreduce(0, 11*ms, b)
			s.Allreduce(1, 10*ms, b)
			s.Allreduce(1, 11*ms, a)
		}},
		{"order with a cycle over three", func(s *jobtest.Sample) {
			a, b, c := s.Comm(otf2.ParadigmMPI, 0, 0, 1), s.Comm(otf2.ParadigmMPI, 0, 1, 2),
				s.Comm(otf2.ParadigmMPI, 0, 2, 0)
			for r, order := range [][2]uint64{{a, c}, {b, a}, {c, b}} {
				s.Allreduce(otf2.LocationRef(r), 10*ms, order[0])
				s.Allreduce(otf2.LocationRef(r), 11*ms, order[1])
			}
		}},
		{"the same in one order", func(s *jobtest.Sample) {
			a, b, c := s.Comm(otf2.ParadigmMPI, 0, 0, 1), s.Comm(otf2.ParadigmMPI, 0, 1, 2),
				s.Comm(otf2.ParadigmMPI, 0, 2, 0)
			for r, order := range [][2]uint64{{a, c}, {a, b}, {b, c}} {
				s.Allreduce(otf2.LocationRef(r), 10*ms, order[0])
				s.Allreduce(otf2.LocationRef(r), 11*ms, order[1])
			}
		}},
		{"one member's own communicator", func(s *jobtest.Sample) {
			s.Allreduce(2, 10*ms, s.Comm(otf2.ParadigmMPI, 0, 2))
		}},
		{"other operation", func(s *jobtest.Sample) {
			s.Find(1, otf2.EventMpiCollectiveEnd, 0).Args[0] = uint64(otf2.CollectiveOpBarrier)
		}},
		{"other root", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms, otf2.CollectiveOpBcast, 0, uint32(l/3), 64, 64)
			}
		}},
		{"root that is no member", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms, otf2.CollectiveOpBcast, 0, 4, 64, 64)
			}
		}},
		{"message", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 5, 8)
			s.Call(3, 10*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 5, 8)
		}},
		{"messages that are received before they are sent", func(s *jobtest.Sample) {
			for i := range otf2.Timestamp(3) {
				s.Call(0, 11*ms+i*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 5, 8)
				s.Call(3, 9*ms+2*i*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 5, 8)
			}
		}},
		{"broadcast that ends before its root came", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms+otf2.Timestamp(l)*ms, otf2.CollectiveOpBcast, 0, 1, 8, 8)
			}
		}},
		{"reduce of which the root leaves first", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms+otf2.Timestamp(l)*ms, otf2.CollectiveOpReduce, 0, 1, 8, 8)
			}
		}},
		{"all to all with sizes of their own, in any order", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms+otf2.Timestamp(l)*ms, otf2.CollectiveOpAlltoallv, 0, otf2.CollectiveRootNone, 8,
					8)
			}
		}},
		{"receive without send", func(s *jobtest.Sample) {
			s.Call(3, 9*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 1, 0, 5, 8)
		}},
		{"message of another tag", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 5, 8)
			s.Call(3, 9*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 6, 8)
		}},
		{"receives before sends on both sides", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(2) {
				s.Call(l, 10*ms, jobtest.RegionRecv, otf2.EventMpiRecv, uint64(1-l), 0, 0, 8)
				s.Call(l, 11*ms, jobtest.RegionRecv, otf2.EventMpiSend, uint64(1-l), 0, 0, 8)
			}
		}},
		{"send without receive", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 5, 8)
		}},
		{"messages that scout takes for its own", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 0, 8)
			s.Call(3, 9*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 0, 8)
		}},
		{"send to nobody", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 4, 0, 5, 8)
		}},
		{"message outside MPI", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionMain, otf2.EventMpiSend, 3, 0, 5, 8)
			s.Call(3, 10*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 5, 8)
		}},
		// Rank 0's send lasts until after rank 1 received by way of an AllReduce that rank 0 has behind the send: by
		// rank 1's clock it began before rank 0 came to it.
		{"late receiver behind what the sender does next", func(s *jobtest.Sample) {
			c := s.Comm(otf2.ParadigmMPI, 0, 0, 1)
			s.MessageInSend(0, 10*ms, 14*ms, 1)
			s.Allreduce(0, 14*ms, c)
			s.Allreduce(1, 11*ms, c)
			s.Call(1, 12*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 1, 8)
		}},
		{"late receiver", func(s *jobtest.Sample) {
			c := s.Comm(otf2.ParadigmMPI, 0, 0, 1)
			s.MessageInSend(0, 10*ms, 14*ms, 1)
			s.Allreduce(0, 14*ms, c)
			s.Call(1, 12*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 1, 8)
			s.Allreduce(1, 14*ms, c)
		}},
		{"collective without bytes", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				e := s.Find(l, otf2.EventMpiCollectiveEnd, 0)
				e.Args[3], e.Args[4] = 0, 0
			}
		}},
		{"broadcast of a root without bytes", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms, otf2.CollectiveOpBcast, 0, 1, 0, uint64(l-1)*8)
			}
		}},
		{"message without bytes", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 5, 0)
			s.Call(3, 10*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 5, 0)
		}},
		{"missing events", func(s *jobtest.Sample) { s.Drop[2] = true }},
		{"cut events", func(s *jobtest.Sample) { s.Patch(2, func(b []byte) []byte { return b[:len(b)-30] }) }},
	})
}

func TestScalascaWantsItsNameForAnchors(t *testing.T) {
	path := jobtest.SmallestOfScalasca(t).Write()
	other := strings.TrimSuffix(path, ".otf2") + ".trace"
	testkit.Must(t, os.Rename(path, other))
	res, err := scoutrules.Check(other, nil)
	if err == nil && !strings.Contains(jobtest.Lines(res), "scout-anchor: the anchor's name, traces.trace") {
		t.Errorf("got:\n%s", jobtest.Lines(res))
	}
}

// What Score-P 8 writes for MPI has operations of OTF2 3 in it, and a native archive has streams: scout 2.6 takes
// neither.
func TestArchivesThatScalascaDoesNotTake(t *testing.T) {
	for path, want := range map[string]string{
		filepath.Join("..", "jobtest", "testdata", "scorep-mpi",
			"traces.otf2"): "scout does not know the collective operation CREATE_HANDLE",
		jobtest.Typical(t, nil): "is of type ACCELERATOR_STREAM: scout takes CPU_THREAD only",
	} {
		if res := checkScalasca(t, path); res.Errors() == 0 || !strings.Contains(jobtest.Lines(res), want) {
			t.Errorf("%s: want %s, got:\n%s", path, want, jobtest.Lines(res))
		}
	}
}
