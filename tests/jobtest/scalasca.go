// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// SmallestOfScalasca is an archive in which scout.mpi of Scalasca 2.6 finds Wait at NxN: four ranks, one AllReduce. It is
// for tests in folders of tests/.
func SmallestOfScalasca(t testing.TB) *Sample {
	return Load(t, "../jobtest/testdata/scalasca-min/traces.otf2")
}

// Regions of the smallest archive that samples use.
const (
	RegionMain      = 0
	RegionAllreduce = 1
	RegionRecv      = 2
	RegionInit      = 3
	RegionKernel    = 5
)

// Call puts a region with one record of MPI in it before the last four events of a location, which end it.
func (s *Sample) Call(l otf2.LocationRef, t otf2.Timestamp, region uint64, kind otf2.EventKind, args ...uint64) {
	at := len(s.Events[l]) - 4
	if s.Events[l][at].Kind != otf2.EventEnter { // Leave of the program is the last one
		at++
	}
	for i, ev := range []otf2.Event{
		{Kind: otf2.EventEnter, Time: t, Args: []uint64{region}},
		{Kind: kind, Time: t, Args: args},
		{Kind: otf2.EventLeave, Time: t + 10, Args: []uint64{region}},
	} {
		s.Insert(l, at+i, ev)
	}
}

func (s *Sample) Collective(l otf2.LocationRef, t otf2.Timestamp, op otf2.CollectiveOp, comm uint64, root uint32, sent,
	received uint64) {
	s.Call(l, t, RegionAllreduce, otf2.EventMpiCollectiveEnd, uint64(op), comm, uint64(root), sent, received)
	end := s.Index(l, otf2.EventMpiCollectiveEnd, s.kinds(l, otf2.EventMpiCollectiveEnd)-1)
	s.Insert(l, end, otf2.Event{Kind: otf2.EventMpiCollectiveBegin, Time: t})
}

func (s *Sample) kinds(l otf2.LocationRef, kind otf2.EventKind) (n int) {
	for i := range s.Events[l] {
		if s.Events[l][i].Kind == kind {
			n++
		}
	}
	return n
}

func (s *Sample) Text(text string) otf2.StringRef {
	for _, x := range s.Defs.Strings {
		if x.Text == text {
			return x.Self
		}
	}
	ref := otf2.StringRef(len(s.Defs.Strings))
	s.Defs.Strings = append(s.Defs.Strings, otf2.String{Self: ref, Text: text})
	return ref
}

// Comm defines a communicator of a paradigm with the members.
func (s *Sample) Comm(p otf2.Paradigm, parent otf2.CommRef, members ...uint64) uint64 {
	g := otf2.GroupRef(len(s.Defs.Groups))
	s.Defs.Groups = append(s.Defs.Groups, otf2.Group{Self: g, Type: otf2.GroupTypeCommGroup, Paradigm: p,
		Members: members})
	c := otf2.CommRef(len(s.Defs.Comms))
	s.Defs.Comms = append(s.Defs.Comms, otf2.Comm{Self: c, Group: g, Parent: parent})
	return uint64(c)
}

func (s *Sample) LocationsOf(p otf2.Paradigm) {
	s.Defs.Groups = append(s.Defs.Groups, otf2.Group{
		Self: otf2.GroupRef(len(s.Defs.Groups)), Type: otf2.GroupTypeCommLocations, Paradigm: p,
		Members: []uint64{0, 1, 2, 3},
	})
}

func (s *Sample) Allreduce(l otf2.LocationRef, t otf2.Timestamp, comm uint64) {
	s.Collective(l, t, otf2.CollectiveOpAllreduce, comm, otf2.CollectiveRootNone, 64, 64)
}

// MessageInSend puts a blocking send to a rank, in a region of its own.
func (s *Sample) MessageInSend(l otf2.LocationRef, from, to otf2.Timestamp, peer uint64) {
	r := s.Defs.Regions[RegionRecv]
	r.Self, r.CanonicalName = otf2.RegionRef(len(s.Defs.Regions)), s.Text("MPI_Send")
	s.Defs.Regions = append(s.Defs.Regions, r)
	s.Call(l, from, uint64(r.Self), otf2.EventMpiSend, peer, 0, 1, 8)
	last := len(s.Events[l]) - 1
	for s.Events[l][last].Kind != otf2.EventLeave || s.Events[l][last].Args[0] != uint64(r.Self) {
		last--
	}
	s.Events[l][last].Time = to
}
