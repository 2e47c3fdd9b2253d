// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// transferReader finds, on the network rows of one communicator rank, the first transfer of each operation to each
// peer and channel, and the first arrival from each.
//
// What is certain of them: data is ready to be sent when the oldest step of that peer and channel has entered the last
// phase before its transfer (RmaPut, STEP 0); and something has arrived when a step of that operation, peer and channel
// waits for the flush or for the GPU. Later transfers cannot be paired for certain: empty ones have no record, and of
// arrivals only the oldest step's are shown.
//
// Rows name the operation by its event id; what it is the communicator rank's row tells, sooner or later.
type transferReader struct {
	regions map[otf2.RegionRef]facts.NetPhase
	windows map[otf2.RmaWinRef]*facts.Communicator
	comm    *facts.Communicator

	ready    map[stepKey]float64 // when the oldest step entered its last phase before the transfer
	open     map[uint64][]transferEnd
	seen     map[stepKey]bool // pairs whose first arrival or transfer is known
	ops      map[uint64]opName
	order    []uint64 // event ids of ops, by age
	stepKeys []stepKey
	emit     func(opSample)
	reader   *facts.Reader // of the rows
	time     float64       // of the event that it reads
}

// Bounds of what a transferReader remembers.
const (
	maxNamedOps = 1 << 13
	maxSteps    = 1 << 15
)

// newTransferReader makes a reader of rows with these names, attributes and phases.
func newTransferReader(names facts.Names, attributes *facts.Attributes, phases map[otf2.RegionRef]facts.NetPhase,
	windows map[otf2.RmaWinRef]*facts.Communicator, comm *facts.Communicator, emit func(opSample)) *transferReader {
	r := &transferReader{
		regions: phases, windows: windows, comm: comm, emit: emit, reader: facts.NewReader(names, attributes),
		ready: make(map[stepKey]float64), open: make(map[uint64][]transferEnd), seen: make(map[stepKey]bool),
		ops: make(map[uint64]opName),
	}
	r.reader.Enter, r.reader.Put = r.phase, r.put
	return r
}

type stepKey struct {
	parent  uint64
	channel uint64
	peer    int
	send    bool
}

// transferEnd is one side of a first transfer.
type transferEnd struct {
	stepKey
	time float64
}

// opName is what tells an operation to all ranks.
type opName struct {
	function string
	ordinal  uint64
	peer     int
}

// event takes an event of a network row.
func (r *transferReader) event(ev *otf2.Event, time float64) {
	r.time = time
	r.reader.Event(ev)
}

// phase takes what the oldest step begins to wait for.
func (r *transferReader) phase(region *facts.Region) {
	phase, ok := r.regions[region.Region]
	if !ok || !phase.Unsent() && !phase.Arrived() || region.Peer < 0 {
		return
	}
	key, ok := keyOf(&region.Details, phase.Unsent(), int(region.Peer))
	switch {
	case !ok:
	case phase.Arrived():
		r.first(key, r.time)
	case !r.seen[key]:
		r.remember(key)
		r.ready[key] = r.time
	}
}

// put takes a transfer that begins.
func (r *transferReader) put(t *facts.Transfer) {
	w := r.windows[t.Window]
	key, ok := keyOf(&t.Details, true, t.To)
	if !ok || t.Step != 0 || w == nil || w.Parent != r.comm.Ref {
		return
	}
	if ready, ok := r.ready[key]; ok {
		r.first(key, ready)
	}
}

func keyOf(d *facts.Details, send bool, peer int) (key stepKey, ok bool) {
	return stepKey{parent: d.Parent, channel: uint64(d.Channel), peer: peer, send: send},
		d.Parent != 0 && d.Channel >= 0
}

// first takes one side of a transfer unless an earlier one is known.
func (r *transferReader) first(key stepKey, time float64) {
	if r.seen[key] {
		return
	}
	r.remember(key)
	r.seen[key] = true
	end := transferEnd{key, time}
	if op, ok := r.ops[key.parent]; ok {
		r.tell(op, end)
		return
	}
	r.open[key.parent] = append(r.open[key.parent], end)
}

// remember forgets the oldest steps.
func (r *transferReader) remember(key stepKey) {
	if _, known := r.ready[key]; known || r.seen[key] {
		return
	}
	r.stepKeys = append(r.stepKeys, key)
	if len(r.stepKeys) > maxSteps {
		for _, old := range r.stepKeys[:maxSteps/2] {
			delete(r.ready, old)
			delete(r.seen, old)
			delete(r.open, old.parent)
		}
		r.stepKeys = append(r.stepKeys[:0], r.stepKeys[maxSteps/2:]...)
	}
}

// name takes what the communicator rank's row tells of an operation.
func (r *transferReader) name(event uint64, op opName) {
	r.order = append(r.order, event)
	r.ops[event] = op
	for _, end := range r.open[event] {
		r.tell(op, end)
	}
	delete(r.open, event)
	if len(r.order) > maxNamedOps {
		for _, old := range r.order[:maxNamedOps/2] {
			delete(r.ops, old)
		}
		r.order = append(r.order[:0], r.order[maxNamedOps/2:]...)
	}
}

func (r *transferReader) tell(op opName, end transferEnd) {
	if op.peer >= 0 && op.peer != end.peer {
		return
	}
	function := op.function
	if op.peer >= 0 {
		function = "message" // Send here, Recv there
	}
	s := opSample{function: function, ordinal: op.ordinal, peer: end.peer, channel: int(end.channel)}
	if end.send {
		s.kind, s.begin, s.hasBegin = opTransfer, end.time, true
	} else {
		s.kind, s.end, s.hasEnd = opArrival, end.time, true
	}
	r.emit(s)
}

// networkRows lists the network rows of each rank of a communicator: where it receives, and where processes of
// its own host send for it.
func networkRows(defs *otf2.Definitions, c *facts.Communicator, hosts Hosts) [][]otf2.LocationRef {
	ranks := facts.NetworkRanks(defs)
	rows := make([][]otf2.LocationRef, len(c.Members))
	for _, n := range facts.AllCommunicators(defs) {
		if !n.Network || n.Parent != c.Ref {
			continue
		}
		for _, l := range n.Members {
			if r, ok := ranks[l]; ok && r >= 0 && r < len(rows) && hosts.of(l) == hosts.of(c.Members[r]) &&
				l != c.Members[r] {
				rows[r] = append(rows[r], l)
			}
		}
	}
	return rows
}
