// SPDX-License-Identifier: Apache-2.0

package view

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// function is an operation of NCCL as the view shows it: one row of the table below.
type function struct {
	regions.Collective        // of messages name and role
	canonical          string // of MPI's counterpart: what scout goes by
}

// functions is indexed by part.fn. Source of the names: MPI 4.0.
var functions = [...]function{
	{*regions.CollectiveNamed("AllReduce"), "MPI_Allreduce"},
	{*regions.CollectiveNamed("AllGather"), "MPI_Allgather"},
	{*regions.CollectiveNamed("ReduceScatter"), "MPI_Reduce_scatter_block"},
	{*regions.CollectiveNamed("AlltoAll"), "MPI_Alltoall"},
	{*regions.CollectiveNamed("Broadcast"), "MPI_Bcast"},
	{*regions.CollectiveNamed("Scatter"), "MPI_Scatter"},
	{*regions.CollectiveNamed("Reduce"), "MPI_Reduce"},
	{*regions.CollectiveNamed("Gather"), "MPI_Gather"},
	{regions.Collective{Name: "Send", Role: otf2.RegionRolePoint2Point}, "MPI_Isend"},
	{regions.Collective{Name: "Recv", Role: otf2.RegionRolePoint2Point}, "MPI_Irecv"},
}

const (
	fnSend     = uint8(len(functions) - 2)
	fnRecv     = uint8(len(functions) - 1)
	fnMessages = fnSend // from here on
	fnNone     = 0xff
)

func functionNamed(name string) uint8 {
	for i := range functions {
		if functions[i].Name == name {
			return uint8(i)
		}
	}
	return fnNone
}

// part is one member's share of a collective, or one end of a message. There is one for every
// operation in the archive, so it is small and holds no pointers.
type part struct {
	begin, end     otf2.Timestamp // of its plan: as recorded, later as shown
	sent, received uint64         // bytes; of a message the first
	ordinal        uint64         // as recorded; of a message later the index of its other end's part
	peer           int32          // root or peer, rank in the native communicator; −1: none
	phase          int32          // in which it was called, index into job.phases
	fn             uint8          // index into functions
	of             uint8          // function that NCCL made this message for, or fnNone
	source         facts.Source   // of its times
	flags          flag
}

type flag uint8

const (
	flagPlan       flag = 1 << iota // the first part of its plan
	flagDropped                     // not in the view
	flagMoved                       // its begin is later than recorded, to make room
	flagUntimed                     // shown without wait states
	flagFused                       // another one of its plan has the time
	flagQuiet                       // a send that is not shown to wait for its receiver
	flagComparable                  // its begin can be compared with the other members'
	flagPlaced                      // of no such times: shown where it neither waits nor is waited for
)

func (p *part) is(f flag) bool      { return p.flags&f != 0 }
func (p *part) message() bool       { return p.fn >= fnMessages }
func (p *part) function() *function { return &functions[p.fn] }

// row is one communicator rank: its parts in the order in which it issued them.
type row struct {
	comm     *comm
	rank     int              // in the native communicator
	source   otf2.LocationRef // native location
	location *location        // where it is shown
	parts    []part
	unplaced uint64 // operations whose root or peer is no rank of the communicator, or that never ended
	state
	notices notices
}

// comm is a native communicator, reduced to the members that left data.
type comm struct {
	ref     otf2.CommRef // native
	name    string
	rows    []*row // by native rank; nil: without data
	present []*row
	rank    []int32 // native rank → rank among the present, −1: none
	used    bool    // something of it is in the view
	view    otf2.CommRef
	state   commState
}

// location is one rank of the view: a process, or one GPU of a process that uses several; or a further row of one, see
// spread.
type location struct {
	id    int // id of location, location group, and rank in COMM_LOCATIONS: that of first rows is the world rank
	name  string
	of    int // id of the rank's first row
	host  string
	rows  []*row
	order []placed // in which its units are shown; see scheduler

	schedule schedule
}

// placed is a unit of a row.
type placed struct {
	row *row
	unit
}

// unit is what is shown as a whole: a collective, or the messages of one plan.
type unit struct{ from, to int } // parts

// unitAt is the unit that begins with the first part at or after from that is in the view; from ≥ to if there is
// none.
func (r *row) unitAt(from int) unit {
	n := len(r.parts)
	for from < n && r.parts[from].is(flagDropped) {
		from++
	}
	u := unit{from, from}
	if from == n {
		return u
	}
	u.to++
	if r.parts[from].message() {
		for u.to < n && r.parts[u.to].message() && !r.parts[u.to].is(flagPlan) {
			u.to++
		}
	}
	return u
}

// kept is the unit without the parts at its begin that were dropped after it had its place; from = to: none is left.
func (r *row) kept(u unit) unit {
	for u.from < u.to && r.parts[u.from].is(flagDropped) {
		u.from++
	}
	return u
}
