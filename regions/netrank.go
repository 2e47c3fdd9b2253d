// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// The network of a communicator rank: rows for sending and receiving, each with the phase of the oldest transfer under
// way. docs/nccl-profiler-api.md describes the states of ProxyStep (§2.3), and for which processes a proxy thread works
// (§6).

// netRank is the network of one communicator rank, as far as this process's proxy threads work for it. The rank is one
// of this process, or of another process whose transfers are carried out here (PXN, docs/nccl-profiler-api.md §6).
type netRank struct {
	label   string
	comm    *commRank // nil if foreign
	foreign int       // index into Process.Foreign, else −1
	window  int       // index into Process.Wins, −1 before the first transfer

	tid        int    // the proxy thread that carries it; 0: none yet, −1: several
	thread     string // its name
	send, recv netSide
	polls      polls

	oldest, newest *proxyOp // open
	ops            int
	loose          bounded.Map[*proxyStep] // open steps without a known ProxyOp

	sums   map[sumKey]*netSum   // where transfers are summed up
	meters map[int32]*linkMeter // by peer
}

// network holds what the proxy threads of the process carry.
type network struct {
	*board
	ranks   *ranks
	ops     *operations
	metrics *metrics

	proxies   map[uint64]*proxyOp
	steps     map[uint64]*proxyStep
	freeSteps *proxyStep
	transfers bounded.Map[struct{}] // NetPlugin

	foreign     map[uint64]*netRank // ranks of other processes, by context
	foreignNets []*netRank          // the same, in order of appearance

	phaseRegions [numNetPhases]otf2.RegionRef // plus 1
	counts       [numNetCounts]uint64
}

func newNetwork(b *board, rs *ranks, ops *operations, ms *metrics) *network {
	return &network{
		board: b, ranks: rs, ops: ops, metrics: ms,
		proxies: make(map[uint64]*proxyOp), steps: make(map[uint64]*proxyStep),
		transfers: bounded.New[struct{}](maxTransfers),
		foreign:   make(map[uint64]*netRank),
	}
}

func newNetRank(label string, c *commRank, foreign int) *netRank {
	n := &netRank{label: label, comm: c, foreign: foreign, window: -1, loose: bounded.New[*proxyStep](maxSteps)}
	n.send.rank, n.recv.rank = n, n
	return n
}

// netSide is one direction: a row of the timeline, and the steps under way in the order of their begins.
type netSide struct {
	rank *netRank
	loc  *location

	head, tail *proxyStep
	steps      int
	bytes      int64  // of transfers under way, see network.inFlight
	clock      uint64 // for sums of transfers: the latest time, as the row would have it
	phase      openNetPhase
}

// openNetPhase is the region of the oldest step. It is written when time has passed in it, or when something else must
// be written inside it; a phase without duration is not written.
type openNetPhase struct {
	phase   netPhase
	start   uint64
	channel uint8
	peer    int32
	parent  uint64
	op      *proxyOp // nil if unknown
	written bool
}

// Bounds per communicator rank for what NCCL never ends: a communicator has at most 64 channels, with one operation per
// peer and direction under way, of 8 steps each.
const (
	maxSteps    = 16384
	maxProxyOps = 16384
	maxForeign  = 1024

	maxRank = description.MaxRanks // ranks from here on are invalid
)

// netPhase is the phase of the oldest step of a direction.
type netPhase uint8

const (
	netNone netPhase = iota
	netSendGPU
	netSendPeer
	netSend
	netRecv
	netRecvFlush
	netRecvGPU
	numNetPhases
)

// netPhases names the phases; state is the state of ProxyStep that begins the phase.
var netPhases = [numNetPhases]struct {
	name  string
	send  bool
	state string
}{
	netSendGPU:   {NameSendGPUWait, true, "ProxyStepSendGPUWait"},
	netSendPeer:  {NameSendPeerWait, true, "ProxyStepSendPeerWait"},
	netSend:      {NameSendNetwork, true, "ProxyStepSendWait"},
	netRecv:      {NameRecvNetwork, false, "ProxyStepRecvWait"},
	netRecvFlush: {NameRecvFlush, false, "ProxyStepRecvFlushWait"},
	netRecvGPU:   {NameRecvGPUWait, false, "ProxyStepRecvGPUWait"},
}

// phaseOfState maps states to the phases that they begin.
var phaseOfState = byState[netPhase](func(p int) string { return netPhases[p].state }, len(netPhases))

// byState inverts a table: it maps each state to the row that names it.
func byState[Row ~uint8](state func(row int) string, rows int) (of [stateCount]Row) {
	for row := range rows {
		for s := range of {
			if name := state(row); name != "" && shm.StateName(uint32(s)) == name {
				of[s] = Row(row)
			}
		}
	}
	return of
}

// netCount is a counter of the network.
type netCount int

const (
	netPuts        netCount = iota // transfers sent, drawn as RmaPut
	netPutBytes                    // their bytes
	netEmpty                       // transfers without bytes, which are not drawn
	netRecvBytes                   // bytes that arrived
	netIB                          // NetPlugin events of InfiniBand
	netIBBytes                     // sent in them
	netSocket                      // NetPlugin events of sockets
	netSocketBytes                 // in both directions
	netOther                       // NetPlugin events of other plugins
	numNetCounts
)

// Keys of Network.
const (
	NetPuts        = "PUTS"
	NetPutBytes    = "PUT_BYTES"
	NetEmpty       = "EMPTY_TRANSFERS"
	NetRecvBytes   = "RECEIVED_BYTES"
	NetIBEvents    = "IB_EVENTS"
	NetIBBytes     = "IB_SENT_BYTES"
	NetSocket      = "SOCKET_EVENTS"
	NetSocketBytes = "SOCKET_BYTES"
	NetOther       = "OTHER_NET_EVENTS"
)

var netCountNames = [numNetCounts]string{
	netPuts: NetPuts, netPutBytes: NetPutBytes, netEmpty: NetEmpty, netRecvBytes: NetRecvBytes, netIB: NetIBEvents,
	netIBBytes: NetIBBytes,
	netSocket:  NetSocket, netSocketBytes: NetSocketBytes, netOther: NetOther,
}

// Network returns the counters of the network: transfers and bytes, and the network plugins' own events, which are not
// drawn.
func (m *Model) Network() map[string]uint64 { return nonZero(m.net.counts[:], netCountNames[:]) }

// carriedBy records the proxy thread that works for a network, also on its rows. No thread is named if there are
// several.
func (n *netRank) carriedBy(th *thread) {
	switch {
	case th.tid == 0 || n.tid < 0:
		return
	case n.tid == 0:
		n.tid, n.thread = th.tid, th.name
	case n.tid != th.tid:
		n.tid, n.thread = -1, ""
	}
	for _, s := range []*netSide{&n.send, &n.recv} {
		if s.loc != nil && !s.loc.over && !s.loc.Shared() {
			s.loc.TID, s.loc.Thread = max(n.tid, 0), n.thread
		}
	}
}

// netOf finds or adds the network of the communicator rank of a ProxyOp or ProxyStep; nil if its context cannot be a
// communicator's.
func (net *network) netOf(r *shm.Record) *netRank {
	if c := net.ranks.rankOf(r.Aux); c != nil {
		return net.ownNet(c)
	}
	if n := net.foreign[r.Context]; n != nil {
		return n
	}
	tag := shm.Tag(r.Context)
	index := int(r.Context & shm.NumberMask)
	if r.Context&shm.ContextBit == 0 || tag == 0 || tag == net.process.Tag || index >= shm.CommMax ||
		r.Rank < 0 || r.Rank >= maxRank || len(net.foreignNets) >= maxForeign {
		return nil
	}
	n := newNetRank(fmt.Sprintf(PXNRow+"%04x.%d", tag, index), nil, len(net.process.Foreign))
	net.process.Foreign = append(net.process.Foreign,
		description.ForeignComm{Tag: tag, Index: index, Rank: int(r.Rank), PID: int(r.PID)})
	net.foreign[r.Context] = n
	net.foreignNets = append(net.foreignNets, n)
	return n
}

// ownNet returns the network of a communicator rank of this process.
func (net *network) ownNet(c *commRank) *netRank {
	if c.net == nil {
		c.net = newNetRank(c.label, c, -1)
	}
	return c.net
}

// eachNet calls f for every network that may still be drawn.
func (net *network) eachNet(f func(*netRank)) {
	for _, c := range net.ranks.live {
		if n := c.net; n != nil && !c.life.final {
			f(n)
		}
	}
	for _, n := range net.foreignNets {
		f(n)
	}
}

// openSide returns one direction with its row, which is made at its first event. The rows of this process's own ranks
// come in pairs, because the communicator's network consists of both.
func (net *network) openSide(n *netRank, send bool) *netSide {
	s := &n.recv
	if send {
		s = &n.send
	}
	switch {
	case s.loc != nil:
	case n.comm == nil:
		net.netLocation(n, s, send)
	case n.comm.life.announced:
		net.netLocation(n, &n.send, true)
		net.netLocation(n, &n.recv, false)
	}
	return s
}

func (net *network) netLocation(n *netRank, s *netSide, send bool) {
	if s.loc != nil || net.err != nil {
		return
	}
	kind, name := description.KindNetRecv, RecvRow
	if send {
		kind, name = description.KindNetSend, SendRow
	}
	if c := n.comm; c != nil {
		s.loc = net.rowOf(c, rowClass{kind: kind}, otf2.LocationTypeCPUThread, n.label+name)
		return
	}
	name = name[len(" net"):]
	loc, err := net.newLocation(kind, otf2.LocationTypeCPUThread, n.label+name, -1, n.foreign)
	if !net.keepError(err) {
		s.loc = loc
	}
}

// addStep appends a step to its direction.
func (s *netSide) addStep(p *proxyStep) {
	p.side, p.prev, p.next = s, s.tail, nil
	if s.tail != nil {
		s.tail.next = p
	} else {
		s.head = p
	}
	s.tail = p
	s.steps++
}

func (s *netSide) removeStep(p *proxyStep) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		s.head = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		s.tail = p.prev
	}
	p.side, p.prev, p.next = nil, nil, nil
	s.steps--
}

// followOldest makes the open region that of the oldest step's phase, from t on.
func (net *network) followOldest(s *netSide, t uint64) {
	if s == &s.rank.send {
		net.flushPolls(s.rank)
	}
	net.leavePhase(s, t, false)
	p := s.head
	if p == nil || s.loc == nil || net.opts.NoPhases {
		return
	}
	s.phase = openNetPhase{phase: p.phase, start: t, peer: -1}
	if p.op != nil {
		s.phase.channel, s.phase.peer, s.phase.parent, s.phase.op = p.op.channel, p.op.peer, p.op.parent, p.op
	}
}

// leavePhase ends the open phase.
func (net *network) leavePhase(s *netSide, t uint64, unfinished bool) {
	p := &s.phase
	if p.phase == netNone {
		return
	}
	if p.written || t > p.start {
		net.writePhaseBegin(s)
		if net.opts.NetSums {
			net.sumOf(p.op, s).addPhase(p.phase, s.raiseClock(t)-p.start, unfinished)
			p.phase = netNone
			return
		}
		a := net.emptyAttributes()
		if unfinished {
			a.Uint8(AttrUnfinished, 1)
		}
		net.keepError(s.loc.w.Leave(s.loc.raiseTime(t), a, net.phaseRegion(p.phase)))
	}
	p.phase = netNone
}

// writePhaseBegin writes the begin of the open phase, for events inside it.
func (net *network) writePhaseBegin(s *netSide) {
	p := &s.phase
	if p.phase == netNone || p.written {
		return
	}
	p.written = true
	if net.opts.NetSums {
		p.start = s.raiseClock(p.start)
		return
	}
	a := net.emptyAttributes()
	if p.peer >= 0 {
		a.Uint64(AttrParentID, p.parent)
		a.Uint32(AttrChannel, uint32(p.channel))
		a.Uint32(AttrPeer, uint32(p.peer))
	}
	net.keepError(s.loc.w.Enter(s.loc.raiseTime(p.start), a, net.phaseRegion(p.phase)))
}

func (net *network) phaseRegion(p netPhase) otf2.RegionRef {
	if net.phaseRegions[p] == 0 { // the reference plus 1
		net.phaseRegions[p] = net.defs.regionRef(netPhases[p].name, GroupNetwork, otf2.RegionRoleDataTransfer) + 1
	}
	return net.phaseRegions[p] - 1
}

// windowOf returns the local id of the window of a network's transfers to a peer.
func (net *network) windowOf(n *netRank, peer int32) otf2.RmaWinRef {
	if n.window < 0 {
		n.window = len(net.process.Wins)
		w := description.Win{Comm: -1, Foreign: n.foreign}
		if n.comm != nil {
			w.Comm = n.comm.index
		}
		net.process.Wins = append(net.process.Wins, w)
	}
	w := &net.process.Wins[n.window]
	w.Ranks = max(w.Ranks, int(peer)+1)
	return otf2.RmaWinRef(n.window)
}

// closeNet ends everything that a network has open: it is finalized, or the data ends.
func (net *network) closeNet(n *netRank, t uint64) {
	net.flushPolls(n)
	net.leavePhase(&n.send, t, true)
	net.leavePhase(&n.recv, t, true)
	for n.oldest != nil {
		net.endOp(n.oldest, t)
	}
	for _, s := range []*netSide{&n.send, &n.recv} {
		for s.head != nil {
			net.endStep(s.head, t, true)
		}
	}
	for h := range n.loose.Handles() { // those without a phase; the others have ended
		net.endStep(net.steps[h], t, true)
	}
	net.closeSums(n, t)
}
