// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
)

// operation is one collective or message of one communicator rank: as a recording says it happened,
// or as an archive shows it.
type operation struct {
	Name     string // NCCL's function
	Root     int64  // −1 for rootless ones; the peer of messages
	Sent     uint64
	Received uint64
	Count    uint64
	Datatype string
	Seq      int64 // −1 where NCCL reported none
	Algo     string
	Proto    string

	begin, end  uint64 // archives: of the region around it
	region      int    // archives: how many regions its row has up to this one; each is a plan
	source      string // archives: TIMING_SOURCE
	ordinal     int64  // archives: ORDINAL
	uncertainty int64  // archives: UNCERTAINTY, −1 where there is none
	realigned   int64  // archives: REALIGNED, −1 where NCCL's own order of stamps was right
	id, plan    handle // archives: EVENT_ID, PLAN_ID
	send, recv  string // archives: SENDBUFF_CLASS, RECVBUFF_CLASS
	event       *replay.Event
}

// sequenceKey orders operations as the model matches them: by function, messages by peer.
func (o *operation) sequenceKey() string {
	switch o.Name {
	case "Send", "Recv":
		return fmt.Sprintf("%s %d", o.Name, o.Root)
	}
	return o.Name
}

// member is a communicator rank: communicators are told apart by id and the loading of the plugin
// in which they lived, both of which all members share.
type member struct {
	comm string
	rank int
}

// expected holds what an archive of a recording must show.
type expected struct {
	operations map[member]map[string][]*operation
	nranks     map[string]int
	names      map[string]string
	ranks      map[string][]int // members seen
}

// elementSize is written down here once more, from nccl.h's documentation of ncclDataType_t, so that a
// mistake in the model does not hide itself.
var elementSize = map[string]uint64{
	"ncclInt8": 1, "Unknown": 1, "ncclFloat8e4m3": 1, "ncclFloat8e5m2": 1,
	"ncclFloat16": 2, "ncclBfloat16": 2,
	"ncclInt32": 4, "ncclUint32": 4, "ncclFloat32": 4,
	"ncclInt64": 8, "ncclUint64": 8, "ncclFloat64": 8,
}

// sizes gives what Score-P counts as sent and received for the MPI operation of the same name, for n
// ranks and c bytes per rank.
func sizes(name string, n, c uint64, root bool) (sent, received uint64) {
	pick := func(yes, no uint64) uint64 {
		if root {
			return yes
		}
		return no
	}
	switch name {
	case "AllReduce", "AllGather", "ReduceScatter", "AlltoAll":
		return n * c, n * c
	case "Broadcast", "Scatter":
		return pick(n*c, 0), c
	case "Reduce", "Gather":
		return c, pick(n*c, 0)
	}
	panic("no such collective: " + name)
}

func rooted(name string) bool {
	return slices.Contains([]string{"Broadcast", "Reduce", "Gather", "Scatter"}, name)
}

// expect works out from a recording what its archive must show: one operation for each Coll and P2p
// event, and one for each direct call of a collective that has none.
func expect(rec *replay.Recording) *expected {
	e := &expected{
		operations: make(map[member]map[string][]*operation),
		nranks:     make(map[string]int), names: make(map[string]string), ranks: make(map[string][]int),
	}
	for _, p := range rec.Processes {
		for _, c := range p.Contexts {
			comm := commKey(c)
			e.nranks[comm], e.names[comm] = c.NRanks, c.Name()
			e.ranks[comm] = append(e.ranks[comm], c.Rank)
		}
		taken := make(map[*replay.Event]bool)
		for _, ev := range p.Events {
			if (ev.Type == descriptor.TypeColl || ev.Type == descriptor.TypeP2p) && ev.Parent != nil {
				taken[ev.Parent] = true
			}
		}
		for _, ev := range p.Events {
			if op := expectedOperation(ev, taken); op != nil {
				m := member{commKey(ev.Context), ev.Context.Rank}
				if e.operations[m] == nil {
					e.operations[m] = make(map[string][]*operation)
				}
				key := op.sequenceKey()
				e.operations[m][key] = append(e.operations[m][key], op)
			}
		}
	}
	for _, r := range e.ranks {
		slices.Sort(r)
	}
	return e
}

func commKey(c *replay.Context) string { return fmt.Sprintf("%#x/%d", c.CommID, c.Open) }

func expectedOperation(ev *replay.Event, taken map[*replay.Event]bool) *operation {
	op := &operation{event: ev, Root: -1, Seq: -1}
	switch d := ev.Descr.(type) {
	case *descriptor.Coll:
		op.Name, op.Count, op.Datatype = d.Func, d.Count, d.Datatype
		op.Seq, op.Algo, op.Proto = int64(d.SeqNumber), d.Algo, d.Proto
		if api, ok := parent[*descriptor.CollApi](ev); ok {
			op.Count, op.Datatype = api.Count, api.Datatype
		}
		if rooted(d.Func) {
			op.Root = int64(d.Root)
		}
	case *descriptor.CollApi:
		if taken[ev] || bool(d.GraphCaptured) {
			return nil
		}
		op.Name, op.Count, op.Datatype = d.Func, d.Count, d.Datatype
		if rooted(d.Func) {
			op.Root = int64(d.Root)
		}
	case *descriptor.P2p:
		op.Name, op.Count, op.Datatype, op.Root = d.Func, d.Count, d.Datatype, int64(d.Peer)
		bytes := d.Count * elementSize[d.Datatype]
		if d.Func == "Send" {
			op.Sent = bytes
		} else {
			op.Received = bytes
		}
		return op
	default:
		return nil
	}
	n, bytes := uint64(ev.Context.NRanks), op.Count*elementSize[op.Datatype]
	op.Sent, op.Received = sizes(op.Name, n, bytes, op.Root == int64(ev.Context.Rank))
	if d, ok := ev.Descr.(*descriptor.Coll); ok && op.Name == "AllGather" &&
		uint64(d.SendBuff) == uint64(d.RecvBuff)+uint64(ev.Context.Rank)*bytes {
		op.Sent, op.Received = (n-1)*bytes, (n-1)*bytes // in place
	}
	return op
}

func parent[T any](ev *replay.Event) (T, bool) {
	var none T
	if ev.Parent == nil {
		return none, false
	}
	d, ok := ev.Parent.Descr.(T)
	return d, ok
}
