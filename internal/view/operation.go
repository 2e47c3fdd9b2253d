// SPDX-License-Identifier: Apache-2.0

package view

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// function is an operation of NCCL as the view shows it.
type function struct {
	regions.Collective        // messages have only name and role
	canonical          string // name of MPI's counterpart, by which scout recognizes it
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
	fnMessages = fnSend // this and all later functions are messages
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

// part is one member's share of a collective, or one end of a message. There is one for every operation in the archive,
// so it is small and holds no pointers.
type part struct {
	begin, end     otf2.Timestamp // of its plan: as recorded, later as shown
	sent, received uint64         // bytes; messages use sent only
	ordinal        uint64         // as recorded; of a matched message the index of its other end's part
	peer           int32          // root or peer, rank in the native communicator; −1: none
	phase          int32          // in which it was called, index into phases.all
	fn             uint8          // index into functions
	madeFor        uint8          // function that NCCL made this message for, or fnNone
	source         facts.Source   // of its times
	flags          flag
}

type flag uint8

const (
	flagPlan       flag = 1 << iota // the first part of its plan
	flagDropped                     // not in the view
	flagMoved                       // its begin is later than recorded, to make room
	flagUntimed                     // shown without wait states
	flagFused                       // its plan's time belongs to another part
	flagQuiet                       // a send whose waiting for its receiver is not shown
	flagComparable                  // its begin can be compared with the other members'
	flagPlaced                      // without comparable times: shown where no rank waits in it
)

func (p *part) is(f flag) bool      { return p.flags&f != 0 }
func (p *part) isMessage() bool     { return p.fn >= fnMessages }
func (p *part) function() *function { return &functions[p.fn] }

// row is one communicator rank: its parts in the order in which it issued them.
type row struct {
	comm     *comm
	rank     int              // in the native communicator
	source   otf2.LocationRef // native location
	location *location        // where it is shown
	parts    []part
	unplaced uint64 // operations without an end, or with a root or peer outside the communicator
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
	used    bool    // operations of it are in the view
	view    otf2.CommRef
	state   commState
}

// location is one rank of the view: a process, or one GPU of a process that uses several; or a further row of a rank,
// see splitRows.
type location struct {
	// of the location and the location group, and rank in COMM_LOCATIONS; for first rows the rank in the world
	id      int
	name    string
	firstID int // id of the rank's first location
	host    string
	rows    []*row
	order   []placed // its units in the order shown; see scheduler

	schedule schedule
}

// placed is a unit of a row.
type placed struct {
	row *row
	unit
}

// unit is the range of parts shown as a whole: a collective, or the messages of one plan.
type unit struct{ from, to int } // indices of parts

// unitAt returns the unit that begins with the first part in the view at or after from; from ≥ to if there is none.
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
	if r.parts[from].isMessage() {
		for u.to < n && r.parts[u.to].isMessage() && !r.parts[u.to].is(flagPlan) {
			u.to++
		}
	}
	return u
}

// remaining returns the unit without leading parts that were dropped since it was ordered; from = to: none is left.
func (r *row) remaining(u unit) unit {
	for u.from < u.to && r.parts[u.from].is(flagDropped) {
		u.from++
	}
	return u
}
