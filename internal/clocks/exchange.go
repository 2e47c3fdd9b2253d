// SPDX-License-Identifier: Apache-2.0

package clocks

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// instant is a time on a host's clock, ns since the archive's begin. Times of a day fit a float64 exactly.
type instant struct {
	host int32
	time float64
}

// exchange is what one operation proves about clocks: none of its ends was before any of its begins. A collective
// contributes at most one begin and one end per host: the last entry and the first exit among the host's ranks.
//
// Which times are proof depends on their TIMING_SOURCE:
//
//   - GPU: the begin is when the kernel first ran, the end is when it was done; both are proof after widening by
//     UNCERTAINTY. An end that covers only a part of the kernel (END_IS_EARLY) is not.
//   - Enqueue: the call began before the kernel did, so the begin is proof, though a looser one; the end is not.
//   - Network: these are times of the rank's proxies. A proxy that only receives may begin late although the rank's
//     contribution has left through shared memory, and a proxy that only sends may end before others began. So they are
//     proof in AllReduce, where everything depends on every link twice (around the ring, or up and down the tree), and
//     for messages, whose proxies carry that very message.
//
// A rooted operation constrains by the root's begin (Broadcast, Scatter) or the root's end (Reduce, Gather) alone. An
// operation without data constrains no host.
type exchange struct {
	begins, ends []instant
	outlier      bool // contradicts the other exchanges
	hint         bool // is estimated, not proven (commonEnds)
}

func (x *exchange) size() int { return len(x.begins) + len(x.ends) }

// crosses reports whether the exchange involves more than one host.
func (x *exchange) crosses() bool {
	for _, b := range x.begins {
		for _, e := range x.ends {
			if b.host != e.host {
				return true
			}
		}
	}
	return false
}

// opKind classes operations by what they prove about clocks.
type opKind uint8

const (
	opOther     opKind = iota // proves nothing
	opAllReduce               // every rank waits for every rank, on every link
	opAllToAll                // every rank waits for every rank
	opFromRoot
	opToRoot
	opSend
	opRecv
	opTransfer // on the network, as is opArrival
	opArrival
)

var opKinds = map[string]opKind{
	"AllReduce": opAllReduce, "AllGather": opAllToAll, "ReduceScatter": opAllToAll, "AlltoAll": opAllToAll,
	"Broadcast": opFromRoot, "Scatter": opFromRoot, "Reduce": opToRoot, "Gather": opToRoot,
	"Send": opSend, "Recv": opRecv,
}

// opSample is one rank's part of an operation, kept until the other ranks' parts are known.
type opSample struct {
	function         string
	kind             opKind
	ordinal          uint64
	peer             int
	channel          int     // of transfers
	begin, end       float64 // widened by their uncertainty
	hasBegin, hasEnd bool
}

// sampleOf returns which times of a rank's operation are proof; ok is false if none is.
func sampleOf(o *facts.Operation, rank int, origin otf2.Timestamp) (s opSample, ok bool) {
	s = opSample{function: o.Function, kind: opKinds[o.Function], ordinal: o.Ordinal, peer: o.Peer}
	if s.kind == opOther || o.Size == 0 {
		return s, false
	}
	s.begin, s.end = float64(int64(o.Begin-origin)), float64(int64(o.End-origin))
	root := int64(o.Root) == int64(rank)
	switch s.kind {
	case opFromRoot:
		s.hasBegin, s.hasEnd = root, !root
	case opToRoot:
		s.hasBegin, s.hasEnd = true, root
	case opSend:
		s.hasBegin = true
	case opRecv:
		s.hasEnd = true
	default:
		s.hasBegin, s.hasEnd = true, true
	}
	switch o.Source {
	case facts.SourceGPU:
		s.begin -= float64(o.Uncertainty)
		s.end += float64(o.Uncertainty)
		s.hasEnd = s.hasEnd && !o.EndsEarly
	case facts.SourceNetwork:
		if s.kind != opAllReduce && s.kind != opSend && s.kind != opRecv {
			s.hasBegin, s.hasEnd = false, false
		}
	case facts.SourceEnqueue:
		s.hasEnd = false
	default:
		return s, false
	}
	return s, true
}

// exchangeReader reads the operations of the communicators that span hosts.
type exchangeReader struct {
	archive   *otf2.Archive
	hosts     Hosts
	stretches []property.Stretch
	out       *exchanges
	workers   int
	window    int // operations read per member and round
	pending   int // operations that may wait for their counterparts
	progress  func(done, total int)

	events, expected int
	problems         []string
}

// read goes through the communicators one after the other. The members of a communicator advance together by number of
// operations, not by time, so the number of pending operations is bounded however far the clocks are apart.
func (r *exchangeReader) read() {
	comms := membership.Communicators(r.archive.Defs)
	var spanning []*membership.Communicator
	for _, d := range r.archive.Defs.Comms {
		c := comms[d.Self]
		if c == nil || len(c.Members) < 2 {
			continue
		}
		first := r.hosts.hostOf(c.Members[0])
		if slices.ContainsFunc(c.Members, func(l otf2.LocationRef) bool { return r.hosts.hostOf(l) != first }) {
			spanning = append(spanning, c)
			for _, l := range c.Members {
				if d := r.archive.Defs.Location(l); d != nil {
					r.expected += int(d.Events)
				}
			}
		}
	}
	for _, c := range spanning {
		r.readCommunicator(c)
	}
}

// memberStream reads one member's row of the archive.
type memberStream struct {
	rank   int
	host   int32
	events *otf2.Cursor
	reader *facts.Row
	row    otf2.LocationRef
	net    *transferReader // nil without network rows
	origin otf2.Timestamp
	ops    []opSample
	read   int // events
	ended  bool
	err    error
}

func (m *memberStream) readOperations(n int) {
	for len(m.ops) < n && !m.ended {
		ev, ok, err := m.events.Next()
		if !ok || err != nil {
			m.ended, m.err = true, err
			break
		}
		m.read++
		if ev.Location != m.row {
			m.net.readEvent(ev, float64(int64(ev.Time-m.origin)))
			continue
		}
		m.reader.Event(ev)
	}
}

// readCommunicator reads all members of a communicator in step and matches their parts of each operation.
func (r *exchangeReader) readCommunicator(c *membership.Communicator) {
	members := r.openMembers(c)
	for _, m := range members {
		defer m.events.Close()
	}
	match := exchangeMatcher{comm: c, members: len(members), out: r.out, stretches: r.stretches,
		open: make(map[exchangeKey]*openExchange), limit: r.pending, hosts: make(map[int]int32, len(members))}
	for _, m := range members {
		match.hosts[m.rank] = m.host
	}
	for left := len(members); left > 0; {
		r.fillMembers(members)
		left = 0
		for _, m := range members {
			for i := range m.ops {
				match.add(m, &m.ops[i])
			}
			m.ops = m.ops[:0]
			r.events += m.read
			m.read = 0
			if m.err != nil {
				r.problems = append(r.problems, m.err.Error())
				m.err = nil
			}
			if !m.ended {
				left++
			}
		}
		r.progress(r.events, max(r.events, r.expected))
	}
	match.closeAll()
}

// fillMembers reads the next window of operations of each member, several members in parallel.
func (r *exchangeReader) fillMembers(members []*memberStream) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(r.workers, len(members)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(members); i = int(next.Add(1)) - 1 {
				members[i].readOperations(r.window)
			}
		})
	}
	wg.Wait()
}

// openMembers opens the members of a communicator that have events. The caller closes them.
func (r *exchangeReader) openMembers(c *membership.Communicator) (members []*memberStream) {
	origin := otf2.Timestamp(r.archive.Defs.Clock.Offset)
	comms := map[otf2.CommRef]*membership.Communicator{c.Ref: c}
	rows := networkRows(r.archive.Defs, c, r.hosts)
	names, attributes := facts.ArchiveNames(r.archive.Defs, comms), attribute.Find(r.archive.Defs)
	phases, wins := naming.NetPhaseRegions(r.archive.Defs), membership.Windows(r.archive.Defs)
	for rank, l := range c.Members {
		if d := r.archive.Defs.Location(l); d == nil || d.Events == 0 {
			continue
		}
		m := &memberStream{rank: rank, host: int32(r.hosts.hostOf(l)), row: l, origin: origin}
		reader := facts.NewReader(names, attributes)
		m.reader = reader.Row(l)
		reader.Operation = func(o *facts.Operation) {
			if o.Comm != c.Ref || c.Self && !o.Message {
				return
			}
			if s, ok := sampleOf(o, rank, origin); ok {
				m.ops = append(m.ops, s)
			}
			if m.net != nil && o.Event != 0 && !o.Graph { // transfers of all replays may carry the id of one operation
				name := opName{function: o.Function, ordinal: o.Ordinal, peer: -1}
				if s := opKinds[o.Function]; s == opSend || s == opRecv {
					name.peer = o.Peer
				}
				m.net.nameOperation(o.Event, name)
			}
		}
		if len(rows[rank]) > 0 {
			m.net = newTransferReader(names, attributes, phases, wins, c, func(s opSample) { m.ops = append(m.ops, s) })
		}
		m.events = r.archive.Cursor(&otf2.Selection{Locations: append(rows[rank], l)})
		members = append(members, m)
	}
	return members
}

type exchangeKey struct {
	function string
	ordinal  uint64
	src, dst int // of messages and transfers
	channel  int // of transfers, −1 for others
}

// openExchange is an operation of which some members' parts are still unknown.
type openExchange struct {
	byHost map[int32]*hostPart
	order  []int32
	parts  int
	serial int
}

// hostPart is the last begin and the first end among the ranks of one host.
type hostPart struct {
	begin, end       float64
	hasBegin, hasEnd bool
}

type exchangeMatcher struct {
	comm      *membership.Communicator
	members   int
	hosts     map[int]int32 // by rank
	stretches []property.Stretch
	out       *exchanges
	open      map[exchangeKey]*openExchange
	queue     []exchangeKey // keys in the order in which they were opened; closed ones may still be listed
	limit     int
	serial    int
}

func (m *exchangeMatcher) add(from *memberStream, s *opSample) {
	key := exchangeKey{function: s.function, ordinal: s.ordinal, src: -1, dst: -1, channel: -1}
	expected := m.members
	switch s.kind {
	case opSend:
		key.function, key.src, key.dst = "", from.rank, s.peer
	case opRecv:
		key.function, key.src, key.dst = "", s.peer, from.rank
	case opTransfer:
		key.src, key.dst, key.channel = from.rank, s.peer, s.channel
	case opArrival:
		key.src, key.dst, key.channel = s.peer, from.rank, s.channel
	default:
		if property.Excluded(m.stretches, m.comm.Ref, s.function, s.ordinal) {
			return
		}
	}
	if key.src >= 0 {
		if host, known := m.hosts[s.peer]; !known || host == from.host {
			return
		}
		if len(m.stretches) > 0 {
			function := facts.PairName(key.src, key.dst)
			if opKinds[key.function] != opOther {
				function = key.function
			}
			if property.Excluded(m.stretches, m.comm.Ref, function, s.ordinal) {
				return
			}
		}
		expected = 2
	}
	o := m.open[key]
	if o == nil {
		m.serial++
		o = &openExchange{byHost: make(map[int32]*hostPart, 2), serial: m.serial}
		m.open[key] = o
		m.queue = append(m.queue, key)
	}
	h := o.byHost[from.host]
	if h == nil {
		h = new(hostPart)
		o.byHost[from.host] = h
		o.order = append(o.order, from.host)
	}
	if s.hasBegin && (!h.hasBegin || s.begin > h.begin) {
		h.begin, h.hasBegin = s.begin, true
	}
	if s.hasEnd && (!h.hasEnd || s.end < h.end) {
		h.end, h.hasEnd = s.end, true
	}
	if o.parts++; o.parts >= expected {
		m.close(key, o)
	}
	for len(m.open) > m.limit {
		m.closeOldest()
	}
	if len(m.queue) > 2*m.limit+1024 {
		m.queue = slices.DeleteFunc(m.queue, func(k exchangeKey) bool { return m.open[k] == nil })
	}
}

// close creates an exchange of the known parts, if they include a begin and an end.
func (m *exchangeMatcher) close(key exchangeKey, o *openExchange) {
	delete(m.open, key)
	var x exchange
	slices.SortFunc(o.order, func(a, b int32) int { return cmp.Compare(a, b) })
	for _, host := range o.order {
		if h := o.byHost[host]; h.hasBegin {
			x.begins = append(x.begins, instant{host, h.begin})
		}
		if h := o.byHost[host]; h.hasEnd {
			x.ends = append(x.ends, instant{host, h.end})
		}
	}
	if len(x.begins) == 0 || len(x.ends) == 0 {
		return
	}
	m.out.add(x)
}

func (m *exchangeMatcher) closeOldest() {
	for len(m.queue) > 0 {
		key := m.queue[0]
		m.queue = m.queue[1:]
		if o := m.open[key]; o != nil {
			m.close(key, o)
			return
		}
	}
}

func (m *exchangeMatcher) closeAll() {
	for len(m.open) > 0 {
		m.closeOldest()
	}
}
