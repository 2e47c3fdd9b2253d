// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"ncclotf2/otf2"
	"ncclotf2/plugin/shm"
)

// thread is the present owner of a ring: one of the process's threads.
type thread struct {
	tid    int
	loc    *location  // of application threads, at their first event
	group  *groupCall // open
	launch *launch    // last KernelLaunch, until its plan takes it
}

// groupCall is a GroupApi event: one call of the application, or all calls of one outermost
// ncclGroupStart … ncclGroupEnd, of one thread and any number of communicators.
type groupCall struct {
	handle      uint64
	thread      *thread
	number      int64 // 1, 2, … in this process
	start, stop uint64
	stopped     bool
	depth       int32 // 1: a plain call, 2: inside a user's group, …
	graph       bool
	calls       []*call
	launches    []*launch
}

// noGroup is a group number above all.
const noGroup = int64(1) << 62

// call is a CollApi or P2pApi event. It outlives its stop: operations name it as their parent, those
// of a captured graph at each replay.
type call struct {
	handle, parent uint64
	comm           *commRank
	group          *groupCall // nil if NCCL named none
	p2p            bool
	name           string
	count          uint64
	datatype       string
	root           int32
	stream, tag    uint64
	graph          bool
	start, stop    uint64
}

// groupNumber is the number of the call's group; calls without one count as their own time.
func (c *call) groupNumber() int64 {
	if c.group == nil {
		return 0
	}
	return c.group.number
}

func (c *call) over() bool { return c.group == nil || c.group.stopped }

// launch is a KernelLaunch event.
type launch struct {
	handle, parent uint64
	comm           *commRank
	stream         uint64
	start, stop    uint64
}

func (m *Model) startGroupAPI(th *thread, t uint64, r *shm.Record) {
	if th.group != nil { // NCCL left it open: an operation failed between start and stop
		m.closeGroupCall(th, t, true)
	}
	m.groupNumber++
	g := &groupCall{handle: r.Handle, thread: th, number: m.groupNumber, start: t, depth: r.GroupDepth, graph: r.Flags&shm.FlagGraph != 0}
	th.group = g
	m.groups[r.Handle] = g
	m.threadLocation(th)
}

func (m *Model) stopGroupAPI(th *thread, t uint64, r *shm.Record) {
	g := m.groups[r.Handle]
	if g == nil {
		m.oddity(OddStrayStop)
		return
	}
	if g.thread.group == g {
		m.closeGroupCall(g.thread, t, false)
	}
}

func (m *Model) startCall(th *thread, t uint64, r *shm.Record) {
	comm := m.comm(r.Aux)
	if comm == nil {
		m.oddity(OddForeign)
		return
	}
	c := &call{
		handle: r.Handle, parent: r.Arg, comm: comm, group: m.groups[r.Arg], p2p: r.Type == shm.EventP2pApi,
		name: r.Func, count: r.Count, datatype: r.Datatype, root: r.Root, stream: r.Stream, tag: r.UserTag,
		graph: r.Flags&shm.FlagGraph != 0, start: t, stop: t,
	}
	m.calls[r.Handle] = c
	if c.group != nil {
		c.group.calls = append(c.group.calls, c)
	}
	if !c.graph {
		comm.calls = append(comm.calls, c)
	}
}

func (m *Model) stopCall(th *thread, t uint64, r *shm.Record) {
	c := m.calls[r.Handle]
	if c == nil {
		m.oddity(OddStrayStop)
		return
	}
	if c.group == nil || c.group.stopped {
		if c.stop != c.start {
			m.oddity(OddStrayStop) // a second stop of the same call
			return
		}
		c.stop = t
		m.writeCall(m.threadLocation(th), c, "nccl"+c.name, c.start, c.stop, nil, false)
		return
	}
	c.stop = t
}

func (m *Model) startLaunch(th *thread, t uint64, r *shm.Record) {
	comm := m.comm(r.Aux)
	if comm == nil {
		m.oddity(OddForeign)
		return
	}
	th.launch = &launch{handle: r.Handle, parent: r.Arg, comm: comm, stream: r.Stream, start: t, stop: t}
	m.launches[r.Handle] = th.launch
}

func (m *Model) stopLaunch(th *thread, t uint64, r *shm.Record) {
	l := m.launches[r.Handle]
	if l == nil {
		m.oddity(OddStrayStop)
		return
	}
	delete(m.launches, r.Handle)
	l.stop = t
	switch {
	case th.group != nil:
		th.group.launches = append(th.group.launches, l)
	case th.loc != nil:
		m.writeLaunch(th.loc, l)
	default: // one of NCCL's own threads
		m.writeLaunch(m.enqueueLocation(l.comm), l)
	}
}

// closeGroupCall writes a group call, whole: what lies inside is known now, and strictly nested
// because one thread made it.
func (m *Model) closeGroupCall(th *thread, t uint64, unfinished bool) {
	g := th.group
	th.group = nil
	g.stop, g.stopped = t, true
	delete(m.groups, g.handle)
	if unfinished {
		m.oddity(OddUnfinishedCall)
	}
	loc := m.threadLocation(th)
	if loc == nil {
		return
	}
	if name, plain := g.plainName(); plain {
		m.writeCall(loc, g.calls[0], name, g.start, g.stop, g.launches, unfinished)
		return
	}

	name, composite := g.compositeName()
	role, group := otf2.RegionRoleFunction, GroupAPI
	if composite {
		role = functions[name].role
		name = "nccl" + name
	} else {
		name = "ncclGroup"
	}
	a := m.attributes
	a.Reset()
	if g.graph {
		a.Uint8(AttrGraph, 1)
	}
	a.Uint64(AttrEventID, g.handle)
	if unfinished {
		a.Uint8(AttrUnfinished, 1)
	}
	region := m.defs.region(name, group, role)
	m.fail(loc.w.Enter(loc.at(g.start), a, region))
	inner := make([]func(), 0, len(g.calls)+len(g.launches))
	starts := make([]uint64, 0, cap(inner))
	for _, c := range g.calls {
		starts = append(starts, c.start)
		inner = append(inner, func() { m.writeCall(loc, c, "nccl"+c.name, c.start, c.stop, nil, false) })
	}
	for _, l := range g.launches {
		starts = append(starts, l.start)
		inner = append(inner, func() { m.writeLaunch(loc, l) })
	}
	order := make([]int, len(inner))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(starts[i], starts[j]) })
	for _, i := range order {
		inner[i]()
	}
	m.fail(loc.w.Leave(loc.at(g.stop), nil, region))
}

// plainName tells whether the group is one plain call, and that call's name.
func (g *groupCall) plainName() (string, bool) {
	if g.depth != 1 || len(g.calls) != 1 {
		return "", false
	}
	return "nccl" + g.calls[0].name, true
}

// compositeName recognises the API functions that NCCL carries out as a series of sends and
// receives inside one plain call (AlltoAll, Gather, Scatter since 2.28; no event names them).
func (g *groupCall) compositeName() (string, bool) {
	if g.depth != 1 || len(g.calls) < 2 {
		return "", false
	}
	sends, receives := 0, 0
	for _, c := range g.calls {
		switch {
		case !c.p2p || c.comm != g.calls[0].comm:
			return "", false
		case c.name == "Send":
			sends++
		default:
			receives++
		}
	}
	n := g.calls[0].comm.NRanks
	switch {
	case sends == n && receives == n && n > 1:
		return "AlltoAll", true
	case sends == 1 && receives == n:
		return "Gather", true
	case sends == n && receives == 1:
		return "Scatter", true
	}
	return "", false
}

// writeCall writes one call as a region, with the launches that happened inside it.
func (m *Model) writeCall(loc *location, c *call, name string, start, stop uint64, launches []*launch, unfinished bool) {
	if loc == nil {
		return
	}
	role := otf2.RegionRolePoint2Point
	if f := functions[c.name]; f != nil {
		role = f.role
	} else if !c.p2p {
		role = otf2.RegionRoleCollOther
	}
	region := m.defs.region(name, GroupAPI, role)
	a := m.attributes
	a.Reset()
	a.Uint64(AttrCount, c.count)
	a.String(AttrDatatype, m.defs.string(c.datatype))
	a.Uint64(AttrStream, c.stream)
	if c.graph {
		a.Uint8(AttrGraph, 1)
	}
	if c.tag != 0 {
		a.Uint64(AttrUserTag, c.tag)
	}
	a.Uint64(AttrEventID, c.handle)
	if c.parent != 0 {
		a.Uint64(AttrParentID, c.parent)
	}
	if unfinished {
		a.Uint8(AttrUnfinished, 1)
	}
	m.fail(loc.w.Enter(loc.at(start), a, region))
	for _, l := range launches {
		m.writeLaunch(loc, l)
	}
	m.fail(loc.w.Leave(loc.at(stop), nil, region))
}

func (m *Model) writeLaunch(loc *location, l *launch) {
	if loc == nil {
		return
	}
	region := m.defs.region("ncclKernelLaunch", GroupEnqueue, otf2.RegionRoleFunction)
	a := m.attributes
	a.Reset()
	a.Uint64(AttrStream, l.stream)
	a.Uint64(AttrEventID, l.handle)
	if l.parent != 0 {
		a.Uint64(AttrParentID, l.parent)
	}
	m.fail(loc.w.Enter(loc.at(l.start), a, region))
	m.fail(loc.w.Leave(loc.at(l.stop), nil, region))
}
