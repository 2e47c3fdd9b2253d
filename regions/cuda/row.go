// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"container/heap"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/cupti"
)

// Streams on the timeline: activities are drawn in order of their begins, so each waits until no earlier one can come.

// Stream identifies a row's subject: a stream, or the waits for it, which overlap with it.
type Stream struct {
	Device, Context uint32
	Stream          uint32 // cupti.None: of a whole context
	Waits           bool
}

// Timeline is the destination of a Recorder.
type Timeline interface {
	// GPUOfDevice returns the GPU (an index) of a CUDA device that no launch has named.
	GPUOfDevice(ordinal int) int
	// NewRow makes a row of a stream on a GPU: n is 0, or 1, 2, … for activities that overlap with those of earlier
	// rows. further is set if the device has other contexts that came before this one. It returns nil if there can be
	// none.
	NewRow(s Stream, n, gpu int, further bool) Row
}

// Row is a row of a timeline.
type Row interface {
	// DrawActivity draws an activity from a time on and returns when it ends there. Times rise.
	DrawActivity(a *Activity, begin uint64) (end uint64)
}

// Activity is a kernel, a copy, or another activity of a stream that CUPTI recorded.
type Activity struct {
	Record cupti.Record
	Stream Stream
	Name   string // of kernels, mangled

	arrived     uint64
	start, stop uint64 // CUPTI's
	timed       bool
	begin, end  uint64 // on the process's line
	off         uint64 // uncertainty of either

	drawn bool
	nccl  bool
	link  activityLink
}

// activityLink is what a kernel is linked to.
type activityLink struct {
	launch         *Launch // whose kernel it is
	claimed        bool    // of a graph: linked to a replayed plan
	planID, parent uint64  // that plan, and its only operation
}

// End returns when the activity ended.
func (a *Activity) End() uint64 { return a.end }

// LinkedTo returns the handles of the launch, of the plan, and of the operation if the plan has only one, to which a
// kernel is linked; 0 for none.
func (a *Activity) LinkedTo() (launch, plan, operation uint64) {
	l := a.link.launch
	switch {
	case l == nil:
		return 0, a.link.planID, a.link.parent
	case l.plan != nil:
		return l.Handle, l.planID, l.plan.OnlyOperation()
	}
	return l.Handle, l.planID, l.operation
}

// streamQueues are the activities that wait to be drawn, and the rows of their streams.
type streamQueues struct {
	byID    map[Stream]*streamRows
	order   []*streamRows // the same, as they came
	rows    int           // on the timeline
	held    int           // activities that wait
	written uint64        // when rows were written last
	forced  uint64        // latest end of activities written before their time
}

// streamRows are the rows of a stream. An activity that begins before the previous one has ended (kernels of parallel
// branches of a graph, or launched to overlap) is drawn on a further row.
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
	// MaxRows bounds the rows, because each is a file.
	MaxRows = 1024
	// stepNs is the allowed overlap of consecutive activities: stamps have steps of 32 ns.
	stepNs = 64
)

// activityQueue is a heap by begin.
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

// placeActivity puts an activity on its row, now or when the clock covers its times.
func (g *Recorder) placeActivity(a *Activity) {
	if a.start == 0 || a.stop < a.start { // CUPTI's mark for unknown times
		g.counts[countNoTimes]++
		g.endActivity(a)
		return
	}
	g.waitForClock(untimed{a.arrived, a.stop, func() error { return g.placeTimed(a) }, func() {
		g.counts[countNoClock]++
		g.endActivity(a)
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
	g.queueActivity(a)
	if a.ofGraph() && a.nccl {
		g.addReplayed(a)
	}
	return nil
}

// queueActivity queues an activity, until it is drawn.
func (g *Recorder) queueActivity(a *Activity) {
	r := g.streams.byID[a.Stream]
	if r == nil {
		r = &streamRows{id: a.Stream}
		g.streams.byID[a.Stream] = r
		g.streams.order = append(g.streams.order, r)
	}
	heap.Push(&r.queue, a)
	g.streams.held++
}

// ofGraph reports whether the activity is a kernel that a graph launched.
func (a *Activity) ofGraph() bool {
	k, ok := a.Record.(*cupti.Kernel)
	return ok && k.Graph != 0
}

// endActivity handles the end of an activity, drawn or not.
func (g *Recorder) endActivity(a *Activity) {
	if a.ofGraph() {
		g.leaveReplayed(a)
	}
}

// writeRows draws the activities that are due.
func (g *Recorder) writeRows(now uint64) {
	if now != noTime {
		g.streams.written = now
	}
	g.streams.order = slices.DeleteFunc(g.streams.order, func(r *streamRows) bool {
		g.writeRow(r, now)
		if len(r.queue) > 0 || len(r.rows) > 0 {
			return false
		}
		delete(g.streams.byID, r.id) // it got no row
		return true
	})
}

func (g *Recorder) writeRow(r *streamRows, now uint64) {
	for len(r.queue) > 0 {
		a := r.queue[0]
		if now != noTime && now < max(a.arrived, a.end)+g.opts.Hold {
			if g.streams.held <= maxActivities {
				return
			}
			g.counts[countEarly]++
			g.streams.forced = max(g.streams.forced, a.end)
		}
		heap.Pop(&r.queue)
		g.streams.held--
		g.drawActivity(r, a)
		a.drawn = true
		g.endActivity(a)
	}
}

// drawActivity draws an activity.
func (g *Recorder) drawActivity(r *streamRows, a *Activity) {
	if a.beforeLaunch() {
		g.counts[countBeforeLaunch]++
	}
	id := r.id
	if id.Waits {
		device, ok := g.devices.contexts[id.Context]
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
	if l := g.freeRow(id, r, begin); l != nil {
		l.end = l.row.DrawActivity(a, begin)
	}
}

// freeRow returns a row that is free from a time on; the first to be free if there are too many; nil if there can be
// none.
func (g *Recorder) freeRow(id Stream, r *streamRows, begin uint64) *drawnRow {
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
	if g.streams.rows >= MaxRows {
		g.counts[countNoRow]++
		return nil
	}
	g.streams.rows++
	made := g.timeline.NewRow(id, len(r.rows), g.gpuOf(id.Device), g.hasEarlierContext(id))
	if made == nil {
		return nil
	}
	r.rows = append(r.rows, drawnRow{row: made})
	return &r.rows[len(r.rows)-1]
}

// hasEarlierContext reports whether a stream's device has contexts that came before the stream's.
func (g *Recorder) hasEarlierContext(id Stream) bool {
	for context, device := range g.devices.contexts {
		if device == id.Device && context < id.Context {
			return true
		}
	}
	return false
}
