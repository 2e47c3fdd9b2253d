// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// Calls of the application (GroupApi, CollApi, P2pApi, KernelLaunch): their regions on its threads, and when a call
// ends. docs/nccl-profiler-api.md says which thread makes these events under which parent (§3.1, §3.2, §3.5) and which
// of them NCCL does not end (§3.4).

// thread is the current owner of a ring: one of the process's threads.
type thread struct {
	tid    int
	name   string     // the system's; "": not known
	loc    *location  // of application threads, at their first event
	group  *groupCall // open
	launch *launch    // last KernelLaunch, until its plan refers to it
	ce     *ceCall    // open
	ctrl   ctrl       // open, of proxy threads

	application bool // it had a row in an earlier model; see resumeThread

	single []*call          // calls without a group, open
	phases []otf2.RegionRef // open phases of the application
	deep   int              // open phases that are not drawn

	spans, written []span // reused memory of its groups' spans, and of those being written
}

// groupCall is a GroupApi event: one call of the application, or all calls between an outermost ncclGroupStart and its
// ncclGroupEnd, by one thread on any number of communicators.
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
	spans       []span // launches, copy-engine work and the application's phases inside
	phases      groupPhases
	resumed     bool // it began in an earlier model: its region is missing

	memory groupMemory
}

// groupMemory is the memory for the first call and the first launch of a group, and for the lists of them: most groups
// have no more, and an operation that waits keeps all of it.
type groupMemory struct {
	call        call
	launch      launch
	firstCall   [1]*call
	firstLaunch [1]*launch
}

// noGroup is greater than every group number, ungrouped is smaller: the number of calls without a group.
const (
	noGroup   = int64(1) << 62
	ungrouped = -noGroup
)

// call is a CollApi or P2pApi event. It outlives its stop: operations refer to it as their parent, those of a captured
// graph at each replay.
type call struct {
	handle, parent uint64
	thread         *thread // that began it; nil if it began in an earlier model
	comm           *commRank
	group          *groupCall // nil if NCCL named none
	before         int64      // without a group: its number, below all of this model's groups
	p2p            bool
	arguments
	graph       bool
	start, stop uint64
	stopped     bool // its stop has come, or is not awaited any more
	unfinished  bool // its stop never came
	dropped     bool // no operation refers to it any more
	listed      int  // its number in the list of its communicator rank's, see callList
}

// groupNumber returns the number of the call's group.
func (c *call) groupNumber() int64 {
	if c.group == nil {
		return c.before
	}
	return c.group.number
}

// hasReturned reports whether the application has returned from the call and from its group.
func (c *call) hasReturned() bool {
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
	graph          bool // captured into a graph, not launched
}

// threads tracks the process's threads: calls of NCCL, and the application's phases.
type threads struct {
	*board
	ranks *ranks
	ops   *operations
	cuda  *cuda.Recorder

	byRing      []*thread
	groups      map[uint64]*groupCall // by handle, open
	groupNumber int64                 // of the last group
	launches    bounded.Map[*launch]  // open
	callNames   map[string]string     // region names of calls, by function

	heritage map[int]*heritage // state of an earlier model, by communicator rank
	past     int64             // its greatest group number plus one
}

func newThreads(b *board, rs *ranks, ops *operations, c *cuda.Recorder) *threads {
	return &threads{board: b, ranks: rs, ops: ops, cuda: c, groups: make(map[uint64]*groupCall),
		launches: bounded.New[*launch](maxLaunches), callNames: make(map[string]string)}
}

// threadOfRing returns the current owner of a ring.
func (ts *threads) threadOfRing(ring int) *thread {
	for len(ts.byRing) <= ring {
		ts.byRing = append(ts.byRing, &thread{})
	}
	return ts.byRing[ring]
}

// openThread makes a thread that has begun to record, with its name at that time.
func (ts *threads) openThread(tid int, name string) *thread {
	th := &thread{tid: tid, name: name}
	if ts.opts.Source != nil {
		th.name = cmp.Or(ts.opts.Source.ThreadName(tid), name)
	}
	return th
}

// endThread ends everything that a thread has open.
func (ts *threads) endThread(th *thread, t uint64) {
	ts.closeCE(th, t, true)
	if th.group != nil {
		ts.closeGroupCall(th, t, true)
	}
	for len(th.single) > 0 {
		ts.endCall(th.single[0], th, t, true)
	}
	ts.endPhases(th, t)
	ts.releaseRow(th.loc)
	th.loc = nil
}

// dropLaunches drops the state of a communicator rank that is gone.
func (ts *threads) dropLaunches(c *commRank) {
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
	g.calls, g.launches, g.spans, th.spans = g.memory.firstCall[:0], g.memory.firstLaunch[:0], th.spans, nil
	th.group = g
	ts.groups[r.Handle] = g
	ts.threadLocation(th)
}

func (ts *threads) stopGroupAPI(th *thread, t uint64, r *shm.Record) {
	g := ts.groups[r.Handle]
	if g == nil {
		ts.countOddity(oddStrayStop)
		return
	}
	if g.thread.group == g {
		ts.closeGroupCall(g.thread, t, false)
	}
}

// newCall returns memory for the next call of the group; of a new one if the group is nil.
func (g *groupCall) newCall() *call {
	if g != nil && len(g.calls) == 0 {
		return &g.memory.call
	}
	return new(call)
}

// newLaunch returns memory for the next launch of the group; new memory if the group is nil.
func (g *groupCall) newLaunch() *launch {
	if g != nil && len(g.launches) == 0 {
		return &g.memory.launch
	}
	return new(launch)
}

func (ts *threads) startCall(th *thread, t uint64, r *shm.Record) {
	comm := ts.ranks.rankOf(r.Aux)
	if comm == nil {
		ts.countOddity(oddForeign)
		ts.loseUndrawn(r.Type)
		return
	}
	if again := ts.ops.calls[r.Handle]; again != nil && !again.stopped {
		ts.endCall(again, th, t, true)
	}
	g := ts.groups[r.Arg]
	c := g.newCall()
	*c = call{
		handle: r.Handle, parent: r.Arg, thread: th, comm: comm, group: g, before: ungrouped,
		p2p: r.Type == shm.EventP2pApi, arguments: argumentsOf(r), graph: r.Flags&shm.FlagGraph != 0, start: t, stop: t,
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
			ts.countOddity(oddForgottenCall)
		}
	} else {
		comm.calls.addCall(c)
	}
}

// maxSingle bounds the open calls without a group of a thread: NCCL does not end every call.
const maxSingle = 64

func (ts *threads) stopCall(th *thread, t uint64, r *shm.Record) {
	c := ts.ops.calls[r.Handle]
	// a second stop of the same call (docs/nccl-profiler-api.md §3.4, 3), or one after its group
	if c == nil || c.stopped {
		ts.countOddity(oddStrayStop)
		return
	}
	ts.endCall(c, th, t, false)
}

// endCall ends a call. A call of a group is drawn with the group; another one now, on the row of the thread that began
// it, or of th if it began in an earlier model.
func (ts *threads) endCall(c *call, th *thread, t uint64, unfinished bool) {
	c.stop, c.stopped, c.unfinished = t, true, unfinished
	if c.dropped {
		ts.ops.dropCall(c)
	}
	if unfinished {
		ts.countOddity(oddUnfinishedCall)
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

// loseOpen counts calls as lost that began in an earlier model and never ended.
func (ts *threads) loseOpen() {
	for _, c := range ts.ops.calls {
		if c.group == nil && !c.stopped {
			ts.loseUndrawn(c.eventType())
		}
	}
}

// eventType returns the type of the call's event.
func (c *call) eventType() shm.EventType {
	if c.p2p {
		return shm.EventP2pApi
	}
	return shm.EventCollApi
}

func (ts *threads) startLaunch(th *thread, t uint64, r *shm.Record) {
	comm := ts.ranks.rankOf(r.Aux)
	if comm == nil {
		ts.countOddity(oddForeign)
		return
	}
	g := ts.groups[r.Arg]
	th.launch = g.newLaunch()
	*th.launch = launch{
		Launch: cuda.Launch{Handle: r.Handle, Rank: &comm.gpu.kernels, Thread: uint32(th.tid), Start: t, Stop: t},
		comm:   comm, parent: r.Arg, stream: r.Stream, graph: g != nil && g.graph,
	}
	ts.cuda.KeepLaunch(&th.launch.Launch)
	if g != nil {
		g.launches = append(g.launches, th.launch)
	}
	if _, full := ts.launches.Put(r.Handle, th.launch); full {
		ts.countOddity(oddForgottenEvent)
	}
}

func (ts *threads) stopLaunch(th *thread, t uint64, r *shm.Record) {
	l := ts.launches.Get(r.Handle)
	if l == nil {
		ts.countOddity(oddStrayStop)
		return
	}
	ts.launches.Remove(r.Handle)
	l.Stop, l.Stopped = t, true
	region := ts.defs.regionRef(NameKernelLaunch, GroupEnqueue, otf2.RegionRoleFunction)
	th.written = append(th.written[:0], span{start: l.Start, stop: l.Stop, region: region, by: l})
	ts.onThread(th, l.comm, th.written)
	th.written = clearSpans(th.written)
}

// onThread draws what a thread did for a communicator rank: inside the open call that it belongs to; else on the
// thread's own row, or on the enqueue row for a thread of NCCL's.
func (ts *threads) onThread(th *thread, c *commRank, spans []span) {
	if th.group != nil {
		th.group.spans = append(th.group.spans, spans...)
		return
	}
	loc := th.loc
	if loc == nil && c.life.final { // the row has ended
		ts.countOddity(oddAfterFinalize)
		return
	}
	if loc == nil {
		loc = ts.enqueueLocation(c)
	}
	if loc != nil {
		ts.writeNested(loc, spans)
	}
}

// writeAlone draws a single region of a thread.
func (ts *threads) writeAlone(th *thread, loc *location, s span) {
	th.written = append(th.written[:0], s)
	ts.writeNested(loc, th.written)
	th.written = clearSpans(th.written)
}

// closeGroupCall writes a group call when everything inside is known. It nests strictly, because one thread made it.
func (ts *threads) closeGroupCall(th *thread, t uint64, unfinished bool) {
	ts.closeCE(th, t, true)
	g := th.group
	th.group = nil
	g.stop, g.stopped = t, true
	delete(ts.groups, g.handle)
	if unfinished {
		ts.countOddity(oddUnfinishedCall)
	}
	for _, c := range g.calls {
		if !c.stopped {
			ts.endCall(c, th, t, !g.isPlainCall())
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
	if g.isPlainCall() {
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
	th.written, th.spans, g.spans = clearSpans(spans), clearSpans(g.spans), nil
	ts.movePhases(th, g)
}

// groupName names calls of several operations if the application's function is not known.
const groupName = "Group"

// groupSpan returns the region of a call with several operations, or with none.
func (ts *threads) groupSpan(g *groupCall, unfinished bool) span {
	name, role := groupName, otf2.RegionRoleFunction
	if composite, ok := g.compositeName(); ok {
		name, role = composite, CollectiveNamed(composite).Role
	}
	return span{start: g.start, stop: g.stop, region: ts.callRegion(name, role), by: g, unfinished: unfinished}
}

func (g *groupCall) addAttributes(b *board, a *otf2.AttributeList, unfinished bool) {
	if g.graph {
		a.Uint8(AttrGraph, 1)
	}
	a.Uint64(AttrEventID, g.handle)
	if unfinished {
		a.Uint8(AttrUnfinished, 1)
	}
	if _, composite := g.compositeName(); composite { // all its sends and receives are of one rank
		b.rankAttributes(a, g.calls[0].comm)
	}
}

// isPlainCall reports whether the group is one plain call.
func (g *groupCall) isPlainCall() bool { return g.depth == 1 && len(g.calls) == 1 }

// callRegion returns the region of calls of a function.
func (ts *threads) callRegion(function string, role otf2.RegionRole) otf2.RegionRef {
	name := keyed.EntryMade(ts.callNames, function, func() string { return NameCall + function })
	return ts.defs.regionRef(name, GroupAPI, role)
}

// compositeName returns the API function that NCCL carries out as sends and receives inside one plain call (AlltoAll,
// Gather, Scatter since 2.28; no event names them).
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

// callSpan returns the region of one call.
func (ts *threads) callSpan(c *call, start, stop uint64, unfinished bool) span {
	return span{start: start, stop: stop, region: ts.callRegion(c.name, roleOf(c.name, c.p2p)), by: c,
		unfinished: unfinished}
}

func (c *call) addAttributes(b *board, a *otf2.AttributeList, unfinished bool) {
	a.Uint64(AttrCount, c.count)
	a.String(AttrDatatype, b.defs.stringRef(c.datatype))
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

// rankAttributes add the communicator, rank and device of a call, because one thread can call for several. What NCCL
// did not report is missing, and so is a communicator of one rank.
func (b *board) rankAttributes(a *otf2.AttributeList, c *commRank) {
	if !c.life.announced {
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

func (l *launch) addAttributes(_ *board, a *otf2.AttributeList, _ bool) {
	a.Uint64(AttrStream, l.stream)
	if l.graph {
		a.Uint8(AttrGraph, 1)
	}
	a.Uint64(AttrEventID, l.Handle)
	if l.parent != 0 {
		a.Uint64(AttrParentID, l.parent)
	}
}

// takeCall removes the call that asked for an operation from the calls without operations, and returns it.
func (ops *operations) takeCall(handle uint64) *call {
	call := ops.calls[handle]
	if call != nil && call.dropped {
		return nil
	}
	if call != nil && !call.graph {
		call.comm.calls.removeCall(call)
		ops.dropCall(call)
	}
	return call
}

// dropCall forgets a stopped call that no operation refers to any more.
func (ops *operations) dropCall(c *call) {
	c.dropped = true
	if c.stopped && ops.calls[c.handle] == c {
		delete(ops.calls, c.handle)
	}
}
