// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lookup"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The place of an operation on its rank: what ended before it, and when it was called. It is derived from the
// operations of one rank and the calls of its process, in the order of their ends.

// Local is an operation, or a launch of several, among those of its rank.
type Local struct {
	Rank   int32  // in the world
	Seq    uint32 // from 1, in the order of ends; all operations of a launch have the same
	Before uint32 // Seq of the last operation that had ended when this one began (timeline.before), 0: none
	Called bool   // Ready and Returned are known
	// Outside marks an operation that is not selected. It is in no figure itself, but its consequences may be.
	Outside bool
	// MayLast: the operation Before may have ended later than Ended, because that is the end of a part of its kernel.
	MayLast bool
	Ended   otf2.Timestamp // end of the operation Before; without one, the begin of this operation
	// Ready is when the application had made the call: when a single call was entered, or when the last call in a
	// group had returned.
	Ready    otf2.Timestamp
	Returned otf2.Timestamp // when the application continued; the greatest time: not yet known
	Free     otf2.Timestamp // when the call before had returned, 0: unknown
	// Kernels ran on its GPU between Ready (or Ended, if later) and its begin; nil: none, or not recorded.
	Kernels *Kernels
	During  Phase // phase in which it was called; nil: none, or unknown
}

// Phase is a phase of the application.
type Phase interface {
	Path() string // names of the phases around it and its own
}

const never = ^otf2.Timestamp(0)

// own divides the time between the end of what was before and the operation's begin.
func (l *Local) own(begin otf2.Timestamp) (own [ownKinds]float64) {
	at := min(l.Ended, begin)
	if !l.Called {
		own[Own] = float64(begin - at)
		return own
	}
	till := func(k Kind, t otf2.Timestamp) {
		if t = min(t, begin); t > at {
			own[k], at = float64(t-at), t
		}
	}
	till(Host, l.Ready)
	till(Call, l.Returned)
	till(GPU, begin)
	return own
}

// KeptEnds is how many later operations of a rank may have ended for an operation still to be found.
const KeptEnds = 64

// Lane follows the calls and operations of some processes. It takes all regions, and the operations of members, of
// each process in the order of time.
type Lane struct {
	calls   *lookup.ByRegion[bool] // of NCCL's API
	kernels *facts.Kernels
	places  lookup.ByLocation[*place]
}

// place is the state of a location.
type place struct {
	process *process
	rank    *timeline
	stream  *stream        // set for a row of kernels, of a GPU with a rank
	before  *Kernels       // kernels before the open or last launch
	begun   otf2.Timestamp // begin of that launch
	last    Local          // of the last launch
	launch  uint64         // number of that launch, 0: none
	thread  *thread        // set if it has made calls
}

// thread is the state of a location with calls, which few locations have.
type thread struct {
	depth int            // open calls
	free  otf2.Timestamp // when the previous call returned, 0: there was none
	left  otf2.Timestamp // when the last call returned, 0: none has
	ready otf2.Timestamp // when the last inner call returned
	made  []uint64       // events of the calls in the outermost one
}

type process struct {
	calls callTable
	gpus  []*gpu
}

// timeline has a rank's last operations.
type timeline struct {
	rank int32
	seq  uint32
	gpu  *gpu                     // nil: its kernels are unknown
	ends [KeptEnds]otf2.Timestamp // of seq, by seq modulo KeptEnds
	// mayLast has the operations whose ends are those of parts of their kernels, with nothing else known of their ends.
	mayLast [KeptEnds]bool
}

// Lanes makes lanes for an archive's locations. ranks has the rank of the world of each member location; process
// returns the process of any location.
type Lanes struct {
	calls   lookup.ByRegion[bool]
	kernels *facts.Kernels
	groups  map[otf2.LocationRef]otf2.LocationGroupRef // groups of rows that may have kernels, or ranks on their GPU
	ranks   map[otf2.LocationRef]int
	process func(otf2.LocationRef) otf2.LocationGroupRef
}

// NewLanes prepares lanes of an archive.
func NewLanes(defs *otf2.Definitions, ranks map[otf2.LocationRef]int,
	process func(otf2.LocationRef) otf2.LocationGroupRef) *Lanes {
	l := &Lanes{kernels: facts.KernelsOf(defs), ranks: ranks, process: process}
	if l.kernels.Known() {
		l.groups = acceleratorRows(defs)
	}
	for ref := range naming.CallRegions(defs) {
		l.calls.Set(ref, true)
	}
	return l
}

// Lane returns a lane for some locations, of whole processes.
func (l *Lanes) Lane(locations []otf2.LocationRef) *Lane {
	lane := &Lane{calls: &l.calls, kernels: l.kernels}
	processes := make(map[otf2.LocationGroupRef]*process)
	ranks := make(map[int]*timeline)
	for _, at := range locations {
		group := l.process(at)
		p := &place{process: keyed.Entry(processes, group)}
		if rank, member := l.ranks[at]; member {
			if ranks[rank] == nil {
				ranks[rank] = &timeline{rank: int32(rank)}
			}
			p.rank = ranks[rank]
		}
		lane.places.Set(at, p)
	}
	l.findKernelRows(lane, locations)
	return lane
}

func (l *Lane) isCall(r *facts.Region) bool { return r.Number == 0 && l.calls.Get(r.Region) }

// Enter takes a region that begins.
func (l *Lane) Enter(r *facts.Region) {
	p := l.places.Get(r.Location)
	if p == nil {
		return
	}
	if !l.isCall(r) {
		switch {
		case r.Number > 0:
			p.launched(r)
		case p.stream != nil && l.kernels.Computes(r):
			p.stream.enter(r)
		}
		return
	}
	if p.thread == nil {
		p.thread = new(thread)
	}
	t := p.thread
	if t.depth == 0 {
		t.ready, t.free, t.made = r.Begin, t.left, t.made[:0]
	}
	t.depth++
	if r.Counted && !r.Graph && r.Event != 0 { // a call captured into a graph has ended before its replay
		t.made = append(t.made, r.Event)
		p.process.calls.addCall(call{event: r.Event, free: t.free, ready: r.Begin, returned: never})
	}
}

// Leave takes a region that ends.
func (l *Lane) Leave(r *facts.Region) {
	p := l.places.Get(r.Location)
	if p == nil {
		return
	}
	if p.stream != nil && l.kernels.Computes(r) {
		p.stream.leave(r)
	}
	t := p.thread
	if t == nil || t.depth == 0 || !l.isCall(r) {
		return
	}
	if t.depth--; t.depth > 0 {
		t.ready = r.End
		return
	}
	for _, event := range t.made {
		p.process.calls.set(call{event: event, free: t.free, ready: t.ready, returned: r.End})
	}
	t.left = r.End
	for _, g := range p.process.gpus {
		g.cut(r.End)
	}
}

// Operation takes a member's operation that has ended, and returns its place on the rank.
func (l *Lane) Operation(o *facts.Operation) Local {
	p := l.places.Get(o.Location)
	if p == nil || p.rank == nil {
		return Local{Rank: -1}
	}
	if o.Launch > 0 && p.launch == o.Launch {
		if o.Parent != 0 {
			p.process.calls.takeCall(o.Parent)
		}
		return p.last
	}
	t := p.rank
	at := Local{Rank: t.rank, Seq: t.seq + 1, Ended: o.Since, Returned: never}
	if o.Source == facts.SourceCall { // time before the call is the thread's own
		at.Ready, at.Returned, at.Called = o.Since, o.Since, true
	}
	if seq, end := t.lastEndedBy(o.Since, o.Uncertainty); seq > 0 {
		at.Before, at.Ended, at.MayLast = seq, end, t.mayLast[seq%KeptEnds]
	}
	if p.begun == o.Since {
		at.Kernels = p.before
	}
	t.seq++
	t.ends[t.seq%KeptEnds], t.mayLast[t.seq%KeptEnds] = o.End, o.EndsEarly && !o.Carried.Known
	t.gpu.restart(o.End)
	if o.Parent != 0 {
		if c, ok := p.process.calls.takeCall(o.Parent); ok {
			at.Ready, at.Returned, at.Called, at.Free = c.ready, c.returned, true, c.free
		}
	}
	p.launch, p.last = o.Launch, at
	return at
}

// lastEndedBy returns the last operation that had ended at a moment, or ended so little later that the uncertainty of
// both times explains it, and when; seq is 0 if none is known.
func (t *timeline) lastEndedBy(at otf2.Timestamp, uncertainty uint64) (seq uint32, end otf2.Timestamp) {
	for seq := t.seq; seq > 0 && seq+KeptEnds > t.seq; seq-- {
		if end := min(t.ends[seq%KeptEnds], at); t.ends[seq%KeptEnds]-end <= otf2.Timestamp(2*uncertainty) {
			return seq, end
		}
	}
	return 0, 0
}

// launched stores what the GPU has computed when a launch begins on it.
func (p *place) launched(r *facts.Region) {
	p.before, p.begun = nil, r.Begin
	if p.rank == nil || p.rank.gpu == nil || !r.Source.HasPlace() || r.Source == facts.SourceCall {
		return
	}
	seq, from := p.rank.lastEndedBy(r.Begin, r.Uncertainty)
	if seq == 0 {
		return
	}
	if c, known := p.process.calls.get(r.Parent); known {
		from = max(from, c.returned)
	}
	p.before = p.rank.gpu.ran(from, r.Begin)
}

// acceleratorRows returns the groups of rows that belong to a GPU.
func acceleratorRows(defs *otf2.Definitions) map[otf2.LocationRef]otf2.LocationGroupRef {
	rows := make(map[otf2.LocationRef]otf2.LocationGroupRef)
	for _, l := range defs.Locations {
		if l.Type == otf2.LocationTypeAcceleratorStream {
			rows[l.Self] = l.Group
		}
	}
	return rows
}

// findKernelRows finds the rows of kernels of the GPUs with ranks.
func (l *Lanes) findKernelRows(lane *Lane, locations []otf2.LocationRef) {
	gpus := make(map[otf2.LocationGroupRef]*gpu)
	for _, at := range locations {
		p := lane.places.Get(at)
		group, row := l.groups[at]
		if p.rank == nil || !row {
			continue
		}
		if gpus[group] == nil {
			gpus[group] = new(gpu)
			p.process.gpus = append(p.process.gpus, gpus[group])
		}
		p.rank.gpu = gpus[group]
	}
	for _, at := range locations {
		p := lane.places.Get(at)
		if group, row := l.groups[at]; row && p.rank == nil && gpus[group] != nil {
			p.stream = &stream{gpu: gpus[group]}
			gpus[group].streams = append(gpus[group].streams, p.stream)
		}
	}
}

// call is a call of NCCL's API whose operation has not ended.
type call struct {
	event                 uint64
	free, ready, returned otf2.Timestamp
}

// callTable finds calls by their events. It forgets some of those whose operations never come.
type callTable struct {
	calls []call // event 0: free
	shift uint
}

const (
	callsBeside = 4 // number of places in which a call can be
	leastCalls  = 1 << 2
	mostCalls   = 1 << 13
)

func (t *callTable) callsAt(event uint64) []call {
	if t.calls == nil {
		t.grow(leastCalls)
	}
	i := int(event * 0x9e3779b97f4a7c15 >> t.shift)
	return t.calls[i : i+callsBeside]
}

func (t *callTable) grow(size int) {
	old := t.calls
	t.calls, t.shift = make([]call, size+callsBeside-1), 64
	for n := size; n > 1; n /= 2 {
		t.shift--
	}
	for _, c := range old {
		if c.event != 0 {
			t.addCall(c)
		}
	}
}

func (t *callTable) addCall(c call) {
	all := t.callsAt(c.event)
	for i := range all {
		if all[i].event == 0 || all[i].event == c.event {
			all[i] = c
			return
		}
	}
	if size := 2 * (len(t.calls) - callsBeside + 1); size <= mostCalls {
		t.grow(size)
		t.addCall(c)
		return
	}
	copy(all, all[1:])
	all[callsBeside-1] = c
}

// set updates a call that is in the table.
func (t *callTable) set(c call) {
	all := t.callsAt(c.event)
	for i := range all {
		if all[i].event == c.event {
			all[i] = c
			return
		}
	}
}

// get returns a call; known is false if it is not in the table.
func (t *callTable) get(event uint64) (c call, known bool) {
	if event == 0 {
		return c, false
	}
	for _, c := range t.callsAt(event) {
		if c.event == event {
			return c, true
		}
	}
	return call{}, false
}

func (t *callTable) takeCall(event uint64) (c call, ok bool) {
	all := t.callsAt(event)
	for i := range all {
		if all[i].event == event {
			c, all[i].event = all[i], 0
			return c, true
		}
	}
	return call{}, false
}
