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

// defect is something that is wrong with an archive, and what a check is to say of it, see FindDefect.
type defect struct {
	name  string
	spoil func(s *jobtest.Sample)
	want  string
}

const ms = 1_000_000

const none = otf2.UndefinedComm

// Each of the requirements, broken. What is not an error is a note, or nothing.
func TestEachRequirementOfScalascaIsHeld(t *testing.T) {
	for _, d := range []defect{
		{"nothing", func(*jobtest.Sample) {}, ""},
		{"old format", func(s *jobtest.Sample) { s.Anchor.Version = [3]uint8{1, 1, 0} },
			"error: scout-anchor: the archive is of OTF2 1.1"},
		{"accelerator stream", func(s *jobtest.Sample) {
			s.Defs.Locations[2].Type =
				otf2.LocationTypeAcceleratorStream
		}, "error: scout-location: location 2 is of type ACCELERATOR_STREAM"},
		{"metric location without events", func(s *jobtest.Sample) {
			s.Defs.Locations = append(s.Defs.Locations, otf2.Location{Self: 4, Type: otf2.LocationTypeMetric, Group: 3})
			s.Anchor.Locations++
		}, "error: scout-location: location 4 is of type METRIC"},
		{"second thread", func(s *jobtest.Sample) {
			s.Defs.Locations = append(s.Defs.Locations,
				otf2.Location{Self: 4, Type: otf2.LocationTypeCPUThread, Group: 3})
			s.Anchor.Locations++
		}, "note: scout-location: location groups have further locations"},
		{"accelerator", func(s *jobtest.Sample) {
			s.Defs.LocationGroups[1].Type =
				otf2.LocationGroupTypeAccelerator
		},
			"error: scout-location-group: location group 1 is of type ACCELERATOR"},
		{"groups not from 0", func(s *jobtest.Sample) {
			for i := range s.Defs.LocationGroups {
				s.Defs.LocationGroups[i].Self++
				s.Defs.Locations[i].Group++
			}
		}, "error: scout-location-group: location group 1 stands at place 0"},
		{"group without location", func(s *jobtest.Sample) {
			g := s.Defs.LocationGroups[3]
			g.Self = 4
			s.Defs.LocationGroups = append(s.Defs.LocationGroups, g)
		}, "error: scout-location-group: location group 4 has no location"},
		{"no groups", func(s *jobtest.Sample) { s.Defs.LocationGroups = nil },
			"error: scout-location-group: there is no location group"},
		{"group without node", func(s *jobtest.Sample) {
			s.Defs.LocationGroups[2].SystemTreeParent =
				otf2.UndefinedSystemTreeNode
		}, "error: scout-system-tree: location group 2 has no node"},
		{"child before parent", func(s *jobtest.Sample) {
			n := s.Defs.SystemTreeNodes
			n[0].Parent, n[1].Parent = 1, otf2.UndefinedSystemTreeNode
		}, "error: scout-system-tree: system tree node 0 stands before its parent 1"},
		{"nodes not from 0", func(s *jobtest.Sample) { s.Defs.SystemTreeNodes[1].Self = 7 },
			"error: scout-system-tree: system tree node 7 stands at place 1"},
		{"regions not from 0", func(s *jobtest.Sample) { s.Defs.Regions[5].Self = 9 },
			"error: scout-system-tree: region 9 stands at place 5"},
		{"no machine", func(s *jobtest.Sample) { s.Defs.SystemTreeNodes[0].Class = s.Text("cluster") },
			"note: scout-time-correct: no node of the system tree is of class machine"},
		{"no node", func(s *jobtest.Sample) { s.Defs.SystemTreeNodes[1].Class = s.Text("host") },
			"note: scout-time-correct: no node of the system tree is of class node"},
		{"two lists of MPI's locations", func(s *jobtest.Sample) { s.LocationsOf(otf2.ParadigmMPI) },
			"error: scout-paradigm: groups 0 and 2 both list the locations of paradigm MPI"},
		{"two lists of paradigms that are unknown to it", func(s *jobtest.Sample) {
			s.LocationsOf(otf2.ParadigmHIP)
			s.LocationsOf(otf2.ParadigmKokkos)
		}, "error: scout-paradigm: groups 2 and 3 both list the locations of paradigm UNKNOWN"},
		{"list of CUDA's locations", func(s *jobtest.Sample) { s.LocationsOf(otf2.ParadigmCUDA) }, ""},
		{"communicator of a paradigm without locations",
			func(s *jobtest.Sample) { s.Comm(otf2.ParadigmCUDA, none, 0, 1) },
			"error: scout-paradigm: group 2 is a communicator's of paradigm CUDA"},
		{"operation on a communicator of another paradigm", func(s *jobtest.Sample) {
			s.LocationsOf(otf2.ParadigmCUDA)
			c := s.Comm(otf2.ParadigmCUDA, none, 0, 1, 2, 3)
			s.Find(2, otf2.EventMpiCollectiveEnd, 0).Args[1] = c
		}, "error: scout-communicator: location 2, event 6, time 9000000: communicator 1 is of paradigm CUDA"},
		{"operation on no communicator", func(s *jobtest.Sample) {
			s.Find(
				2, otf2.EventMpiCollectiveEnd, 0).Args[1] = 9
		},
			"error: scout-communicator: location 2, event 6, time 9000000: communicator 9 is not defined"},
		{"operation of no member", func(s *jobtest.Sample) {
			s.Allreduce(
				2, 10*ms, s.Comm(otf2.ParadigmMPI, 0, 0, 1))
		}, "time 10000000: is not a member of communicator 1"},
		{"parent with a greater id", func(s *jobtest.Sample) {
			s.Comm(otf2.ParadigmMPI, 2, 0, 1)
			s.Comm(otf2.ParadigmMPI, 0, 0, 1)
		}, "error: scout-communicator: communicator 1: its parent 2 must be defined and have a smaller id"},
		{"parent of another paradigm", func(s *jobtest.Sample) {
			s.LocationsOf(otf2.ParadigmCUDA)
			s.Comm(otf2.ParadigmCUDA, 0, 0, 1)
		}, "error: scout-communicator: communicator 1 is of paradigm CUDA, its parent 0 of another"},
		{"communicator of a group of locations", func(s *jobtest.Sample) { s.Defs.Comms[0].Group = 0 },
			"error: scout-communicator: communicator 0 has no group of members"},
		{"communicators that nobody uses", func(s *jobtest.Sample) {
			for range 50 {
				s.Comm(otf2.ParadigmMPI, 0, 3, 2)
			}
		}, ""},
		{"region that is not left", func(s *jobtest.Sample) { s.Remove(1, len(s.Events[1])-1, 1) },
			"error: scout-nesting: location 1, event 9, time 39000000: ends in region 0"},
		{"region that was not entered", func(s *jobtest.Sample) { s.Remove(1, 0, 1) },
			"error: scout-nesting: location 1, event 9, time 40000000: leaves region 0, which is not the innermost"},
		{"collective without begin", func(s *jobtest.Sample) {
			s.Remove(
				1, s.Index(1, otf2.EventMpiCollectiveBegin, 0), 1)
		},
			"error: scout-collective: location 1, event 5, time 9000000: a collective ends that has not begun"},
		{"collective without end", func(s *jobtest.Sample) {
			s.Remove(
				1, s.Index(1, otf2.EventMpiCollectiveEnd, 0), 1)
		},
			"error: scout-collective: location 1, event 9, time 40000000: ends in a collective"},
		{"collective in a collective", func(s *jobtest.Sample) {
			i := s.Index(1, otf2.EventMpiCollectiveBegin, 0)
			s.Insert(1, i, s.Events[1][i].Clone())
		}, "error: scout-collective: location 1, event 6, time 4000000: a collective begins in another one"},
		{"operation of OTF2 3", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Find(l, otf2.EventMpiCollectiveEnd, 0).Args[0] = uint64(otf2.CollectiveOpCreateHandle)
			}
		}, "error: scout-collective: location 0, event 6, time 9000000: scout does not know the collective operation " +
			"CREATE_HANDLE"},
		{"program without region", func(s *jobtest.Sample) {
			s.Insert(0, 0, otf2.Event{Kind: otf2.EventProgramBegin, Time: ms,
				Args: []uint64{uint64(s.Text("/bin/train")), 0}})
		}, `error: scout-program: location 0, event 1, time 1000000: ProgramBegin of "/bin/train"`},
		{"program with region", func(s *jobtest.Sample) {
			s.Insert(0, 0, otf2.Event{Kind: otf2.EventProgramBegin, Time: ms,
				Args: []uint64{uint64(s.Text("/bin/train")), 1, uint64(s.Text("-x"))}})
			r := s.Defs.Regions[0]
			r.Self, r.Role, r.Paradigm = otf2.RegionRef(len(s.Defs.Regions)), otf2.RegionRoleArtificial,
				otf2.ParadigmMeasurementSystem
			r.Name, r.CanonicalName = s.Text("train"), s.Text("/bin/train -x")
			s.Defs.Regions = append(s.Defs.Regions, r)
		}, ""},
		{"short name", func(s *jobtest.Sample) {
			s.Defs.Regions[jobtest.RegionKernel].SourceFile,
				s.Defs.Regions[jobtest.RegionKernel].CanonicalName = s.Text("MPI"), s.Text("Put")
		},
			`error: scout-region: region 5 has source file MPI and the canonical name "Put"`},
		{"region of another source file",
			func(s *jobtest.Sample) { s.Defs.Regions[jobtest.RegionAllreduce].SourceFile = s.Text("mpi") },
			`error: scout-region: location 0, event 5, time 2000000: a record of MPI in region 1, whose source file is not "MPI"`},
		{"NCCL's name", func(s *jobtest.Sample) {
			s.Defs.Regions[jobtest.RegionAllreduce].Name = s.Text("ncclAllReduce")
		}, ""},
		{"record outside regions", func(s *jobtest.Sample) {
			s.Events[1][0], s.Events[1][1] = otf2.Event{Kind: otf2.EventMpiCollectiveBegin, Time: ms}, s.Events[1][0]
		}, "error: scout-region: location 1, event 1, time 1000000: a record of MPI outside all regions"},
		{"rank without MPI_Init", func(s *jobtest.Sample) { s.Remove(3, s.Index(3, otf2.EventEnter, 1), 2) },
			"error: scout-init: location 3: rank 3 has no region MPI_Init"},
		{"rank without MPI_Finalize", func(s *jobtest.Sample) { s.Remove(3, s.Index(3, otf2.EventEnter, 3), 2) },
			"error: scout-init: location 3: rank 3 has no region MPI_Finalize"},
		{"MPI_Init_thread", func(s *jobtest.Sample) {
			s.Defs.Regions[jobtest.RegionInit].CanonicalName = s.Text("mpi_INIT_THREAD")
		}, ""},
		{"collective that a member lacks", func(
			s *jobtest.Sample) {
			s.Remove(2, s.Index(2, otf2.EventEnter, 2), 4)
		},
			"error: scout-replay: location 0, event 6, time 9000000: scout would hang: rank 0 waits for ever in " +
				"ALLREDUCE on communicator 0, to which 3 of 4 members come"},
		{"members in different orders", func(s *jobtest.Sample) {
			a, b := s.Comm(otf2.ParadigmMPI, 0, 0, 1), s.Comm(otf2.ParadigmMPI, 0, 0, 1)
			s.Allreduce(0, 10*ms, a)
			s.Allreduce(0, 11*ms, b)
			s.Allreduce(1, 10*ms, b)
			s.Allreduce(1, 11*ms, a)
		}, "scout would hang: rank 0 waits for ever in ALLREDUCE on communicator 1, to which 1 of 2 members come"},
		{"order with a cycle over three", func(s *jobtest.Sample) {
			a, b, c := s.Comm(otf2.ParadigmMPI, 0, 0, 1), s.Comm(otf2.ParadigmMPI, 0, 1, 2),
				s.Comm(otf2.ParadigmMPI, 0, 2, 0)
			for r, order := range [][2]uint64{{a, c}, {b, a}, {c, b}} {
				s.Allreduce(otf2.LocationRef(r), 10*ms, order[0])
				s.Allreduce(otf2.LocationRef(r), 11*ms, order[1])
			}
		}, "scout would hang: rank 2 waits for ever in ALLREDUCE on communicator 3, to which 1 of 2 members come"},
		{"the same in one order", func(s *jobtest.Sample) {
			a, b, c := s.Comm(otf2.ParadigmMPI, 0, 0, 1), s.Comm(otf2.ParadigmMPI, 0, 1, 2),
				s.Comm(otf2.ParadigmMPI, 0, 2, 0)
			for r, order := range [][2]uint64{{a, c}, {a, b}, {b, c}} {
				s.Allreduce(otf2.LocationRef(r), 10*ms, order[0])
				s.Allreduce(otf2.LocationRef(r), 11*ms, order[1])
			}
		}, "note: scout-clock: 1 collectives that a member leaves before one came that it needs, the worst by 1ms " +
			"(location 2, event 10)"},
		{"one member's own communicator", func(s *jobtest.Sample) {
			s.Allreduce(
				2, 10*ms, s.Comm(otf2.ParadigmMPI, 0, 2))
		}, ""},
		{"other operation", func(s *jobtest.Sample) {
			s.Find(1, otf2.EventMpiCollectiveEnd, 0).Args[0] = uint64(otf2.CollectiveOpBarrier)
		},
			"error: scout-replay: location 1, event 6, time 9000000: BARRIER with root NONE on communicator 0 meets " +
				"the ALLREDUCE with root NONE of location 0, event 6"},
		{"other root", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms, otf2.CollectiveOpBcast, 0, uint32(l/3), 64, 64)
			}
		}, "error: scout-replay: location 3, event 10, time 10000000: BCAST with root 1 on communicator 0 meets the " +
			"BCAST with root 0"},
		{"root that is no member", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms, otf2.CollectiveOpBcast, 0, 4, 64, 64)
			}
		}, "error: scout-replay: location 0, event 10, time 10000000: BCAST with root 4 on communicator 0, which has " +
			"4 ranks"},
		{"message", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 5, 8)
			s.Call(3, 10*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 5, 8)
		}, ""},
		{"messages that are received before they are sent", func(s *jobtest.Sample) {
			for i := range otf2.Timestamp(3) {
				s.Call(0, 11*ms+i*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 5, 8)
				s.Call(3, 9*ms+2*i*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 5, 8)
			}
		}, "note: scout-clock: 2 messages that are received before they are sent, the worst by 2ms (location 3, " +
			"event 9)"},
		{"broadcast that ends before its root came", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms+otf2.Timestamp(l)*ms, otf2.CollectiveOpBcast, 0, 1, 8, 8)
			}
		}, "note: scout-clock: 1 collectives that a member leaves before one came that it needs, the worst by 1ms " +
			"(location 0, event 10)"},
		{"reduce of which the root leaves first", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms+otf2.Timestamp(l)*ms, otf2.CollectiveOpReduce, 0, 1, 8, 8)
			}
		}, "note: scout-clock: 1 collectives that a member leaves before one came that it needs, the worst by 2ms " +
			"(location 1, event 10)"},
		{"all to all with sizes of their own, in any order", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms+otf2.Timestamp(l)*ms, otf2.CollectiveOpAlltoallv, 0, otf2.CollectiveRootNone, 8,
					8)
			}
		}, ""},
		{"receive without send", func(s *jobtest.Sample) {
			s.Call(
				3, 9*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 1, 0, 5, 8)
		},
			"error: scout-replay: location 3, event 9, time 9000000: scout would hang: rank 3 waits for ever in a " +
				"message from rank 1 of communicator 0"},
		{"message of another tag", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 5, 8)
			s.Call(3, 9*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 6, 8)
		}, "scout would hang: rank 3 waits for ever in a message from rank 0 of communicator 0"},
		{"receives before sends on both sides", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(2) {
				s.Call(l, 10*ms, jobtest.RegionRecv, otf2.EventMpiRecv, uint64(1-l), 0, 0, 8)
				s.Call(l, 11*ms, jobtest.RegionRecv, otf2.EventMpiSend, uint64(1-l), 0, 0, 8)
			}
		}, "scout would hang: rank 0 waits for ever in a message from rank 1 of communicator 0"},
		{"send without receive", func(s *jobtest.Sample) {
			s.Call(
				0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 5, 8)
		},
			"note: scout-message: 1 messages are sent and not received"},
		{"messages that scout takes for its own", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 0, 8)
			s.Call(3, 9*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 0, 8)
		}, "note: scout-tag: communicator 0 has collectives and messages with tag 0"},
		{"send to nobody", func(s *jobtest.Sample) {
			s.Call(
				0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 4, 0, 5, 8)
		},
			"error: scout-message: location 0, event 9, time 10000000: the other end of a message is rank 4 of " +
				"communicator 0, which has 4 ranks"},
		{"message outside MPI", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionMain, otf2.EventMpiSend, 3, 0, 5, 8)
			s.Call(3, 10*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 5, 8)
		}, "error: scout-region: location 0, event 9, time 10000000: a record of MPI in region 0"},
		// Rank 0's send lasts until after rank 1 received by way of an AllReduce that rank 0 has behind the send: by
		// rank 1's clock it began before rank 0 came to it.
		{"late receiver behind what the sender does next", func(s *jobtest.Sample) {
			c := s.Comm(otf2.ParadigmMPI, 0, 0, 1)
			s.MessageInSend(0, 10*ms, 14*ms, 1)
			s.Allreduce(0, 14*ms, c)
			s.Allreduce(1, 11*ms, c)
			s.Call(1, 12*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 1, 8)
		}, "error: scout-replay: location 0: scout would hang: a send of rank 0 waits, by its times, for a receiver " +
			"that comes later"},
		{"late receiver", func(s *jobtest.Sample) {
			c := s.Comm(otf2.ParadigmMPI, 0, 0, 1)
			s.MessageInSend(0, 10*ms, 14*ms, 1)
			s.Allreduce(0, 14*ms, c)
			s.Call(1, 12*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 1, 8)
			s.Allreduce(1, 14*ms, c)
		}, ""},
		{"collective without bytes", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				e := s.Find(l, otf2.EventMpiCollectiveEnd, 0)
				e.Args[3], e.Args[4] = 0, 0
			}
		}, "note: scout-payload: location 0, event 6, time 9000000: ALLREDUCE without bytes: it has no wait states"},
		{"broadcast of a root without bytes", func(s *jobtest.Sample) {
			for l := range otf2.LocationRef(4) {
				s.Collective(l, 10*ms, otf2.CollectiveOpBcast, 0, 1, 0, uint64(l-1)*8)
			}
		}, "note: scout-payload: location 1, event 10, time 10000000: BCAST without bytes"},
		{"message without bytes", func(s *jobtest.Sample) {
			s.Call(0, 10*ms, jobtest.RegionRecv, otf2.EventMpiSend, 3, 0, 5, 0)
			s.Call(3, 10*ms, jobtest.RegionRecv, otf2.EventMpiRecv, 0, 0, 5, 0)
		}, "note: scout-payload: location 0, event 9, time 10000000: message without bytes"},
		{"missing events", func(s *jobtest.Sample) { s.Drop[2] = true }, "traces/2.evt: no such file"},
		{"cut events", func(s *jobtest.Sample) { s.Patch(2, func(b []byte) []byte { return b[:len(b)-30] }) },
			"record Timestamp: file ends without an end mark"},
	} {
		t.Run(d.name, func(t *testing.T) {
			jobtest.FindDefect(t, checkScalasca, jobtest.SmallestOfScalasca(t), d.spoil, d.want)
		})
	}
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
