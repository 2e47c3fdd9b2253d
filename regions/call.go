// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// Calls of the application (GroupApi, CollApi, P2pApi, KernelLaunch): what is drawn on its threads, and when a call
// ends. Who makes these events, on which thread and under which parent: docs/nccl-profiler-api.md §3.1, §3.2, §3.5;
// what NCCL leaves open: §3.4.

// thread is the present owner of a ring: one of the process's threads.
type thread struct {
	tid    int
	name   string     // the system's; "": not known
	loc    *location  // of application threads, at their first event
	group  *groupCall // open
	launch *launch    // last KernelLaunch, until its plan takes it
	ce     *ceCall    // open
	ctrl   ctrl       // open, of proxy threads

	application bool // it had a row when another model went; see resumeThread

	single []*call          // calls without a group, open
	phases []otf2.RegionRef // of the application, open
	deep   int              // further ones that are not drawn

	spans, written []span // memory of its groups' spans, and of those being written, that is used again
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
	spans       []span // what else happened inside: launches, copy-engine work, the application's phases
	phases      groupPhases
	resumed     bool // another model saw it begin: its region is missing

	// The first of each, and its place in the lists above: most groups have no more, and an operation that waits keeps
	// all of it.
	ownCall     call
	ownLaunch   launch
	firstCall   [1]*call
	firstLaunch [1]*launch
}

// noGroup is a group number above all, ungrouped one below all: that of calls without a group.
const (
	noGroup   = int64(1) << 62
	ungrouped = -noGroup
)

// call is a CollApi or P2pApi event. It outlives its stop: operations name it as their parent, those
// of a captured graph at each replay.
type call struct {
	handle, parent uint64
	thread         *thread // that began it; nil if another model saw that
	comm           *commRank
	group          *groupCall // nil if NCCL named none
	before         int64      // without: the number that it counts as, below all of this model's groups; see earlier
	p2p            bool
	name           string
	count          uint64
	datatype       string
	root           int32
	stream, tag    uint64
	graph          bool
	start, stop    uint64
	stopped        bool // its own stop has come, or nobody waits for it
	unfinished     bool // it has not come
	dropped        bool // no operation is of it any more
	listed         int  // its number in the list of its communicator rank's, see callList
}

// groupNumber is the number of the call's group.
func (c *call) groupNumber() int64 {
	if c.group == nil {
		return c.before
	}
	return c.group.number
}

// over reports whether the application has come back from the call, and from the group that it is part of.
func (c *call) over() bool {
	if c.group == nil {
		return c.stopped
	}
	return c.group.stopped
}

// launch is a KernelLaunch event.
type launch struct {
	cuda.Launch
	comm           *commRank
	parent, stream uint64
	graph          bool // of a capture: recorded, not launched
}

// threads are what the process's threads do: calls of NCCL, and the application's own phases.
type threads struct {
	*board
	ranks *ranks
	ops   *operations
	cuda  *cuda.Recorder

	byRing      []*thread
	groups      map[uint64]*groupCall // by handle, open
	groupNumber int64                 // of the last one
	launches    bounded.Map[*launch]  // open
	callNames   map[string]string     // of the regions of calls, by function

	heritage map[int]*heritage // what another model left, by communicator rank
	past     int64             // one more than the greatest number of its groups of calls
}

func newThreads(b *board, rs *ranks, ops *operations, c *cuda.Recorder) *threads {
	return &threads{board: b, ranks: rs, ops: ops, cuda: c, groups: make(map[uint64]*groupCall),
		launches: bounded.New[*launch](maxLaunches), callNames: make(map[string]string)}
}

// thread is the present owner of a ring.
func (ts *threads) thread(ring int) *thread {
	for len(ts.byRing) <= ring {
		ts.byRing = append(ts.byRing, &thread{})
	}
	return ts.byRing[ring]
}

// known makes a thread that has begun to record, whose name was this one then.
func (ts *threads) known(tid int, name string) *thread {
	th := &thread{tid: tid, name: name}
	if ts.opts.ThreadName != nil {
		th.name = cmp.Or(ts.opts.ThreadName(tid), name)
	}
	return th
}

// end closes what a thread has open.
func (ts *threads) end(th *thread, t uint64) {
	ts.closeCE(th, t, true)
	if th.group != nil {
		ts.closeGroupCall(th, t, true)
	}
	for len(th.single) > 0 {
		ts.endCall(th.single[0], th, t, true)
	}
	ts.endPhases(th, t)
	ts.release(th.loc)
	th.loc = nil
}

// forget drops what is kept of a communicator rank that is gone.
func (ts *threads) forget(c *commRank) {
	ts.launches.RemoveFunc(func(_ uint64, l *launch) bool { return l.comm == c })
}

func (ts *threads) startGroupAPI(th *thread, t uint64, r *shm.Record) {
	if th.group != nil { // NCCL left it open: an operation failed between start and stop
		ts.closeGroupCall(th, t, true)
	}
	th.launch = nil // of a captured plan, which has no Group
	ts.groupNumber++
	g := &groupCall{handle: r.Handle, thread: th, number: ts.groupNumber, start: t, depth: r.GroupDepth,
		graph: r.Flags&shm.FlagGraph != 0}
	g.calls, g.launches, g.spans, th.spans = g.firstCall[:0], g.firstLaunch[:0], th.spans, nil
	th.group = g
	ts.groups[r.Handle] = g
	ts.threadLocation(th)
}

func (ts *threads) stopGroupAPI(th *thread, t uint64, r *shm.Record) {
	g := ts.groups[r.Handle]
	if g == nil {
		ts.oddity(oddStrayStop)
		return
	}
	if g.thread.group == g {
		ts.closeGroupCall(g.thread, t, false)
	}
}

// place is memory for the group's next call, of any group or of none (nil).
func (g *groupCall) place() *call {
	if g != nil && len(g.calls) == 0 {
		return &g.ownCall
	}
	return new(call)
}

// launchPlace is memory for the group's next launch, of any group or of none (nil).
func (g *groupCall) launchPlace() *launch {
	if g != nil && len(g.launches) == 0 {
		return &g.ownLaunch
	}
	return new(launch)
}

func (ts *threads) startCall(th *thread, t uint64, r *shm.Record) {
	comm := ts.ranks.comm(r.Aux)
	if comm == nil {
		ts.oddity(oddForeign)
		ts.loseUndrawn(r.Type)
		return
	}
	if again := ts.ops.calls[r.Handle]; again != nil && !again.stopped {
		ts.endCall(again, th, t, true)
	}
	g := ts.groups[r.Arg]
	c := g.place()
	*c = call{
		handle: r.Handle, parent: r.Arg, thread: th, comm: comm, group: g, p2p: r.Type == shm.EventP2pApi,
		name: r.Func, count: r.Count, datatype: r.Datatype, root: r.Root, stream: r.Stream, tag: r.UserTag,
		graph: r.Flags&shm.FlagGraph != 0, start: t, stop: t, before: ungrouped,
	}
	ts.ops.calls[r.Handle] = c
	if !c.graph {
		comm.begun = max(comm.begun, t)
	}
	if g != nil {
		g.calls = append(g.calls, c)
	} else {
		if len(th.single) == maxSingle {
			ts.endCall(th.single[0], th, t, true)
		}
		th.single = append(th.single, c)
	}
	if c.graph {
		if gone, full := comm.captured.Put(c.handle, c); full {
			ts.ops.dropCall(gone)
			ts.oddity(oddForgottenCall)
		}
	} else {
		comm.calls.add(c)
	}
}

// maxSingle is how many calls without a group a thread has open at most: NCCL does not end all that it begins.
const maxSingle = 64

func (ts *threads) stopCall(th *thread, t uint64, r *shm.Record) {
	c := ts.ops.calls[r.Handle]
	// a second stop of the same call (docs/nccl-profiler-api.md §3.4, 3), or one after its group
	if c == nil || c.stopped {
		ts.oddity(oddStrayStop)
		return
	}
	ts.endCall(c, th, t, false)
}

// endCall ends a call. One of a group is drawn with that; any other now, on the row of the thread that began it, or of
// this one where another model saw that.
func (ts *threads) endCall(c *call, th *thread, t uint64, unfinished bool) {
	c.stop, c.stopped, c.unfinished = t, true, unfinished
	if c.dropped {
		ts.ops.dropCall(c)
	}
	if unfinished {
		ts.oddity(oddUnfinishedCall)
	}
	if c.group != nil {
		return
	}
	if c.thread != nil {
		th = c.thread
		i := slices.Index(th.single, c)
		th.single = slices.Delete(th.single, i, i+1)
	}
	s := ts.callSpan(c, c.start, c.stop, unfinished)
	if th.group != nil {
		th.group.spans = append(th.group.spans, s)
	} else if loc := ts.threadLocation(th); loc != nil {
		ts.writeAlone(th, loc, s)
	} else {
		ts.loseUndrawn(c.eventType())
	}
}

// loseOpen counts calls as lost that another model saw begin, and nobody end.
func (ts *threads) loseOpen() {
	for _, c := range ts.ops.calls {
		if c.group == nil && !c.stopped {
			ts.loseUndrawn(c.eventType())
		}
	}
}

// eventType is the type of the call's event.
func (c *call) eventType() shm.EventType {
	if c.p2p {
		return shm.EventP2pApi
	}
	return shm.EventCollApi
}

func (ts *threads) startLaunch(th *thread, t uint64, r *shm.Record) {
	comm := ts.ranks.comm(r.Aux)
	if comm == nil {
		ts.oddity(oddForeign)
		return
	}
	g := ts.groups[r.Arg]
	th.launch = g.launchPlace()
	*th.launch = launch{
		Launch: cuda.Launch{Handle: r.Handle, Rank: &comm.kernels, Thread: uint32(th.tid), Start: t, Stop: t},
		comm:   comm, parent: r.Arg, stream: r.Stream, graph: g != nil && g.graph,
	}
	ts.cuda.Keep(&th.launch.Launch)
	if g != nil {
		g.launches = append(g.launches, th.launch)
	}
	if _, full := ts.launches.Put(r.Handle, th.launch); full {
		ts.oddity(oddForgottenEvent)
	}
}

func (ts *threads) stopLaunch(th *thread, t uint64, r *shm.Record) {
	l := ts.launches.Get(r.Handle)
	if l == nil {
		ts.oddity(oddStrayStop)
		return
	}
	ts.launches.Remove(r.Handle)
	l.Stop, l.Stopped = t, true
	region := ts.defs.region(NameKernelLaunch, GroupEnqueue, otf2.RegionRoleFunction)
	th.written = append(th.written[:0], span{start: l.Start, stop: l.Stop, region: region, by: l})
	ts.onThread(th, l.comm, th.written)
	th.written = reusable(th.written)
}

// onThread draws what a thread did for a communicator rank: with the call it belongs to if one is open, else
// on the thread's own row, or on that of NCCL's threads if it is one of those.
func (ts *threads) onThread(th *thread, c *commRank, spans []span) {
	if th.group != nil {
		th.group.spans = append(th.group.spans, spans...)
		return
	}
	loc := th.loc
	if loc == nil && c.final { // the row has ended
		ts.oddity(oddAfterFinalize)
		return
	}
	if loc == nil {
		loc = ts.enqueueLocation(c)
	}
	if loc != nil {
		ts.writeNested(loc, spans)
	}
}

// writeAlone draws one region of a thread.
func (ts *threads) writeAlone(th *thread, loc *location, s span) {
	th.written = append(th.written[:0], s)
	ts.writeNested(loc, th.written)
	th.written = reusable(th.written)
}

// closeGroupCall writes a group call, whole: what lies inside is known now, and strictly nested
// because one thread made it.
func (ts *threads) closeGroupCall(th *thread, t uint64, unfinished bool) {
	ts.closeCE(th, t, true)
	g := th.group
	th.group = nil
	g.stop, g.stopped = t, true
	delete(ts.groups, g.handle)
	if unfinished {
		ts.oddity(oddUnfinishedCall)
	}
	for _, c := range g.calls {
		if !c.stopped {
			ts.endCall(c, th, t, !g.plain())
		}
	}
	loc := ts.threadLocation(th)
	if loc == nil {
		ts.loseSpans(g.spans)
		for _, c := range g.calls {
			ts.loseUndrawn(c.eventType())
		}
		return
	}
	spans := th.written[:0]
	if g.plain() {
		spans = append(spans, ts.callSpan(g.calls[0], g.start, g.stop, unfinished))
	} else {
		if !g.resumed {
			spans = append(spans, ts.groupSpan(g, unfinished))
		}
		for _, c := range g.calls {
			spans = append(spans, ts.callSpan(c, c.start, c.stop, c.unfinished))
		}
	}
	spans = append(spans, g.spans...)
	ts.writeNested(loc, spans)
	th.written, th.spans, g.spans = reusable(spans), reusable(g.spans), nil
	ts.movePhases(th, g)
}

// groupName is what calls that consist of several are named by, where it is not known what the application called.
const groupName = "Group"

// groupSpan is the region of a call that consists of several, or of none.
func (ts *threads) groupSpan(g *groupCall, unfinished bool) span {
	name, role := groupName, otf2.RegionRoleFunction
	if composite, ok := g.compositeName(); ok {
		name, role = composite, CollectiveNamed(composite).Role
	}
	return span{start: g.start, stop: g.stop, region: ts.callRegion(name, role), by: g, unfinished: unfinished}
}

func (g *groupCall) describe(b *board, a *otf2.AttributeList, unfinished bool) {
	if g.graph {
		a.Uint8(AttrGraph, 1)
	}
	a.Uint64(AttrEventID, g.handle)
	if unfinished {
		a.Uint8(AttrUnfinished, 1)
	}
	if _, composite := g.compositeName(); composite { // all its sends and receives are one rank's
		b.rankAttributes(a, g.calls[0].comm)
	}
}

// plain reports whether the group is one plain call.
func (g *groupCall) plain() bool { return g.depth == 1 && len(g.calls) == 1 }

// callRegion is the region of the calls of a function.
func (ts *threads) callRegion(function string, role otf2.RegionRole) otf2.RegionRef {
	name, ok := ts.callNames[function]
	if !ok {
		name = NameCall + function
		ts.callNames[function] = name
	}
	return ts.defs.region(name, GroupAPI, role)
}

// compositeName recognizes the API functions that NCCL carries out as a series of sends and
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

// callSpan is the region of one call.
func (ts *threads) callSpan(c *call, start, stop uint64, unfinished bool) span {
	return span{start: start, stop: stop, region: ts.callRegion(c.name, roleOf(c.name, c.p2p)), by: c,
		unfinished: unfinished}
}

func (c *call) describe(b *board, a *otf2.AttributeList, unfinished bool) {
	a.Uint64(AttrCount, c.count)
	a.String(AttrDatatype, b.defs.string(c.datatype))
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
	b.rankAttributes(a, c.comm)
	if f := CollectiveNamed(c.name); f != nil && f.Rooted() && c.root >= 0 {
		a.Uint32(AttrRoot, uint32(c.root))
	}
}

// rankAttributes tell on which communicator, for which rank of it and on which device a call is: one thread can call
// for several. What NCCL did not tell is missing, and so is a communicator of one rank.
func (b *board) rankAttributes(a *otf2.AttributeList, c *commRank) {
	if !c.announced {
		return
	}
	if device := b.process.GPUs[c.GPU].Device; device >= 0 {
		a.Uint32(AttrDevice, uint32(device))
	}
	if c.NRanks >= 2 {
		a.Comm(AttrComm, otf2.CommRef(c.index))
	}
	if c.NRanks > 0 && c.Rank >= 0 {
		a.Uint32(AttrRank, uint32(c.Rank))
	}
}

func (l *launch) describe(_ *board, a *otf2.AttributeList, _ bool) {
	a.Uint64(AttrStream, l.stream)
	if l.graph {
		a.Uint8(AttrGraph, 1)
	}
	a.Uint64(AttrEventID, l.Handle)
	if l.parent != 0 {
		a.Uint64(AttrParentID, l.parent)
	}
}

// takeCall gives an operation the call that asked for it, which is then no operation of its own.
func (ops *operations) takeCall(handle uint64) *call {
	call := ops.calls[handle]
	if call != nil && call.dropped {
		return nil
	}
	if call != nil && !call.graph {
		call.comm.calls.remove(call)
		ops.dropCall(call)
	}
	return call
}

// dropCall forgets a call that no operation is of any more, once it has been stopped.
func (ops *operations) dropCall(c *call) {
	c.dropped = true
	if c.stopped && ops.calls[c.handle] == c {
		delete(ops.calls, c.handle)
	}
}
