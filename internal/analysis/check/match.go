// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// matcher matches events across locations: collectives by (communicator, operation, ordinal on that communicator),
// messages by (communicator, pair, ordinal).
type matcher struct {
	*Findings
	stretches []property.Stretch
	ours      bool // the archive follows the timeline model, so sizes can be compared
	merged    bool // but only for communicators of NCCL: the archive has others as well
	comms     map[otf2.CommRef]*membership.Communicator

	transfers  otf2.CommRef         // communicator whose messages nobody receives: property.Transfers
	unreported uint64               // parts of collectives that, according to the archive, were paused by RAS
	expected   map[otf2.CommRef]int // members that are expected to have the collectives
	pending    map[collectiveKey]*pendingCollective
	next       map[memberKey]uint64 // ordinal of the next operation
	messages   map[messageKey]*messageQueue
	free       []*pendingCollective
}

type collectiveKey struct {
	comm    otf2.CommRef
	op      otf2.CollectiveOp
	ordinal uint64
}

type memberKey struct {
	comm otf2.CommRef
	op   otf2.CollectiveOp
	rank int
}

// pendingCollective is a collective that some members have ended.
type pendingCollective struct {
	first  Place
	root   uint32
	shares []uint64 // possible bytes per rank, given all members so far
	seen   []uint64 // bit set of ranks
	count  int
}

type messageKey struct {
	comm     otf2.CommRef
	src, dst int
	tag      uint64
	ordinal  uint64 // noOrdinal: unknown
}

// noOrdinal represents an unknown ordinal: the n-th send of a pair then matches its n-th receive.
const noOrdinal = 1<<64 - 1

// messageQueue has the messages of a pair that only one side has so far.
type messageQueue struct {
	sends, receives []message
}

type message struct {
	at     Place
	length uint64
}

func newMatcher(fs *Findings, comms map[otf2.CommRef]*membership.Communicator, silent map[otf2.LocationRef]bool,
	stretches []property.Stretch, ours bool) *matcher {
	m := &matcher{
		Findings: fs, comms: comms, stretches: stretches, ours: ours,
		expected: make(map[otf2.CommRef]int), pending: make(map[collectiveKey]*pendingCollective),
		next: make(map[memberKey]uint64), messages: make(map[messageKey]*messageQueue),
	}
	for ref, c := range comms {
		for _, l := range c.Members {
			if !fs.lenient || !silent[l] {
				m.expected[ref]++
			}
		}
	}
	return m
}

// collective takes the end of a collective on one member. Without a known ordinal it is the next one.
func (m *matcher) collective(at Place, comm *membership.Communicator, rank int, op otf2.CollectiveOp, root uint32, sent,
	received, ordinal uint64, known bool) {
	member := memberKey{comm.Ref, op, rank}
	switch next := m.next[member]; {
	case !known:
		for ordinal = next; comm.Lacks(at.Location, facts.FunctionName(op), ordinal); {
			ordinal++
		}
	case ordinal < next:
		m.At(Error, at, RuleCollectiveMate, "%s %d on %q comes after %d", facts.FunctionName(op), ordinal, comm.Name,
			next-1)
		return
	}
	m.next[member] = ordinal + 1
	if property.Excluded(m.stretches, comm.Ref, facts.FunctionName(op), ordinal) {
		return
	}
	key := collectiveKey{comm.Ref, op, ordinal}
	p := m.pending[key]
	if p == nil {
		p = m.newPending(len(comm.Members))
		p.first, p.root = at, root
		m.pending[key] = p
	} else if p.root != root {
		m.At(Error, at, RuleRoot, "%s %d on %q has root %s here, %s at location %d, event %d",
			facts.FunctionName(op), ordinal, comm.Name, RootName(root), RootName(p.root), p.first.Location,
			p.first.Event)
	}
	if m.ours && (!m.merged || comm.NCCL) {
		m.sizes(at, p, comm, rank, op, root, sent, received, ordinal)
	}
	if p.seen[rank/64]>>(rank%64)&1 == 0 {
		p.seen[rank/64] |= 1 << (rank % 64)
		p.count++
	}
	if p.count >= m.expected[comm.Ref] {
		delete(m.pending, key)
		m.free = append(m.free, p)
	}
}

func (m *matcher) newPending(ranks int) *pendingCollective {
	words := (ranks + 63) / 64
	if n := len(m.free); n > 0 {
		p := m.free[n-1]
		m.free = m.free[:n-1]
		if cap(p.seen) >= words {
			clear(p.seen[:words])
			*p = pendingCollective{seen: p.seen[:words], shares: p.shares[:0]}
			return p
		}
	}
	return &pendingCollective{seen: make([]uint64, words)}
}

// sizes checks that the member's sizes are possible for the operation and match the other members'.
func (m *matcher) sizes(at Place, p *pendingCollective, comm *membership.Communicator, rank int, op otf2.CollectiveOp,
	root uint32, sent, received, ordinal uint64) {
	c := regions.CollectiveOf(op)
	if c == nil {
		return
	}
	fits := c.Shares(sent, received, uint64(len(comm.Members)), int64(root) == int64(rank))
	if len(fits) == 0 {
		m.At(Error, at, RuleSize, "%s %d on %q sends %d and receives %d bytes: no such operation of %d ranks does",
			c.Name, ordinal, comm.Name, sent, received, len(comm.Members))
		return
	}
	if len(p.shares) == 0 {
		p.shares = append(p.shares, fits...)
		return
	}
	common := slices.DeleteFunc(slices.Clone(p.shares), func(s uint64) bool { return !slices.Contains(fits, s) })
	if len(common) == 0 {
		m.At(Error, at, RuleSize, "%s %d on %q has %d bytes per rank here, %d at location %d, event %d",
			c.Name, ordinal, comm.Name, fits[0], p.shares[0], p.first.Location, p.first.Event)
		return
	}
	p.shares = append(p.shares[:0], common...)
}

// RootName returns the root of a collective: its rank in the communicator, or OTF2's name for a special value.
func RootName(root uint32) string {
	if root >= otf2.CollectiveRootThisGroup {
		return (&otf2.Field{Type: "CollectiveRoot"}).Text(uint64(root))
	}
	return fmt.Sprint(root)
}

// message takes one end of a message. Without a known ordinal it is the next one of its pair.
func (m *matcher) message(at Place, comm *membership.Communicator, rank, peer int, tag, length uint64, send bool,
	ordinal uint64, known bool) {
	key := messageKey{comm.Ref, rank, peer, tag, noOrdinal}
	if !send {
		key.src, key.dst = peer, rank
	}
	if known {
		key.ordinal = ordinal
	}
	q := keyed.Entry(m.messages, key)
	mine, others := &q.sends, &q.receives
	if !send {
		mine, others = others, mine
	}
	if len(*others) == 0 {
		*mine = append(*mine, message{at, length})
		return
	}
	other := (*others)[0]
	*others = (*others)[1:]
	if other.length != length {
		m.At(Error, at, RuleLength, "message %d>%d on %q has %d bytes here, %d at location %d, event %d",
			key.src, key.dst, comm.Name, length, other.length, other.at.Location, other.at.Event)
	}
	if len(q.sends)+len(q.receives) == 0 {
		delete(m.messages, key)
	}
}

// end reports everything that has no counterpart.
func (m *matcher) end() {
	m.endCollectives()
	m.endMessages()
}

func (m *matcher) endCollectives() {
	keys := slices.SortedFunc(maps.Keys(m.pending), func(a, b collectiveKey) int {
		return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.op, b.op), cmp.Compare(a.ordinal, b.ordinal))
	})
	for i := 0; i < len(keys); {
		k, p := keys[i], m.pending[keys[i]]
		j := i + 1 // the following ones that the same members lack
		for j < len(keys) && keys[j].comm == k.comm && keys[j].op == k.op && keys[j].ordinal == keys[j-1].ordinal+1 &&
			slices.Equal(m.pending[keys[j]].seen, p.seen) {
			j++
		}
		which := fmt.Sprintf("%s %d", facts.FunctionName(k.op), k.ordinal)
		if j > i+1 {
			which += fmt.Sprintf(" to %d", keys[j-1].ordinal)
		}
		if parts := uint64(j-i) * uint64(m.missing(k.comm, p)); parts <= m.unreported {
			m.unreported -= parts
		} else {
			m.At(m.pairing(), p.first, RuleCollectiveMate, "%s on %q: %s no such operation", which,
				m.comms[k.comm].Name, m.lacking(k.comm, p))
		}
		i = j
	}
}

// missing counts the members that lack a collective.
func (m *matcher) missing(ref otf2.CommRef, p *pendingCollective) int {
	n := len(m.comms[ref].Members)
	for _, w := range p.seen {
		n -= bits.OnesCount64(w)
	}
	return n
}

// lacking names the members that lack a collective: "ranks 2, 5 have".
func (m *matcher) lacking(ref otf2.CommRef, p *pendingCollective) string {
	comm, missing := m.comms[ref], m.missing(ref, p)
	var names []string
	for rank := range comm.Members {
		if p.seen[rank/64]>>(rank%64)&1 == 0 && len(names) < 8 {
			names = append(names, fmt.Sprint(rank))
		}
	}
	text := strings.Join(names, ", ")
	switch {
	case missing == 1:
		return "rank " + text + " has"
	case missing > len(names):
		return fmt.Sprintf("ranks %s and %d others have", text, missing-len(names))
	}
	return "ranks " + text + " have"
}

func (m *matcher) endMessages() {
	keys := slices.SortedFunc(maps.Keys(m.messages), func(a, b messageKey) int {
		return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst),
			cmp.Compare(a.tag, b.tag), cmp.Compare(a.ordinal, b.ordinal))
	})
	lacking := func(k messageKey) (left []message, lack string) {
		if q := m.messages[k]; len(q.sends) > 0 {
			return q.sends, "receive"
		}
		return m.messages[k].receives, "send"
	}
	transfers := 0
	for i := 0; i < len(keys); {
		k, n := keys[i], 0
		left, lack := lacking(k)
		for ; i < len(keys); i++ { // the others of the pair that the same side lacks
			next := keys[i]
			if next.ordinal = k.ordinal; next != k {
				break
			}
			more, lacks := lacking(keys[i])
			if lacks != lack {
				break
			}
			n += len(more)
		}
		if k.comm == m.transfers && len(m.messages[k].sends) > 0 {
			transfers += n
			continue
		}
		m.At(m.pairing(), left[0].at, RuleMessage, "%d message(s) %d>%d on %q without %s", n, k.src, k.dst,
			m.comms[k.comm].Name, lack)
	}
	if transfers > 0 {
		m.Add(Finding{Severity: Note, Rule: RuleMessage,
			Text: fmt.Sprintf("%d transfers of the network have no receive: nobody records that one has arrived",
				transfers)})
	}
}
