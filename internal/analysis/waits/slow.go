// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/transfers"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// slowness passes the operations whose members' times are comparable to package transfers.
type slowness struct {
	counter *transfers.Counter
	of      map[otf2.LocationRef]int // rank of the world
	hosts   []int                    // by rank of the world: equal numbers mean the same host
	nodes   map[otf2.LocationRef]int // nodes in the communicator of a row
	ring    otf2.StringRef           // the algorithm's name
	members []transfers.Member
}

func newSlowness(defs *otf2.Definitions, ranks []analysis.Rank, of map[otf2.LocationRef]int) *slowness {
	s := &slowness{counter: transfers.New(), of: of, nodes: facts.NodesOf(defs), ring: otf2.UndefinedString}
	for i := range defs.Strings {
		if defs.Strings[i].Text == "RING" {
			s.ring = defs.Strings[i].Self
		}
	}
	hosts := make(map[string]int)
	for _, r := range ranks {
		n, known := hosts[r.Host]
		if !known {
			n = len(hosts)
			hosts[r.Host] = n
		}
		s.hosts = append(s.hosts, n)
	}
	return s
}

// member returns a member's transfers, if known; early is how much earlier than the last member it came.
func (s *slowness) member(comm *facts.Communicator, l otf2.LocationRef, d *facts.Details,
	early uint64) transfers.Member {
	rank := s.of[l]
	m := transfers.Member{Rank: rank, Peer: transfers.Nobody, Node: s.hosts[rank], Early: early, Carried: d.Carried}
	if peer := int(m.Link.Peer); peer >= 0 && peer < len(comm.Members) {
		if at, ok := comm.WorldIndex(s.of, peer); ok {
			m.Peer = at
		}
	}
	return m
}

// network reports whether NCCL saw each of a communicator's ranks on a node of its own, so that all their traffic uses
// the network.
func (s *slowness) network(comm *facts.Communicator, l otf2.LocationRef) bool {
	return s.nodes[l] == comm.Size()
}

// collective adds a collective that all members came to, and returns the ranks and links that made it longer.
func (s *slowness) collective(members []analysis.Operation, last otf2.Timestamp, transfer uint64) []transfers.Charge {
	first := &members[0]
	op := transfers.Operation{
		Sort: transfers.Sort{Comm: first.Communicator.Ref, Function: first.Function, Size: first.Size,
			Algo: first.Algo, Graph: first.Graph},
		Ordinal: first.Ordinal, Transfer: transfer, Ring: first.Algo == s.ring && first.Root == otf2.CollectiveRootNone,
	}
	s.members = s.members[:0]
	if carried(members) {
		for i := range members {
			m := &members[i]
			s.members = append(s.members, s.member(
				first.Communicator, m.Location, &m.Details, uint64(max(last, m.Begin)-m.Begin)))
		}
		op.Network = s.network(first.Communicator, first.Location)
	} else { // nothing is known of any of them
		s.members = slices.Grow(s.members, len(members))[:len(members)]
		clear(s.members)
	}
	op.Members = s.members
	return s.counter.Add(&op)
}

// carried reports whether the transfers of any member are known.
func carried(members []analysis.Operation) bool {
	for i := range members {
		if d := &members[i].Carried; d.Known || d.Link.Transfers > 0 {
			return true
		}
	}
	return false
}

// held counts how long the members of a collective were held up by the ranks and links that made it longer.
func (s *slowness) held(a *Arrival, charges []transfers.Charge) {
	longer, end := longerBy(charges), a.lastBegin+otf2.Timestamp(a.transfer)
	for i := range a.Parts {
		p := &a.Parts[i]
		s.counter.Took(p.Time - p.Waits)
		if left := p.Begin + otf2.Timestamp(p.Time); longer > 0 {
			s.share(charges, longer, min(facts.HeldUp(longer, uint64(end-min(left, end))), p.Time-p.Waits))
		}
	}
}

// longerBy returns how much longer an operation was because of links and GPUs.
func longerBy(charges []transfers.Charge) (longer uint64) {
	for i := range charges {
		if charges[i].Kind != transfers.Unknown {
			longer += charges[i].Excess
		}
	}
	return longer
}

// share divides the time that a member was held up among the ranks and links responsible.
func (s *slowness) share(charges []transfers.Charge, longer, held uint64) {
	for i := range charges {
		if c := &charges[i]; c.Kind != transfers.Unknown {
			s.counter.HeldUp(c, float64(held)*float64(c.Excess)/float64(longer))
		}
	}
}

// heldUp is how long a launch of messages was held up in one of them, and by whom.
type heldUp struct {
	by transfers.Charge
	ns float64
}

// settle counts how long a launch was held up: over all its messages, no longer than it took without waiting.
func (s *slowness) settle(p *messagePlan) {
	took, all := p.Time-p.Waits, 0.0
	s.counter.Took(took)
	for i := range p.held {
		all += p.held[i].ns
	}
	for i := range p.held {
		h := &p.held[i]
		s.counter.HeldUp(&h.by, h.ns*min(1, float64(took)/all))
	}
}

// message adds a message whose ends' times are comparable. GPU figures of a launch are in its first message. A GPU's
// work for a message waits for no other GPU.
func (s *slowness) message(a, b *MessageEnd) {
	comm := a.Plan.Comm
	s.members = s.members[:0]
	begin, end := max(a.Begin, b.Begin), otf2.Timestamp(0)
	for _, e := range [...]*MessageEnd{a, b} {
		m := transfers.Member{Rank: e.Plan.Rank, Peer: transfers.Nobody, Node: s.hosts[e.Plan.Rank],
			Early: uint64(begin - e.Begin), Carried: e.carried}
		if other := b; m.Link.Peer >= 0 {
			if e == b {
				other = a
			}
			m.Peer = other.Plan.Rank
		}
		end = max(end, e.Begin+otf2.Timestamp(e.Plan.Time))
		s.members = append(s.members, m)
	}
	charges := s.counter.Add(&transfers.Operation{
		Sort: transfers.Sort{Comm: comm.Ref, Function: "Send", Size: max(a.size, b.size),
			Algo: otf2.UndefinedString},
		Ordinal: a.Ordinal, Members: s.members, Transfer: uint64(max(end, begin) - begin), Network: true,
	})
	for _, e := range [...]*MessageEnd{a, b} {
		held := facts.HeldUp(longerBy(charges), uint64(end-e.Begin)-e.Plan.Time)
		for i := range charges {
			if c := charges[i]; c.Kind != transfers.Unknown && held > 0 {
				e.Plan.held = append(e.Plan.held, heldUp{c,
					float64(held) * float64(c.Excess) / float64(longerBy(charges))})
			}
		}
	}
}

// Slow lists the links and GPUs that made operations take long after all members had come, from package transfers.
type Slow struct {
	transfers.Work
	Cost float64   `json:"cost_ns"` // over all rows; with Total's waiting it is at most Total's time
	Rows []SlowRow `json:"rows"`
}

// SlowRow is one link or GPU.
type SlowRow struct {
	What     string `json:"what"` // "link", "links from", "links to", "GPU"
	Name     string `json:"rank"`
	Host     string `json:"host"`
	GPU      string `json:"gpu"`
	PeerName string `json:"peer"` // "" if the row is not a single link
	PeerHost string `json:"peer_host"`
	transfers.Finding
}

func (s *slowness) result(ranks []Row, gpus []string) (out Slow) {
	var found []transfers.Finding
	found, out.Work = s.counter.Result()
	out.Rows = []SlowRow{}
	for i := range found {
		f := &found[i]
		out.Cost += f.Cost
		row := SlowRow{What: slowWhat(f), Name: ranks[f.Rank].Name, Host: ranks[f.Rank].Host, GPU: gpus[f.Rank],
			Finding: *f}
		if f.Peer != transfers.Nobody {
			row.PeerName, row.PeerHost = ranks[f.Peer].Name, ranks[f.Peer].Host
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func slowWhat(f *transfers.Finding) string {
	switch {
	case f.Kind != transfers.Link || f.Peer != transfers.Nobody:
		return f.Kind.String()
	case f.Into:
		return "links to"
	}
	return "links from"
}
