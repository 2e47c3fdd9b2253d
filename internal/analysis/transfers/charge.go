// SPDX-License-Identifier: Apache-2.0

package transfers

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Kind is the kind of resource that was slow.
type Kind uint8

// Kinds of slowness.
const (
	Unknown Kind = iota // the operation took longer than usual for an unknown reason
	Link                // the link from Rank to Peer
	GPU                 // the GPU of Rank
	numKinds
)

// String returns the name of the kind.
func (k Kind) String() string { return [numKinds]string{"unknown", "link", "GPU"}[k] }

// Nobody is the rank where no rank is known.
const Nobody = -1

// Member is a rank's part in an operation.
type Member struct {
	Rank int // in the world
	Peer int // rank in the world of its Link's other end, Nobody if it is not known
	Node int // ranks with one number share a node; negative: not known
	// Early is the time in ns from its arrival to the last member's.
	Early uint64
	facts.Carried
}

// heldByGPU returns how long, in ns, the GPU delayed transfers. Before its first step it may have waited for other
// members to arrive, so that time does not count.
func (m *Member) heldByGPU() uint64 { return m.GPUHeld - min(m.GPUHeld, m.GPUHeldFirst, m.Early) }

// Sort is what operations that usually take equally long have in common.
type Sort struct {
	Comm     otf2.CommRef
	Function string // of messages "Send"
	Size     uint64
	Algo     otf2.StringRef
	Graph    bool
}

// Operation is a collective with the members that have data, or the two ends of a message.
type Operation struct {
	Sort
	Ordinal  uint64 // of the function on the communicator; of messages among those of the pair
	Members  []Member
	Transfer uint64 // ns from the last member's begin to the last one's end
	// Network: its members exchange all data over the network, where transfers are recorded. Otherwise a GPU may wait
	// for data from another GPU of its node.
	Network bool
	// Ring: each member exchanges data with two neighbors only. If both are reached over the network, its GPU waits for
	// nothing else.
	Ring bool
}

// anyMember reports whether a condition holds for any member.
func (op *Operation) anyMember(is func(*Member) bool) bool {
	for i := range op.Members {
		if is(&op.Members[i]) {
			return true
		}
	}
	return false
}

// Charge is the time by which an operation took longer because of one link or GPU.
type Charge struct {
	Kind   Kind
	Rank   int    // in the world; Nobody if the kind is Unknown
	Peer   int    // the receiving end of a link; Nobody for other kinds
	Excess uint64 // ns
	Steps  uint64 // of the GPU or the link in the operation; 0 if the kind is Unknown
}

// suspect is a link or GPU whose time in an operation can be compared with others.
type suspect struct {
	resource
	sort  kindOf
	bytes uint64 // of a transfer on a link
	took  uint64 // ns
	steps uint64
	usual float64 // ns for each step, by the median of the others
	known bool    // whether usual is known
	least bool    // took is a lower bound: others are not compared with it
}

// excess returns by how many ns a suspect took longer than the others would have; 0 if that is not slow.
func (s *suspect) excess(transfer uint64) uint64 {
	usual := s.usual * float64(s.steps)
	if took := float64(s.took); !s.known || took <= usual || took < slowFactor*usual ||
		float64(s.took)-usual < float64(transfer)/slowShare {
		return 0
	}
	return s.took - uint64(usual)
}

func (s *suspect) rate() float64 { return float64(s.took) / float64(s.steps) }

// links lists the links of an operation as suspects. Time that the receiver's GPU held up, beyond the median of the
// operation's GPUs, is not the link's: the receiver had no free buffer.
func (c *Counter) links(op *Operation) {
	c.suspects, c.rates = c.suspects[:0], c.rates[:0]
	if !op.anyMember(func(m *Member) bool { return m.Link.Transfers > 0 }) {
		return
	}
	for i := range op.Members {
		c.rates = append(c.rates, float64(op.Members[i].heldByGPU()))
	}
	held := uint64(stats.Median(c.rates))
	for i := range op.Members {
		m := &op.Members[i]
		if m.Link.Peer < 0 || m.Link.Transfers == 0 || m.Peer < 0 || m.Peer == m.Rank {
			continue
		}
		s := suspect{resource: resource{Link, m.Rank, m.Peer}, took: m.Link.Busy, steps: m.Link.Transfers,
			bytes: m.Link.Bytes / m.Link.Transfers}
		s.sort = kindOf{Link, "", class(s.bytes), false}
		if at := slices.IndexFunc(op.Members, func(o Member) bool { return o.Rank == m.Peer }); at >= 0 {
			peer := &op.Members[at]
			s.took -= min(s.took, peer.heldByGPU()-min(peer.heldByGPU(), held))
			s.least = slowFactor*float64(s.took) < float64(m.Link.Busy)
			s.sort.near = m.Node >= 0 && m.Node == peer.Node
		}
		c.suspects = append(c.suspects, s)
	}
}

// gpus lists the GPUs of an operation as suspects, without those that may have waited for another GPU of their node;
// hidden reports whether there are any of those.
func (c *Counter) gpus(op *Operation) (hidden bool) {
	c.suspects = c.suspects[:0]
	for i := range op.Members {
		switch m := &op.Members[i]; {
		case !m.Known || m.GPUSteps == 0:
		case !op.Network && !(op.Ring && m.GPUBothWays):
			hidden = true
		default:
			c.suspects = append(c.suspects, suspect{
				resource: resource{GPU, m.Rank, Nobody}, sort: kindOf{GPU, op.Function, class(op.Size), false},
				took: m.heldByGPU(), steps: m.GPUSteps,
			})
		}
	}
	return hidden
}

// comparable reports whether two suspects of one operation can be compared.
func (s *suspect) comparable(o *suspect) bool {
	return s.resource != o.resource && s.sort.near == o.sort.near && max(s.bytes, o.bytes) <= 2*min(s.bytes, o.bytes)
}

// class returns one number for all sizes between two powers of two.
func class(bytes uint64) int {
	n := 0
	for ; bytes > 0; bytes >>= 1 {
		n++
	}
	return n
}

// chargeSlow compares the suspects with each other and with earlier operations, and charges the slow ones with at most
// the time that is left of the operation's excess. It returns the time that is left then.
func (c *Counter) chargeSlow(op *Operation, left uint64) uint64 {
	for i := range c.suspects {
		s := &c.suspects[i]
		s.usual, s.known = c.others(i)
	}
	total, from := uint64(0), len(c.charges)
	for i := range c.suspects {
		s := &c.suspects[i]
		if !s.least {
			c.history.add(s)
		}
		if !s.known {
			continue
		}
		excess := s.excess(op.Transfer)
		c.seen(s, excess)
		if excess > 0 && left > 0 {
			c.charges = append(c.charges, Charge{s.kind, s.rank, s.peer, excess, s.steps})
			total += excess
		}
	}
	if total <= left {
		return left - total
	}
	for i := range c.charges[from:] {
		charge := &c.charges[from+i]
		charge.Excess = uint64(float64(charge.Excess) / float64(total) * float64(left))
	}
	return 0
}

// others returns the median time of the others for a step: of those in this operation if there are enough, else from
// earlier operations.
func (c *Counter) others(of int) (usual float64, known bool) {
	s := &c.suspects[of]
	c.rates = c.rates[:0]
	for i := range c.suspects {
		if o := &c.suspects[i]; s.comparable(o) && !o.least {
			c.rates = append(c.rates, o.rate())
		}
	}
	if len(c.rates) < enoughOthers {
		if usual, known = c.history.others(s); known {
			return usual, true
		}
	}
	return stats.Median(c.rates), len(c.rates) > 0
}
