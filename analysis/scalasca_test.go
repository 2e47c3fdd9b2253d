// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// smallest is an archive in which scout.mpi of Scalasca 2.6 finds Wait at NxN: four ranks, one AllReduce.
func smallest(t testing.TB) *sample {
	return load(t, filepath.Join("testdata", "scalasca-min", "traces.otf2"))
}

func checkScalasca(t testing.TB, path string) *CheckResult {
	t.Helper()
	res, err := CheckScalasca(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// Regions of the smallest archive that samples use.
const (
	regionMain      = 0
	regionAllreduce = 1
	regionRecv      = 2
	regionInit      = 3
	regionKernel    = 5
)

// call puts a region with one record of MPI in it before the last four events of a location, which end it.
func (s *sample) call(l otf2.LocationRef, t otf2.Timestamp, region uint64, kind otf2.EventKind, args ...uint64) {
	at := len(s.events[l]) - 4
	if s.events[l][at].Kind != otf2.EventEnter { // Leave of the program is the last one
		at++
	}
	for i, ev := range []otf2.Event{
		{Kind: otf2.EventEnter, Time: t, Args: []uint64{region}},
		{Kind: kind, Time: t, Args: args},
		{Kind: otf2.EventLeave, Time: t + 10, Args: []uint64{region}},
	} {
		s.insert(l, at+i, ev)
	}
}

func (s *sample) collective(l otf2.LocationRef, t otf2.Timestamp, op otf2.CollectiveOp, comm uint64, root uint32, sent, received uint64) {
	s.call(l, t, regionAllreduce, otf2.EventMpiCollectiveEnd, uint64(op), comm, uint64(root), sent, received)
	end := s.index(l, otf2.EventMpiCollectiveEnd, s.kinds(l, otf2.EventMpiCollectiveEnd)-1)
	s.insert(l, end, otf2.Event{Kind: otf2.EventMpiCollectiveBegin, Time: t})
}

func (s *sample) kinds(l otf2.LocationRef, kind otf2.EventKind) (n int) {
	for i := range s.events[l] {
		if s.events[l][i].Kind == kind {
			n++
		}
	}
	return n
}

func (s *sample) text(text string) otf2.StringRef {
	for _, x := range s.defs.Strings {
		if x.Text == text {
			return x.Self
		}
	}
	ref := otf2.StringRef(len(s.defs.Strings))
	s.defs.Strings = append(s.defs.Strings, otf2.String{Self: ref, Text: text})
	return ref
}

// comm defines a communicator of a paradigm with the members.
func (s *sample) comm(p otf2.Paradigm, parent otf2.CommRef, members ...uint64) uint64 {
	g := otf2.GroupRef(len(s.defs.Groups))
	s.defs.Groups = append(s.defs.Groups, otf2.Group{Self: g, Type: otf2.GroupTypeCommGroup, Paradigm: p, Members: members})
	c := otf2.CommRef(len(s.defs.Comms))
	s.defs.Comms = append(s.defs.Comms, otf2.Comm{Self: c, Group: g, Parent: parent})
	return uint64(c)
}

func (s *sample) locationsOf(p otf2.Paradigm) {
	s.defs.Groups = append(s.defs.Groups, otf2.Group{
		Self: otf2.GroupRef(len(s.defs.Groups)), Type: otf2.GroupTypeCommLocations, Paradigm: p, Members: []uint64{0, 1, 2, 3},
	})
}

func (s *sample) allreduce(l otf2.LocationRef, t otf2.Timestamp, comm uint64) {
	s.collective(l, t, otf2.CollectiveOpAllreduce, comm, otf2.CollectiveRootNone, 64, 64)
}

const ms = 1_000_000

// messageInSend puts a blocking send to a rank, in a region of its own.
func (s *sample) messageInSend(l otf2.LocationRef, from, to otf2.Timestamp, peer uint64) {
	r := s.defs.Regions[regionRecv]
	r.Self, r.CanonicalName = otf2.RegionRef(len(s.defs.Regions)), s.text("MPI_Send")
	s.defs.Regions = append(s.defs.Regions, r)
	s.call(l, from, uint64(r.Self), otf2.EventMpiSend, peer, 0, 1, 8)
	last := len(s.events[l]) - 1
	for s.events[l][last].Kind != otf2.EventLeave || s.events[l][last].Args[0] != uint64(r.Self) {
		last--
	}
	s.events[l][last].Time = to
}

const none = otf2.UndefinedComm

// Each of the requirements, broken. What is not an error is a note, or nothing.
func TestEachRequirementOfScalascaIsHeld(t *testing.T) {
	findDefects(t, checkScalasca, smallest, []defect{
		{"nothing", func(*sample) {}, ""},
		{"old format", func(s *sample) { s.anchor.Version = [3]uint8{1, 1, 0} }, "error: scout-anchor: the archive is of OTF2 1.1"},
		{"accelerator stream", func(s *sample) { s.defs.Locations[2].Type = otf2.LocationTypeAcceleratorStream }, "error: scout-location: location 2 is of type ACCELERATOR_STREAM"},
		{"metric location without events", func(s *sample) {
			s.defs.Locations = append(s.defs.Locations, otf2.Location{Self: 4, Type: otf2.LocationTypeMetric, Group: 3})
			s.anchor.Locations++
		}, "error: scout-location: location 4 is of type METRIC"},
		{"second thread", func(s *sample) {
			s.defs.Locations = append(s.defs.Locations, otf2.Location{Self: 4, Type: otf2.LocationTypeCPUThread, Group: 3})
			s.anchor.Locations++
		}, "note: scout-location: location groups have further locations"},
		{"accelerator", func(s *sample) { s.defs.LocationGroups[1].Type = otf2.LocationGroupTypeAccelerator }, "error: scout-location-group: location group 1 is of type ACCELERATOR"},
		{"groups not from 0", func(s *sample) {
			for i := range s.defs.LocationGroups {
				s.defs.LocationGroups[i].Self++
				s.defs.Locations[i].Group++
			}
		}, "error: scout-location-group: location group 1 stands at place 0"},
		{"group without location", func(s *sample) {
			g := s.defs.LocationGroups[3]
			g.Self = 4
			s.defs.LocationGroups = append(s.defs.LocationGroups, g)
		}, "error: scout-location-group: location group 4 has no location"},
		{"no groups", func(s *sample) { s.defs.LocationGroups = nil }, "error: scout-location-group: there is no location group"},
		{"group without node", func(s *sample) { s.defs.LocationGroups[2].SystemTreeParent = otf2.UndefinedSystemTreeNode }, "error: scout-system-tree: location group 2 has no node"},
		{"child before parent", func(s *sample) {
			n := s.defs.SystemTreeNodes
			n[0].Parent, n[1].Parent = 1, otf2.UndefinedSystemTreeNode
		}, "error: scout-system-tree: system tree node 0 stands before its parent 1"},
		{"nodes not from 0", func(s *sample) { s.defs.SystemTreeNodes[1].Self = 7 }, "error: scout-system-tree: system tree node 7 stands at place 1"},
		{"regions not from 0", func(s *sample) { s.defs.Regions[5].Self = 9 }, "error: scout-system-tree: region 9 stands at place 5"},
		{"no machine", func(s *sample) { s.defs.SystemTreeNodes[0].Class = s.text("cluster") }, "note: scout-time-correct: no node of the system tree is of class machine"},
		{"no node", func(s *sample) { s.defs.SystemTreeNodes[1].Class = s.text("host") }, "note: scout-time-correct: no node of the system tree is of class node"},
		{"two lists of MPI's locations", func(s *sample) { s.locationsOf(otf2.ParadigmMPI) }, "error: scout-paradigm: groups 0 and 2 both list the locations of paradigm MPI"},
		{"two lists of paradigms that are unknown to it", func(s *sample) {
			s.locationsOf(otf2.ParadigmHIP)
			s.locationsOf(otf2.ParadigmKokkos)
		}, "error: scout-paradigm: groups 2 and 3 both list the locations of paradigm UNKNOWN"},
		{"list of CUDA's locations", func(s *sample) { s.locationsOf(otf2.ParadigmCUDA) }, ""},
		{"communicator of a paradigm without locations", func(s *sample) { s.comm(otf2.ParadigmCUDA, none, 0, 1) }, "error: scout-paradigm: group 2 is a communicator's of paradigm CUDA"},
		{"operation on a communicator of another paradigm", func(s *sample) {
			s.locationsOf(otf2.ParadigmCUDA)
			c := s.comm(otf2.ParadigmCUDA, none, 0, 1, 2, 3)
			s.find(2, otf2.EventMpiCollectiveEnd, 0).Args[1] = c
		}, "error: scout-communicator: location 2, event 6, time 9000000: communicator 1 is of paradigm CUDA"},
		{"operation on no communicator", func(s *sample) { s.find(2, otf2.EventMpiCollectiveEnd, 0).Args[1] = 9 }, "error: scout-communicator: location 2, event 6, time 9000000: communicator 9 is not defined"},
		{"operation of no member", func(s *sample) { s.allreduce(2, 10*ms, s.comm(otf2.ParadigmMPI, 0, 0, 1)) }, "time 10000000: is no member of communicator 1"},
		{"parent with a greater id", func(s *sample) {
			s.comm(otf2.ParadigmMPI, 2, 0, 1)
			s.comm(otf2.ParadigmMPI, 0, 0, 1)
		}, "error: scout-communicator: communicator 1: its parent 2 must be defined and have a smaller id"},
		{"parent of another paradigm", func(s *sample) {
			s.locationsOf(otf2.ParadigmCUDA)
			s.comm(otf2.ParadigmCUDA, 0, 0, 1)
		}, "error: scout-communicator: communicator 1 is of paradigm CUDA, its parent 0 of another"},
		{"communicator of a group of locations", func(s *sample) { s.defs.Comms[0].Group = 0 }, "error: scout-communicator: communicator 0 has no group of members"},
		{"communicators that nobody uses", func(s *sample) {
			for range 50 {
				s.comm(otf2.ParadigmMPI, 0, 3, 2)
			}
		}, ""},
		{"region that is not left", func(s *sample) { s.remove(1, len(s.events[1])-1, 1) }, "error: scout-nesting: location 1, event 9, time 39000000: ends in region 0"},
		{"region that was not entered", func(s *sample) { s.remove(1, 0, 1) }, "error: scout-nesting: location 1, event 9, time 40000000: leaves region 0, which is not the innermost"},
		{"collective without begin", func(s *sample) { s.remove(1, s.index(1, otf2.EventMpiCollectiveBegin, 0), 1) },
			"error: scout-collective: location 1, event 5, time 9000000: a collective ends that has not begun"},
		{"collective without end", func(s *sample) { s.remove(1, s.index(1, otf2.EventMpiCollectiveEnd, 0), 1) }, "error: scout-collective: location 1, event 9, time 40000000: ends in a collective"},
		{"collective in a collective", func(s *sample) {
			i := s.index(1, otf2.EventMpiCollectiveBegin, 0)
			s.insert(1, i, s.events[1][i].Clone())
		}, "error: scout-collective: location 1, event 6, time 4000000: a collective begins in another one"},
		{"operation of OTF2 3", func(s *sample) {
			for l := range otf2.LocationRef(4) {
				s.find(l, otf2.EventMpiCollectiveEnd, 0).Args[0] = uint64(otf2.CollectiveOpCreateHandle)
			}
		}, "error: scout-collective: location 0, event 6, time 9000000: scout does not know the collective operation CREATE_HANDLE"},
		{"program without region", func(s *sample) {
			s.insert(0, 0, otf2.Event{Kind: otf2.EventProgramBegin, Time: ms, Args: []uint64{uint64(s.text("/bin/train")), 0}})
		}, `error: scout-program: location 0, event 1, time 1000000: ProgramBegin of "/bin/train"`},
		{"program with region", func(s *sample) {
			s.insert(0, 0, otf2.Event{Kind: otf2.EventProgramBegin, Time: ms, Args: []uint64{uint64(s.text("/bin/train")), 1, uint64(s.text("-x"))}})
			r := s.defs.Regions[0]
			r.Self, r.Role, r.Paradigm = otf2.RegionRef(len(s.defs.Regions)), otf2.RegionRoleArtificial, otf2.ParadigmMeasurementSystem
			r.Name, r.CanonicalName = s.text("train"), s.text("/bin/train -x")
			s.defs.Regions = append(s.defs.Regions, r)
		}, ""},
		{"short name", func(s *sample) {
			s.defs.Regions[regionKernel].SourceFile, s.defs.Regions[regionKernel].CanonicalName = s.text("MPI"), s.text("Put")
		},
			`error: scout-region: region 5 has source file MPI and the canonical name "Put"`},
		{"region of another source file", func(s *sample) { s.defs.Regions[regionAllreduce].SourceFile = s.text("mpi") },
			`error: scout-region: location 0, event 5, time 2000000: a record of MPI in region 1, whose source file is not "MPI"`},
		{"NCCL's name", func(s *sample) { s.defs.Regions[regionAllreduce].Name = s.text("ncclAllReduce") }, ""},
		{"record outside regions", func(s *sample) {
			s.events[1][0], s.events[1][1] = otf2.Event{Kind: otf2.EventMpiCollectiveBegin, Time: ms}, s.events[1][0]
		}, "error: scout-region: location 1, event 1, time 1000000: a record of MPI outside all regions"},
		{"rank without MPI_Init", func(s *sample) { s.remove(3, s.index(3, otf2.EventEnter, 1), 2) }, "error: scout-init: location 3: rank 3 has no region MPI_Init"},
		{"rank without MPI_Finalize", func(s *sample) { s.remove(3, s.index(3, otf2.EventEnter, 3), 2) }, "error: scout-init: location 3: rank 3 has no region MPI_Finalize"},
		{"MPI_Init_thread", func(s *sample) { s.defs.Regions[regionInit].CanonicalName = s.text("mpi_INIT_THREAD") }, ""},
		{"collective that a member lacks", func(s *sample) { s.remove(2, s.index(2, otf2.EventEnter, 2), 4) },
			"error: scout-replay: location 0, event 6, time 9000000: scout would hang: rank 0 waits for ever in ALLREDUCE on communicator 0, to which 3 of 4 members come"},
		{"members in different orders", func(s *sample) {
			a, b := s.comm(otf2.ParadigmMPI, 0, 0, 1), s.comm(otf2.ParadigmMPI, 0, 0, 1)
			s.allreduce(0, 10*ms, a)
			s.allreduce(0, 11*ms, b)
			s.allreduce(1, 10*ms, b)
			s.allreduce(1, 11*ms, a)
		}, "scout would hang: rank 0 waits for ever in ALLREDUCE on communicator 1, to which 1 of 2 members come"},
		{"order with a cycle over three", func(s *sample) {
			a, b, c := s.comm(otf2.ParadigmMPI, 0, 0, 1), s.comm(otf2.ParadigmMPI, 0, 1, 2), s.comm(otf2.ParadigmMPI, 0, 2, 0)
			for r, order := range [][2]uint64{{a, c}, {b, a}, {c, b}} {
				s.allreduce(otf2.LocationRef(r), 10*ms, order[0])
				s.allreduce(otf2.LocationRef(r), 11*ms, order[1])
			}
		}, "scout would hang: rank 2 waits for ever in ALLREDUCE on communicator 3, to which 1 of 2 members come"},
		{"the same in one order", func(s *sample) {
			a, b, c := s.comm(otf2.ParadigmMPI, 0, 0, 1), s.comm(otf2.ParadigmMPI, 0, 1, 2), s.comm(otf2.ParadigmMPI, 0, 2, 0)
			for r, order := range [][2]uint64{{a, c}, {a, b}, {b, c}} {
				s.allreduce(otf2.LocationRef(r), 10*ms, order[0])
				s.allreduce(otf2.LocationRef(r), 11*ms, order[1])
			}
		}, ""},
		{"one member's own communicator", func(s *sample) { s.allreduce(2, 10*ms, s.comm(otf2.ParadigmMPI, 0, 2)) }, ""},
		{"other operation", func(s *sample) { s.find(1, otf2.EventMpiCollectiveEnd, 0).Args[0] = uint64(otf2.CollectiveOpBarrier) },
			"error: scout-replay: location 1, event 6, time 9000000: BARRIER with root NONE on communicator 0 meets the ALLREDUCE with root NONE of location 0, event 6"},
		{"other root", func(s *sample) {
			for l := range otf2.LocationRef(4) {
				s.collective(l, 10*ms, otf2.CollectiveOpBcast, 0, uint32(l/3), 64, 64)
			}
		}, "error: scout-replay: location 3, event 10, time 10000000: BCAST with root 1 on communicator 0 meets the BCAST with root 0"},
		{"root that is no member", func(s *sample) {
			for l := range otf2.LocationRef(4) {
				s.collective(l, 10*ms, otf2.CollectiveOpBcast, 0, 4, 64, 64)
			}
		}, "error: scout-replay: location 0, event 10, time 10000000: BCAST with root 4 on communicator 0, which has 4 ranks"},
		{"message", func(s *sample) {
			s.call(0, 10*ms, regionRecv, otf2.EventMpiSend, 3, 0, 5, 8)
			s.call(3, 9*ms, regionRecv, otf2.EventMpiRecv, 0, 0, 5, 8)
		}, ""},
		{"receive without send", func(s *sample) { s.call(3, 9*ms, regionRecv, otf2.EventMpiRecv, 1, 0, 5, 8) },
			"error: scout-replay: location 3, event 9, time 9000000: scout would hang: rank 3 waits for ever in a message from rank 1 of communicator 0"},
		{"message of another tag", func(s *sample) {
			s.call(0, 10*ms, regionRecv, otf2.EventMpiSend, 3, 0, 5, 8)
			s.call(3, 9*ms, regionRecv, otf2.EventMpiRecv, 0, 0, 6, 8)
		}, "scout would hang: rank 3 waits for ever in a message from rank 0 of communicator 0"},
		{"receives before sends on both sides", func(s *sample) {
			for l := range otf2.LocationRef(2) {
				s.call(l, 10*ms, regionRecv, otf2.EventMpiRecv, uint64(1-l), 0, 0, 8)
				s.call(l, 11*ms, regionRecv, otf2.EventMpiSend, uint64(1-l), 0, 0, 8)
			}
		}, "scout would hang: rank 0 waits for ever in a message from rank 1 of communicator 0"},
		{"send without receive", func(s *sample) { s.call(0, 10*ms, regionRecv, otf2.EventMpiSend, 3, 0, 5, 8) }, "note: scout-message: 1 messages are sent and not received"},
		{"messages that scout takes for its own", func(s *sample) {
			s.call(0, 10*ms, regionRecv, otf2.EventMpiSend, 3, 0, 0, 8)
			s.call(3, 9*ms, regionRecv, otf2.EventMpiRecv, 0, 0, 0, 8)
		}, "note: scout-tag: communicator 0 has collectives and messages with tag 0"},
		{"send to nobody", func(s *sample) { s.call(0, 10*ms, regionRecv, otf2.EventMpiSend, 4, 0, 5, 8) }, "error: scout-message: location 0, event 9, time 10000000: the other end of a message is rank 4 of communicator 0, which has 4 ranks"},
		{"message outside MPI", func(s *sample) {
			s.call(0, 10*ms, regionMain, otf2.EventMpiSend, 3, 0, 5, 8)
			s.call(3, 10*ms, regionRecv, otf2.EventMpiRecv, 0, 0, 5, 8)
		}, "error: scout-region: location 0, event 9, time 10000000: a record of MPI in region 0"},
		// Rank 0's send lasts until after rank 1 received by way of an AllReduce that rank 0 has behind the send: by rank 1's
		// clock it began before rank 0 came to it.
		{"late receiver behind what the sender does next", func(s *sample) {
			c := s.comm(otf2.ParadigmMPI, 0, 0, 1)
			s.messageInSend(0, 10*ms, 14*ms, 1)
			s.allreduce(0, 14*ms, c)
			s.allreduce(1, 11*ms, c)
			s.call(1, 12*ms, regionRecv, otf2.EventMpiRecv, 0, 0, 1, 8)
		}, "error: scout-replay: location 0: scout would hang: a send of rank 0 waits, by its times, for a receiver that comes later"},
		{"late receiver", func(s *sample) {
			c := s.comm(otf2.ParadigmMPI, 0, 0, 1)
			s.messageInSend(0, 10*ms, 14*ms, 1)
			s.allreduce(0, 14*ms, c)
			s.call(1, 12*ms, regionRecv, otf2.EventMpiRecv, 0, 0, 1, 8)
			s.allreduce(1, 12*ms+20, c)
		}, ""},
		{"collective without bytes", func(s *sample) {
			for l := range otf2.LocationRef(4) {
				e := s.find(l, otf2.EventMpiCollectiveEnd, 0)
				e.Args[3], e.Args[4] = 0, 0
			}
		}, "note: scout-payload: location 0, event 6, time 9000000: ALLREDUCE without bytes: it has no wait states"},
		{"broadcast of a root without bytes", func(s *sample) {
			for l := range otf2.LocationRef(4) {
				s.collective(l, 10*ms, otf2.CollectiveOpBcast, 0, 1, 0, uint64(l-1)*8)
			}
		}, "note: scout-payload: location 1, event 10, time 10000000: BCAST without bytes"},
		{"message without bytes", func(s *sample) {
			s.call(0, 10*ms, regionRecv, otf2.EventMpiSend, 3, 0, 5, 0)
			s.call(3, 10*ms, regionRecv, otf2.EventMpiRecv, 0, 0, 5, 0)
		}, "note: scout-payload: location 0, event 9, time 10000000: message without bytes"},
		{"missing events", func(s *sample) { s.drop[2] = true }, "traces/2.evt: no such file"},
		{"cut events", func(s *sample) { s.patch(2, func(b []byte) []byte { return b[:len(b)-30] }) }, "record Timestamp: file ends without an end mark"},
	})
}

func TestScalascaWantsItsNameForAnchors(t *testing.T) {
	path := smallest(t).write()
	other := strings.TrimSuffix(path, ".otf2") + ".trace"
	if err := os.Rename(path, other); err != nil {
		t.Fatal(err)
	}
	res, err := CheckScalasca(other, nil)
	if err == nil && !strings.Contains(lines(res), "scout-anchor: the anchor's name, traces.trace") {
		t.Errorf("got:\n%s", lines(res))
	}
}

// What Score-P 8 writes for MPI has operations of OTF2 3 in it, and a native archive has streams: scout 2.6 takes neither.
func TestArchivesThatScalascaDoesNotTake(t *testing.T) {
	for path, want := range map[string]string{
		filepath.Join("testdata", "scorep-mpi", "traces.otf2"): "scout does not know the collective operation CREATE_HANDLE",
		makeJob(t, nil): "is of type ACCELERATOR_STREAM: scout takes CPU_THREAD only",
	} {
		if res := checkScalasca(t, path); res.Errors() == 0 || !strings.Contains(lines(res), want) {
			t.Errorf("%s: want %s, got:\n%s", path, want, lines(res))
		}
	}
}
