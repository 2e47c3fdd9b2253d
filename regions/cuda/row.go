// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"container/heap"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/cupti"
)

// Streams on the timeline: activities stand there in order of their beginnings, so each waits until earlier ones can no
// more come.

// Stream names what has rows of its own: a stream, or what waits for it, which goes on beside it.
type Stream struct {
	Device, Context uint32
	Stream          uint32 // cupti.None: of a whole context
	Waits           bool
}

// Timeline is where a Recorder draws.
type Timeline interface {
	// Device gives the GPU (an index) of a CUDA device that no launch has told of.
	Device(ordinal int) int
	// Row makes a row of a stream on a GPU: n is 0, or 1, 2, … for what runs beside the activities of the rows before.
	// further tells that the device has other contexts that came before this one. Nil if there can be none.
	Row(s Stream, n, gpu int, further bool) Row
}

// Row is a row of a timeline.
type Row interface {
	// Draw draws an activity from a time on and returns when it ends there. Times rise.
	Draw(a *Activity, begin uint64) (end uint64)
}

// Activity is a kernel, a copy, or anything else that CUPTI recorded of a stream.
type Activity struct {
	Record cupti.Record
	Stream Stream
	Name   string // of kernels, mangled

	arrived     uint64
	start, stop uint64 // CUPTI's
	timed       bool
	begin, end  uint64 // on the process's line
	off         uint64 // what either may be off by

	drawn          bool
	nccl           bool
	launch         *Launch // whose kernel it is
	claimed        bool    // of a graph: it is a replayed plan's
	planID, parent uint64  // that one, and its only operation
}

// End is when the activity ended.
func (a *Activity) End() uint64 { return a.end }

// LinkedTo gives the handles of what a kernel is linked to: its launch, its plan, and the operation if the plan has but
// one; 0 where it is not.
func (a *Activity) LinkedTo() (launch, plan, operation uint64) {
	l := a.launch
	switch {
	case l == nil:
		return 0, a.planID, a.parent
	case l.plan != nil:
		return l.Handle, l.planID, l.plan.Operation()
	}
	return l.Handle, l.planID, l.operation
}

// streamRows are the rows of a stream. What begins before the one before has ended (kernels of parallel branches of a
// graph, or launched to overlap) stands on a further row.
type streamRows struct {
	id    Stream
	queue activityQueue
	last  uint64 // beginning of the last one written
	rows  []drawnRow
}

// drawnRow is one of them on the timeline.
type drawnRow struct {
	row Row
	end uint64
}

const (
	maxRowsOfStream = 4
	// MaxRows bounds the rows: each is a file.
	MaxRows = 1024
	// stepNs is by how much activities that follow each other may seem to overlap: stamps have steps of 32 ns.
	stepNs = 64
)

// activityQueue is a heap by beginning.
type activityQueue []*Activity

func (q activityQueue) Len() int           { return len(q) }
func (q activityQueue) Less(i, j int) bool { return q[i].begin < q[j].begin }
func (q activityQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *activityQueue) Push(x any)        { *q = append(*q, x.(*Activity)) }
func (q *activityQueue) Pop() any {
	old := *q
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return a
}

// place puts an activity on its row, now or when the clock covers its times.
func (g *Recorder) place(a *Activity) {
	if a.start == 0 || a.stop < a.start { // CUPTI's way to say that it does not know
		g.counts[countNoTimes]++
		g.leave(a)
		return
	}
	g.later(untimed{a.arrived, a.stop, func() error { return g.placeTimed(a) }, func() {
		g.counts[countNoClock]++
		g.leave(a)
	}})
}

// placeTimed puts an activity on its row if the clock covers its times.
func (g *Recorder) placeTimed(a *Activity) error {
	begin, off, err := g.times.clock.Map(a.start)
	if err != nil {
		return err
	}
	end, more, err := g.times.clock.Map(a.stop)
	if err != nil {
		return err
	}
	a.begin, a.end, a.off, a.timed = begin, max(begin, end), max(off, more), true
	r := g.rows[a.Stream]
	if r == nil {
		r = &streamRows{id: a.Stream}
		g.rows[a.Stream] = r
		g.order = append(g.order, r)
	}
	heap.Push(&r.queue, a)
	g.held++
	if a.ofGraph() && a.nccl {
		g.addReplayed(a)
	}
	return nil
}

// ofGraph reports whether the activity is a kernel that a graph launched.
func (a *Activity) ofGraph() bool {
	k, ok := a.Record.(*cupti.Kernel)
	return ok && k.Graph != 0
}

// leave is the end of an activity, drawn or not.
func (g *Recorder) leave(a *Activity) {
	if a.ofGraph() {
		g.leaveReplayed(a)
	}
}

// writeRows draws the activities that are due.
func (g *Recorder) writeRows(now uint64) {
	if now != noTime {
		g.written = now
	}
	g.order = slices.DeleteFunc(g.order, func(r *streamRows) bool {
		g.writeRow(r, now)
		if len(r.queue) > 0 || len(r.rows) > 0 {
			return false
		}
		delete(g.rows, r.id) // there was no place for it
		return true
	})
}

func (g *Recorder) writeRow(r *streamRows, now uint64) {
	for len(r.queue) > 0 {
		a := r.queue[0]
		if now != noTime && now < max(a.arrived, a.end)+g.opts.Hold {
			if g.held <= maxActivities {
				return
			}
			g.counts[countEarly]++
			g.forced = max(g.forced, a.end)
		}
		heap.Pop(&r.queue)
		g.held--
		g.write(r, a)
		a.drawn = true
		g.leave(a)
	}
}

// write draws an activity.
func (g *Recorder) write(r *streamRows, a *Activity) {
	if a.beforeLaunch() {
		g.counts[countBeforeLaunch]++
	}
	id := r.id
	if id.Waits {
		device, ok := g.contexts[id.Context]
		if !ok {
			g.counts[countNoDevice]++
			return
		}
		id.Device = device
	}
	begin := a.begin
	if begin < r.last {
		g.counts[countLate]++
		begin = r.last
	}
	r.last = begin
	if l := g.rowFor(id, r, begin); l != nil {
		l.end = l.row.Draw(a, begin)
	}
}

// rowFor finds a row that is free from a time on; the first to be free if there are too many. nil if
// there can be none.
func (g *Recorder) rowFor(id Stream, r *streamRows, begin uint64) *drawnRow {
	first := 0
	for i := range r.rows {
		if r.rows[i].end <= begin+stepNs {
			if i > 0 {
				g.counts[countOverlaps]++
			}
			return &r.rows[i]
		}
		if r.rows[i].end < r.rows[first].end {
			first = i
		}
	}
	if len(r.rows) > 0 {
		g.counts[countOverlaps]++
	}
	if len(r.rows) >= maxRowsOfStream {
		g.counts[countMoved]++
		return &r.rows[first]
	}
	if g.locations >= MaxRows {
		g.counts[countNoRow]++
		return nil
	}
	g.locations++
	made := g.timeline.Row(id, len(r.rows), g.gpuOf(id.Device), g.further(id))
	if made == nil {
		return nil
	}
	r.rows = append(r.rows, drawnRow{row: made})
	return &r.rows[len(r.rows)-1]
}

// further reports whether a stream's device has contexts that came before the stream's.
func (g *Recorder) further(id Stream) bool {
	for context, device := range g.contexts {
		if device == id.Device && context < id.Context {
			return true
		}
	}
	return false
}
