// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// transferReader finds, on the network rows of one communicator rank, the first transfer of each operation to each
// peer and channel, and the first arrival from each.
//
// What is certain of them: data is ready to be sent when the oldest step of that peer and channel has entered the last
// phase before its transfer (RmaPut, STEP 0); and something has arrived when a step of that operation, peer and
// channel waits for the flush or for the GPU. Later transfers cannot be paired for certain: empty ones have no record, and
// of arrivals only the oldest step's are shown.
//
// Rows name the operation by its event id; what it is the communicator rank's row tells, sooner or later.
type transferReader struct {
	ids     transferIDs
	regions map[otf2.RegionRef]stepPhase
	windows map[otf2.RmaWinRef]*facts.Communicator
	comm    *facts.Communicator

	ready    map[stepKey]float64 // when the oldest step entered its last phase before the transfer
	open     map[uint64][]transferEnd
	seen     map[stepKey]bool // pairs whose first arrival or transfer is known
	ops      map[uint64]opName
	order    []uint64 // event ids of ops, by age
	stepKeys []stepKey
	emit     func(opSample)
}

// Bounds of what a transferReader remembers.
const (
	maxNamedOps = 1 << 13
	maxSteps    = 1 << 15
)

type transferIDs struct{ event, parent, channel, peer, step attributeID }

func findTransferIDs(defs *otf2.Definitions) transferIDs {
	return transferIDs{
		event:   findAttribute(defs, regions.AttrEventID),
		parent:  findAttribute(defs, regions.AttrParentID),
		channel: findAttribute(defs, regions.AttrChannel),
		peer:    findAttribute(defs, regions.AttrPeer),
		step:    findAttribute(defs, regions.AttrStep),
	}
}

// stepPhase is what a region of a network row says of the oldest step.
type stepPhase uint8

const (
	phaseReady   stepPhase = iota + 1 // not sent yet
	phaseArrived                      // received
)

var stepPhases = map[string]stepPhase{
	regions.NameSendGPUWait: phaseReady, regions.NameSendPeerWait: phaseReady,
	regions.NameRecvFlush: phaseArrived, regions.NameRecvGPUWait: phaseArrived,
}

func findStepPhases(defs *otf2.Definitions) map[otf2.RegionRef]stepPhase {
	all := make(map[otf2.RegionRef]stepPhase)
	for _, r := range defs.Regions {
		if p, ok := stepPhases[defs.String(r.Name)]; ok {
			all[r.Self] = p
		}
	}
	return all
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
	switch ev.Kind {
	case otf2.EventEnter:
		phase := r.regions[otf2.RegionRef(ev.Args[0])]
		if phase == 0 {
			return
		}
		key, ok := r.key(ev, phase == phaseReady)
		if peer, known := r.ids.peer.of(ev); ok && known {
			key.peer = int(peer)
			if phase == phaseArrived {
				r.first(key, time)
			} else if !r.seen[key] {
				r.remember(key)
				r.ready[key] = time
			}
		}
	case otf2.EventRmaPut:
		w := r.windows[otf2.RmaWinRef(ev.Args[0])]
		key, ok := r.key(ev, true)
		if step, known := r.ids.step.of(ev); !ok || !known || step != 0 || w == nil || w.Parent != r.comm.Ref {
			return
		}
		key.peer = int(ev.Args[1])
		if ready, ok := r.ready[key]; ok {
			r.first(key, ready)
		}
	}
}

func (r *transferReader) key(ev *otf2.Event, send bool) (stepKey, bool) {
	parent, ok := r.ids.parent.of(ev)
	channel, known := r.ids.channel.of(ev)
	return stepKey{parent: parent, channel: channel, send: send}, ok && known
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
func networkRows(defs *otf2.Definitions, c *facts.Communicator, hostOf func(otf2.LocationRef) int) [][]otf2.LocationRef {
	ranks := facts.NetworkRanks(defs)
	rows := make([][]otf2.LocationRef, len(c.Members))
	for _, n := range facts.AllCommunicators(defs) {
		if !n.Network || n.Parent != c.Ref {
			continue
		}
		for _, l := range n.Members {
			if r, ok := ranks[l]; ok && r >= 0 && r < len(rows) && hostOf(l) == hostOf(c.Members[r]) && l != c.Members[r] {
				rows[r] = append(rows[r], l)
			}
		}
	}
	return rows
}
