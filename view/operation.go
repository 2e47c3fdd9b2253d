// SPDX-License-Identifier: Apache-2.0

package view

import "ncclotf2/otf2"

// function is an operation of NCCL as the view shows it: one row of the table below.
type function struct {
	name      string // as the native archive's regions have it
	canonical string // of MPI's counterpart: what scout goes by
	op        otf2.CollectiveOp
	role      otf2.RegionRole
	rooted    bool
	// sizes is what a member sends and receives for ranks that contribute (or get) c bytes each.
	sizes func(c, ranks uint64, root bool) (sent, received uint64)
}

func allToAll(c, n uint64, _ bool) (uint64, uint64) { return n * c, n * c }

func oneToAll(c, n uint64, root bool) (uint64, uint64) {
	if root {
		return n * c, c
	}
	return 0, c
}

func allToOne(c, n uint64, root bool) (uint64, uint64) {
	if root {
		return c, n * c
	}
	return c, 0
}

// functions is indexed by part.fn. Source of the names: MPI 4.0; of the operations: OTF2's enumeration.
var functions = [...]function{
	{name: "AllReduce", canonical: "MPI_Allreduce", op: otf2.CollectiveOpAllreduce, role: otf2.RegionRoleCollAll2All, sizes: allToAll},
	{name: "AllGather", canonical: "MPI_Allgather", op: otf2.CollectiveOpAllgather, role: otf2.RegionRoleCollAll2All, sizes: allToAll},
	{name: "ReduceScatter", canonical: "MPI_Reduce_scatter_block", op: otf2.CollectiveOpReduceScatterBlock, role: otf2.RegionRoleCollAll2All, sizes: allToAll},
	{name: "AlltoAll", canonical: "MPI_Alltoall", op: otf2.CollectiveOpAlltoall, role: otf2.RegionRoleCollAll2All, sizes: allToAll},
	{name: "Broadcast", canonical: "MPI_Bcast", op: otf2.CollectiveOpBcast, role: otf2.RegionRoleCollOne2All, rooted: true, sizes: oneToAll},
	{name: "Scatter", canonical: "MPI_Scatter", op: otf2.CollectiveOpScatter, role: otf2.RegionRoleCollOne2All, rooted: true, sizes: oneToAll},
	{name: "Reduce", canonical: "MPI_Reduce", op: otf2.CollectiveOpReduce, role: otf2.RegionRoleCollAll2One, rooted: true, sizes: allToOne},
	{name: "Gather", canonical: "MPI_Gather", op: otf2.CollectiveOpGather, role: otf2.RegionRoleCollAll2One, rooted: true, sizes: allToOne},
	{name: "Send", canonical: "MPI_Isend", role: otf2.RegionRolePoint2Point},
	{name: "Recv", canonical: "MPI_Irecv", role: otf2.RegionRolePoint2Point},
}

const (
	fnSend     = uint8(len(functions) - 2)
	fnRecv     = uint8(len(functions) - 1)
	fnMessages = fnSend // from here on
	fnNone     = 0xff
)

func functionOf(op otf2.CollectiveOp) uint8 {
	for i := range functions[:fnMessages] {
		if functions[i].op == op {
			return uint8(i)
		}
	}
	return fnNone
}

func functionNamed(name string) uint8 {
	for i := range functions {
		if functions[i].name == name {
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
	fn             uint8          // index into functions
	of             uint8          // function that NCCL made this message for, or fnNone
	comparable     bool           // its begin can be compared with other ranks'
	flags          flag
}

type flag uint8

const (
	flagPlan    flag = 1 << iota // the first part of its plan
	flagDropped                  // not in the view
	flagMoved                    // its begin is later than recorded, to make room
	flagUntimed                  // shown without wait states
	flagFused                    // shown without length: an earlier one of its plan has the time
	flagQuiet                    // a send that is not shown to wait for its receiver
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
	tales tales
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

// location is one rank of the view: a process, or one GPU of a process that uses several.
type location struct {
	id    int // world rank: id of location, location group, and rank in COMM_LOCATIONS
	name  string
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
