// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// ProxyCtrl: the activity of a proxy thread besides transfers (docs/nccl-profiler-api.md §2.3).

// ctrlKind is the kind of a ProxyCtrl event, by its first state.
type ctrlKind uint8

const (
	ctrlNone ctrlKind = iota
	ctrlIdle
	ctrlActive
	ctrlSleep
	ctrlAppend
)

// ctrlKinds names the regions. An instant has no duration in NCCL, and comes at each turn of the proxy's loop.
var ctrlKinds = [...]struct {
	region, state string
	instant       bool
}{
	ctrlIdle:   {NameProxyIdle, "ProxyCtrlIdle", true},
	ctrlActive: {nameProxyActive, "ProxyCtrlActive", true},
	ctrlSleep:  {NameProxySleep, "ProxyCtrlSleep", false},
	ctrlAppend: {NameProxyAppend, "ProxyCtrlAppend", false},
}

// ctrlOfState maps states to kinds.
var ctrlOfState = byState[ctrlKind](func(k int) string { return ctrlKinds[k].state }, len(ctrlKinds))

const stateAppendEnd = 18 // ProxyCtrlAppendEnd: its argument is the number of operations taken

// ctrl is the open ProxyCtrl event of a thread; they never overlap.
type ctrl struct {
	handle   uint64
	rank     *netRank
	kind     ctrlKind
	start    uint64
	appended uint64
}

// polls is a run of consecutive instants of one kind: one region, with their number. If no phase of a transfer is open
// the region spans them; inside a phase, which it would hide, it has no duration.
type polls struct {
	kind        ctrlKind
	times       uint64
	first, last uint64
	inside      bool // a phase
}

// pollsLimit is the longest time (ns) of a run.
const pollsLimit = 1_000_000_000

func (net *network) startCtrl(th *thread, t uint64, r *shm.Record) {
	c := net.ranks.rankOf(r.Aux)
	if c == nil {
		net.countOddity(oddForeign)
		return
	}
	net.endCtrl(th, t, true)
	th.ctrl = ctrl{handle: r.Handle, rank: net.ownNet(c), start: t}
	th.ctrl.rank.carriedBy(th)
}

func (net *network) stateCtrl(th *thread, _ uint64, r *shm.Record) {
	k := &th.ctrl
	if k.rank == nil || k.handle != r.Handle {
		net.countOddity(oddStrayState)
		return
	}
	if k.kind == ctrlNone && r.Aux < stateCount {
		k.kind = ctrlOfState[r.Aux]
	}
	if r.Aux == stateAppendEnd && r.Flags&shm.FlagHasArg != 0 {
		k.appended = r.Arg
	}
}

func (net *network) stopCtrl(th *thread, t uint64, r *shm.Record) {
	if th.ctrl.rank == nil || th.ctrl.handle != r.Handle {
		net.countOddity(oddStrayStop)
		return
	}
	net.endCtrl(th, t, false)
}

// endCtrl draws the thread's ProxyCtrl, if it has one. If a phase of a transfer has changed meanwhile, that was another
// thread, and the region begins after the change.
func (net *network) endCtrl(th *thread, t uint64, unfinished bool) {
	k := th.ctrl
	th.ctrl = ctrl{}
	if k.rank == nil || k.kind == ctrlNone || k.rank.comm.life.final {
		return
	}
	n := k.rank
	side := net.openSide(n, true)
	if side.loc == nil {
		return
	}
	if ctrlKinds[k.kind].instant {
		inside := side.phase.phase != netNone
		if p := &n.polls; p.times > 0 && p.kind == k.kind && p.inside == inside {
			p.times++
			p.last = t
			return
		}
		net.flushPolls(n)
		n.polls = polls{k.kind, 1, k.start, t, inside}
		return
	}
	net.flushPolls(n)
	net.writePhaseBegin(side)
	a := net.emptyAttributes()
	if k.appended > 0 {
		a.Uint64(AttrTimes, k.appended)
	}
	if unfinished {
		a.Uint8(AttrUnfinished, 1)
	}
	net.drawCtrl(side.loc, k.kind, k.start, t)
}

// flushPolls draws the run of instants of a network, before anything else is drawn.
func (net *network) flushPolls(n *netRank) {
	p := n.polls
	if p.times == 0 {
		return
	}
	n.polls = polls{}
	net.changes++
	net.writePhaseBegin(&n.send)
	if p.inside {
		p.last = p.first
	}
	a := net.emptyAttributes()
	a.Uint64(AttrTimes, p.times)
	net.drawCtrl(n.send.loc, p.kind, p.first, p.last)
}

// drawCtrl writes a region with the attributes that are set.
func (net *network) drawCtrl(loc *location, kind ctrlKind, start, stop uint64) {
	region := net.defs.regionRef(ctrlKinds[kind].region, GroupProxy, otf2.RegionRoleFunction)
	net.writeRegion(loc, start, stop, net.attributes, region)
}
