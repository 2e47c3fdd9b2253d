// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/transfers"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
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
	// The first messages wait until others are known that they can be compared with: those of one link may all come
	// before those of any other one. judged: no more of them wait.
	early  []message
	judged bool
	longer []longer // by rank of the world
}

// longer is by how much operations took longer on a rank than on others, ns.
type longer struct {
	all float64
	by  map[link]float64 // because of links of messages
}

func newLonger(ranks int) []longer {
	all := make([]longer, ranks)
	for i := range all {
		all[i].by = make(map[link]float64)
	}
	return all
}

// link has its sending end first.
type link struct{ rank, peer int }

// message is a message with the launches of its two ends.
type message struct {
	transfers.Operation
	plans [2]*messagePlan
	left  [2]uint64 // ns from the end of its launch to the end of the message
}

// mostEarly is the number of messages that wait.
const mostEarly = 1 << 12

func newSlowness(defs *otf2.Definitions, ranks []placement.Rank, of map[otf2.LocationRef]int) *slowness {
	s := &slowness{counter: transfers.New(), of: of, nodes: property.NodesOf(defs), ring: otf2.UndefinedString}
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
	s.longer = newLonger(len(ranks))
	return s
}

// member returns a member's transfers, if known; early is how much earlier than the last member it came.
func (s *slowness) member(comm *membership.Communicator, l otf2.LocationRef, d *facts.Details,
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
func (s *slowness) network(comm *membership.Communicator, l otf2.LocationRef) bool {
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
	least := a.transfer
	for i := range a.Parts {
		least = min(least, a.Parts[i].Time-a.Parts[i].Waits)
	}
	for i := range a.Parts {
		p := &a.Parts[i]
		s.counter.Took(p.Time - p.Waits)
		s.longer[p.Rank].all += float64(p.Time - p.Waits - least)
		if left := p.Begin + otf2.Timestamp(p.Time); longer > 0 {
			s.share(charges, longer, min(lateness.HeldUp(longer, uint64(end-min(left, end))), p.Time-p.Waits))
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

// countHeldUp counts how long a launch was held up: over all its messages, no longer than it took without waiting.
func (s *slowness) countHeldUp(p *messagePlan) {
	if p.settled = true; p.unjudged > 0 {
		return
	}
	took, all := p.Time-p.Waits, 0.0
	s.counter.Took(took)
	for i := range p.held {
		all += p.held[i].ns
	}
	on := &s.longer[p.Rank]
	on.all += float64(took)
	for i := range p.held {
		h := &p.held[i]
		ns := h.ns * min(1, float64(took)/all)
		s.counter.HeldUp(&h.by, ns)
		if h.by.Kind == transfers.Link {
			on.by[link{h.by.Rank, h.by.Peer}] += ns
		}
	}
}

// message adds a message whose ends' times are comparable. GPU figures of a launch are in its first message. A GPU's
// work for a message waits for no other GPU.
func (s *slowness) message(a, b *MessageEnd) {
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
	m := message{
		Operation: transfers.Operation{
			Sort: transfers.Sort{Comm: a.Plan.Comm.Ref, Function: "Send", Size: max(a.size, b.size),
				Algo: otf2.UndefinedString},
			Ordinal: a.Ordinal, Members: s.members, Transfer: uint64(max(end, begin) - begin), Network: true,
		},
		plans: [...]*messagePlan{a.Plan, b.Plan},
		left:  [...]uint64{uint64(end-a.Begin) - a.Plan.Time, uint64(end-b.Begin) - b.Plan.Time},
	}
	if s.judged {
		s.addMessage(&m)
		return
	}
	m.Members = slices.Clone(m.Members)
	for _, p := range m.plans {
		p.unjudged++
	}
	if s.early = append(s.early, m); len(s.early) == mostEarly {
		s.judgeEarly()
	}
}

// judgeEarly compares the first messages with each other.
func (s *slowness) judgeEarly() {
	s.judged = true
	for i := range s.early {
		s.counter.Expect(&s.early[i].Operation)
	}
	for i := range s.early {
		m := &s.early[i]
		s.addMessage(m)
		for _, p := range m.plans {
			if p.unjudged--; p.unjudged == 0 && p.settled {
				s.countHeldUp(p)
			}
		}
	}
	s.early = nil
}

// addMessage adds a message, and who made it longer to the launches of its ends.
func (s *slowness) addMessage(m *message) {
	charges := s.counter.Add(&m.Operation)
	longer := longerBy(charges)
	for k, p := range m.plans {
		held := lateness.HeldUp(longer, m.left[k])
		for i := range charges {
			if c := charges[i]; c.Kind != transfers.Unknown && held > 0 {
				p.held = append(p.held, heldUp{c, float64(held) * float64(c.Excess) / float64(longer)})
			}
		}
	}
}

// Slow lists the links and GPUs that made operations take long after all members had come, from package transfers.
type Slow struct {
	transfers.Work
	Cost float64   `json:"cost_ns"` // over all rows; with Total's waiting it is at most Total's time
	Rows []SlowRow `json:"rows"`
	// Longer are the parts that slow links have of how much longer operations took on ranks than on others.
	Longer []Longer `json:"-"`
}

// Longer is a part of how much longer operations took on Rank: that of messages on a slow link of rank By. A later one
// of the same Rank is a part of what the earlier ones leave.
type Longer struct {
	Rank, By int
	Part     float64
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
	s.judgeEarly()
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
		out.Longer = append(out.Longer, s.partsOf(f)...)
	}
	return out
}

// partsOf returns the parts that a slow link has, or all links from a rank or to it, and leaves the rest.
func (s *slowness) partsOf(f *transfers.Finding) (all []Longer) {
	if f.Kind != transfers.Link {
		return nil
	}
	for rank := range s.longer {
		on := &s.longer[rank]
		for _, l := range slices.SortedFunc(maps.Keys(on.by), link.compare) {
			if ns := on.by[l]; ns > 0 && on.all > 0 && l.isOf(f) {
				all = append(all, Longer{rank, l.rank, min(ns/on.all, 1)})
				on.all -= ns
			}
		}
	}
	return all
}

func (l link) isOf(f *transfers.Finding) bool {
	if f.Into {
		return l.peer == f.Rank
	}
	return l.rank == f.Rank && (f.Peer == transfers.Nobody || f.Peer == l.peer)
}

func (l link) compare(o link) int {
	return cmp.Or(cmp.Compare(l.rank, o.rank), cmp.Compare(l.peer, o.peer))
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
