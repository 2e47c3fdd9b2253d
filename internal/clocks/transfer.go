// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// transferReader finds, on the network rows of one communicator rank, the first transfer of each operation to each peer
// and channel, and the first arrival from each.
//
// Two times are certain. Data is ready to be sent when the oldest step of that peer and channel has entered the last
// phase before its transfer (RmaPut, STEP 0). Data has arrived when a step of that operation, peer and channel waits
// for the flush or for the GPU. Later transfers cannot be paired with certainty: empty ones have no record, and only
// the oldest step's arrivals are recorded.
//
// Network rows identify an operation by its event id; the communicator rank's row gives its name, earlier or later.
type transferReader struct {
	regions map[otf2.RegionRef]naming.NetPhase
	windows map[otf2.RmaWinRef]*membership.Communicator
	comm    *membership.Communicator

	ready    map[stepKey]float64 // when the oldest step entered its last phase before the transfer
	open     map[uint64][]transferEnd
	seen     map[stepKey]bool // pairs whose first arrival or transfer is known
	ops      map[uint64]opName
	order    []uint64 // event ids of ops, by age
	stepKeys []stepKey
	emit     func(opSample)
	reader   *facts.Reader // of the rows
	time     float64       // of the event being read
}

// Bounds on what a transferReader remembers.
const (
	maxNamedOps = 1 << 13
	maxSteps    = 1 << 15
)

// newTransferReader makes a reader of rows with these names, attributes and phases.
func newTransferReader(names facts.Names, attributes *attribute.Table, phases map[otf2.RegionRef]naming.NetPhase,
	windows map[otf2.RmaWinRef]*membership.Communicator, comm *membership.Communicator,
	emit func(opSample)) *transferReader {
	r := &transferReader{
		regions: phases, windows: windows, comm: comm, emit: emit, reader: facts.NewReader(names, attributes),
		ready: make(map[stepKey]float64), open: make(map[uint64][]transferEnd), seen: make(map[stepKey]bool),
		ops: make(map[uint64]opName),
	}
	r.reader.Enter, r.reader.Put = r.enterPhase, r.addTransfer
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

// opName identifies an operation on all ranks.
type opName struct {
	function string
	ordinal  uint64
	peer     int
}

// readEvent reads an event of a network row.
func (r *transferReader) readEvent(ev *otf2.Event, time float64) {
	r.time = time
	r.reader.Event(ev)
}

// enterPhase notes the phase that the oldest step enters.
func (r *transferReader) enterPhase(region *facts.Region) {
	phase, ok := r.regions[region.Region]
	if !ok || !phase.Unsent() && !phase.Arrived() || region.Peer < 0 {
		return
	}
	key, ok := keyOf(&region.Details, phase.Unsent(), int(region.Peer))
	switch {
	case !ok:
	case phase.Arrived():
		r.addFirst(key, r.time)
	case !r.seen[key]:
		r.rememberStep(key)
		r.ready[key] = r.time
	}
}

// addTransfer notes a transfer that begins.
func (r *transferReader) addTransfer(t *facts.Transfer) {
	w := r.windows[t.Window]
	key, ok := keyOf(&t.Details, true, t.To)
	if !ok || t.Step != 0 || w == nil || w.Parent != r.comm.Ref {
		return
	}
	if ready, ok := r.ready[key]; ok {
		r.addFirst(key, ready)
	}
}

func keyOf(d *facts.Details, send bool, peer int) (key stepKey, ok bool) {
	return stepKey{parent: d.Parent, channel: uint64(d.Channel), peer: peer, send: send},
		d.Parent != 0 && d.Channel >= 0
}

// addFirst notes one side of a transfer unless an earlier one is known.
func (r *transferReader) addFirst(key stepKey, time float64) {
	if r.seen[key] {
		return
	}
	r.rememberStep(key)
	r.seen[key] = true
	end := transferEnd{key, time}
	if op, ok := r.ops[key.parent]; ok {
		r.emitSample(op, end)
		return
	}
	r.open[key.parent] = append(r.open[key.parent], end)
}

// rememberStep notes a step and forgets the oldest ones.
func (r *transferReader) rememberStep(key stepKey) {
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

// nameOperation notes the operation that the communicator rank's row gives for an event id.
func (r *transferReader) nameOperation(event uint64, op opName) {
	r.order = append(r.order, event)
	r.ops[event] = op
	for _, end := range r.open[event] {
		r.emitSample(op, end)
	}
	delete(r.open, event)
	if len(r.order) > maxNamedOps {
		for _, old := range r.order[:maxNamedOps/2] {
			delete(r.ops, old)
		}
		r.order = append(r.order[:0], r.order[maxNamedOps/2:]...)
	}
}

func (r *transferReader) emitSample(op opName, end transferEnd) {
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

// networkRows lists the network rows of each rank of a communicator: the rows where it receives, and those where
// processes of its own host send for it.
func networkRows(defs *otf2.Definitions, c *membership.Communicator, hosts Hosts) [][]otf2.LocationRef {
	ranks := property.NetworkRanks(defs)
	rows := make([][]otf2.LocationRef, len(c.Members))
	for _, n := range membership.AllCommunicators(defs) {
		if !n.Network || n.Parent != c.Ref {
			continue
		}
		for _, l := range n.Members {
			if r, ok := ranks[l]; ok && r >= 0 && r < len(rows) && hosts.hostOf(l) == hosts.hostOf(c.Members[r]) &&
				l != c.Members[r] {
				rows[r] = append(rows[r], l)
			}
		}
	}
	return rows
}
