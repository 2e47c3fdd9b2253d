// SPDX-License-Identifier: Apache-2.0

package transfers

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/stats"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Kind is what was slow.
type Kind uint8

// Kinds of slowness.
const (
	Unknown Kind = iota // the operation took longer than usual; nobody knows why
	Link                // the way from Rank to Peer
	GPU                 // the GPU of Rank
	numKinds
)

// String is the kind in a word or two.
func (k Kind) String() string { return [numKinds]string{"unknown", "link", "GPU"}[k] }

// Nobody stands where no rank is known.
const Nobody = -1

// Member is a rank's part in an operation.
type Member struct {
	Rank int // in the world
	Peer int // rank in the world of its Link's other end, Nobody if it is not known
	Node int // ranks with one number share a node; negative: not known
	// Early is by how many ns it came before the last one.
	Early uint64
	facts.Carried
}

// held is how long the GPU held transfers up. Before it had done anything it may have waited for others to come.
func (m *Member) held() uint64 { return m.GPUHeld - min(m.GPUHeld, m.GPUHeldFirst, m.Early) }

// Sort is what operations must have in common to take as long as each other.
type Sort struct {
	Comm     otf2.CommRef
	Function string // of messages "Send"
	Size     uint64
	Algo     otf2.StringRef
	Graph    bool
}

// Operation is what is looked at in one go: a collective with the members that have data, or the two ends of a message.
type Operation struct {
	Sort
	Ordinal  uint64 // of the function on the communicator; of messages among those of the pair
	Members  []Member
	Transfer uint64 // ns from the last member's begin to the last one's end
	// Network: all that its members exchange goes over the network, where it is seen. Else what a GPU waits for may
	// come from one beside it.
	Network bool
	// Ring: each member has one before it and one behind it: where the network leads to both, its GPU waits for nothing
	// else.
	Ring bool
}

// any reports whether something is so of a member.
func (op *Operation) any(is func(*Member) bool) bool {
	for i := range op.Members {
		if is(&op.Members[i]) {
			return true
		}
	}
	return false
}

// Charge is by how much an operation took longer because of somebody.
type Charge struct {
	Kind   Kind
	Rank   int    // in the world; Nobody if the kind is Unknown
	Peer   int    // to which the link leads; Nobody if the kind is none of a link
	Excess uint64 // ns
	Steps  uint64 // in which, of a GPU or a link; 0 if the kind is Unknown
}

// Limits of what is called slow in one operation.
const (
	slowFactor = 1.25 // times what the others take
	slowShare  = 10   // and a tenth of the operation's time
	longFactor = 2    // times what operations of one sort usually take
)

// suspect is somebody whose part in an operation can be held against others'.
type suspect struct {
	resource
	sort  kindOf
	bytes uint64 // of a transfer on a link
	took  uint64 // ns
	steps uint64
	usual float64 // ns for each step, by the others
	known bool    // usual is
	least bool    // it took that at least: others are not held against it
}

// excess is by how much a suspect took longer than the others would have; 0 if that is not slow.
func (s *suspect) excess(transfer uint64) uint64 {
	usual := s.usual * float64(s.steps)
	if took := float64(s.took); !s.known || took <= usual || took < slowFactor*usual ||
		float64(s.took)-usual < float64(transfer)/slowShare {
		return 0
	}
	return s.took - uint64(usual)
}

func (s *suspect) rate() float64 { return float64(s.took) / float64(s.steps) }

// links lists the links of an operation. What the receiver's GPU held up beyond what GPUs of the operation do is not
// the link's: it had no room for what came.
func (c *Counter) links(op *Operation) {
	c.suspects, c.rates = c.suspects[:0], c.rates[:0]
	if !op.any(func(m *Member) bool { return m.Link.Transfers > 0 }) {
		return
	}
	for i := range op.Members {
		c.rates = append(c.rates, float64(op.Members[i].held()))
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
			s.took -= min(s.took, peer.held()-min(peer.held(), held))
			s.least = slowFactor*float64(s.took) < float64(m.Link.Busy)
			s.sort.near = m.Node >= 0 && m.Node == peer.Node
		}
		c.suspects = append(c.suspects, s)
	}
}

// gpus lists the GPUs of an operation, without those that may have waited for one beside them: hidden reports whether
// there are such.
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
				took: m.held(), steps: m.GPUSteps,
			})
		}
	}
	return hidden
}

// comparable reports whether two suspects of one operation can be held against each other.
func (s *suspect) comparable(o *suspect) bool {
	return s.resource != o.resource && s.sort.near == o.sort.near && max(s.bytes, o.bytes) <= 2*min(s.bytes, o.bytes)
}

// class is one for sizes between two powers of two.
func class(bytes uint64) int {
	n := 0
	for ; bytes > 0; bytes >>= 1 {
		n++
	}
	return n
}

// judge holds the suspects against each other, and against what is known of before, and charges those that were slow
// with no more than is left of the operation's time. It returns what is left then.
func (c *Counter) judge(op *Operation, left uint64) uint64 {
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

// others is what the median of the others takes for a step: of those in the operation where there are enough, else of
// what they took before.
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
