// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Groups of the regions of CUDA streams.
const (
	GroupCUDAKernels = "CUDA kernels"
	GroupCUDAMemory  = "CUDA memory"
	GroupCUDAWaits   = "CUDA synchronization"
)

// rowID names what has a row of its own: a stream, or what waits for it, which goes on beside it.
type rowID struct {
	device, context, stream uint32
	waits                   bool
}

// row is a CUDA stream on the timeline. Activities stand there in order of their beginnings. What begins before the
// one before has ended (kernels of parallel branches of a graph, or launched to overlap) stands on a further row.
type row struct {
	id    rowID
	queue activityQueue
	last  uint64 // beginning of the last one written
	lanes []lane
}

// lane is one location of a row.
type lane struct {
	loc *location
	end uint64
}

const (
	maxLanes = 4
	// maxStreams bounds the locations: each is a file.
	maxStreams = 1024
	// stepNs is by how much activities that follow each other may seem to overlap: stamps have steps of 32 ns.
	stepNs = 64
)

// activityQueue is a heap by beginning.
type activityQueue []*activity

func (q activityQueue) Len() int           { return len(q) }
func (q activityQueue) Less(i, j int) bool { return q[i].begin < q[j].begin }
func (q activityQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *activityQueue) Push(x any)        { *q = append(*q, x.(*activity)) }
func (q *activityQueue) Pop() any {
	old := *q
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return a
}

// activityHold is how long an activity waits for earlier ones of its row, and for the plan that it belongs to: longer
// than a plan waits for it.
func (m *Model) activityHold() uint64 { return max(m.opts.CUPTIHold, m.opts.GPUHold) + 1e9 }

// place puts an activity on its row, now or when the clock covers its times.
func (m *Model) place(g *cuda, a *activity) {
	if a.start == 0 || a.stop < a.start { // CUPTI's way to say that it does not know
		g.counts[cuptiNoTimes]++
		m.leaveActivity(g, a)
		return
	}
	m.later(g, untimed{a.arrived, a.stop, func(m *Model, g *cuda) error {
		begin, off, err := g.clock.Map(a.start)
		if err != nil {
			return err
		}
		end, more, err := g.clock.Map(a.stop)
		if err != nil {
			return err
		}
		a.begin, a.end, a.off, a.timed = begin, max(begin, end), max(off, more), true
		r := g.rows[a.id]
		if r == nil {
			r = &row{id: a.id}
			g.rows[a.id] = r
			g.order = append(g.order, r)
		}
		heap.Push(&r.queue, a)
		g.held++
		if k, ok := a.record.(*cupti.Kernel); ok && k.Graph != 0 && a.nccl {
			m.addReplayed(g, a)
		}
		return nil
	}, func(m *Model) {
		g.counts[cuptiNoClock]++
		m.leaveActivity(g, a)
	}})
}

// leaveActivity is the end of an activity, drawn or not.
func (m *Model) leaveActivity(g *cuda, a *activity) {
	if k, ok := a.record.(*cupti.Kernel); ok && k.Graph != 0 {
		m.leaveReplayed(g, a)
	}
}

// writeRows writes the activities that are due.
func (m *Model) writeRows(g *cuda, now uint64) {
	if now != noTime {
		g.written = now
	}
	g.order = slices.DeleteFunc(g.order, func(r *row) bool {
		m.writeRow(g, r, now)
		if len(r.queue) > 0 || len(r.lanes) > 0 {
			return false
		}
		delete(g.rows, r.id) // there was no place for it
		return true
	})
}

func (m *Model) writeRow(g *cuda, r *row, now uint64) {
	hold := m.activityHold()
	for len(r.queue) > 0 {
		a := r.queue[0]
		if now != noTime && now < max(a.arrived, a.end)+hold {
			if g.held <= maxActivities {
				return
			}
			g.counts[cuptiEarly]++
			g.forced = max(g.forced, a.end)
		}
		heap.Pop(&r.queue)
		g.held--
		m.writeActivity(g, r, a)
		a.drawn = true
		m.leaveActivity(g, a)
	}
}

// writeActivity draws an activity.
func (m *Model) writeActivity(g *cuda, r *row, a *activity) {
	if a.beforeLaunch() {
		g.counts[cuptiBeforeLaunch]++
	}
	id := r.id
	if id.waits {
		device, ok := g.contexts[id.context]
		if !ok {
			g.counts[cuptiNoDevice]++
			return
		}
		id.device = device
	}
	begin := a.begin
	if begin < r.last {
		g.counts[cuptiLate]++
		begin = r.last
	}
	r.last = begin
	l := m.laneFor(g, id, r, begin)
	if l == nil {
		return
	}
	enter := l.loc.at(begin)
	leave := max(enter, otf2.Timestamp(a.end))
	l.end = uint64(leave)
	region := m.activityRegion(g, a)
	m.attributes.Reset()
	a.attributes(m.attributes)
	m.fail(l.loc.w.Enter(enter, m.attributes, region))
	m.fail(l.loc.w.Leave(leave, nil, region))
}

// laneFor finds a location that is free from a time on; the first to be free if there are too many. nil if
// there can be none.
func (m *Model) laneFor(g *cuda, id rowID, r *row, begin uint64) *lane {
	first := 0
	for i := range r.lanes {
		if r.lanes[i].end <= begin+stepNs {
			if i > 0 {
				g.counts[cuptiOverlaps]++
			}
			return &r.lanes[i]
		}
		if r.lanes[i].end < r.lanes[first].end {
			first = i
		}
	}
	if len(r.lanes) > 0 {
		g.counts[cuptiOverlaps]++
	}
	if len(r.lanes) >= maxLanes {
		g.counts[cuptiMoved]++
		return &r.lanes[first]
	}
	if g.locations >= maxStreams {
		g.counts[cuptiNoRow]++
		return nil
	}
	g.locations++
	gpu := m.gpuOf(g, id.device)
	loc, err := m.newLocation(experiment.KindStream, otf2.LocationTypeAcceleratorStream, m.rowName(g, id, len(r.lanes)), -1, -1)
	if m.fail(err) {
		return nil
	}
	loc.GPU = gpu
	r.lanes = append(r.lanes, lane{loc: loc})
	return &r.lanes[len(r.lanes)-1]
}

// rowName is "CUDA[0:7]" for stream 7 of device 0, "CUDA[0:7] +1" for what overlaps, "CUDA[0:7] sync" for waits, "CUDA[0]
// sync" for those of a whole context. Streams of further contexts of a device bear the context's id before theirs.
func (m *Model) rowName(g *cuda, id rowID, n int) string {
	stream := fmt.Sprintf(":%d", id.stream)
	if id.stream == cupti.None {
		stream = ""
	}
	for context, device := range g.contexts {
		if device == id.device && context < id.context {
			stream = fmt.Sprintf(":%d", id.context) + stream
			break
		}
	}
	name := fmt.Sprintf("%s[%d%s]", PlatformOf(m.process.Library).Name, id.device, stream)
	if id.waits {
		name += " sync"
	}
	if n > 0 {
		name += fmt.Sprintf(" +%d", n)
	}
	return name
}

// kernelRegions are the regions of kernels, by mangled name.
type kernelRegions struct{ byName map[string]otf2.RegionRef }

func newKernelRegions() kernelRegions { return kernelRegions{make(map[string]otf2.RegionRef)} }

const (
	maxKernelNames   = 8192
	otherKernelName  = "(further kernels)"
	unnamedKernel    = "(unnamed kernel)"
	maxKernelNameLen = 200
)

// activityRegion is the region of an activity.
func (m *Model) activityRegion(g *cuda, a *activity) otf2.RegionRef {
	switch rec := a.record.(type) {
	case *cupti.Kernel:
		return m.kernelRegion(g, a.name)
	case *cupti.Copy:
		name := "memcpy"
		if kind := rec.CopyKind.String(); kind != "" {
			name += " " + kind
		}
		return m.defs.region(name, GroupCUDAMemory, otf2.RegionRoleDataTransfer)
	case *cupti.Set:
		return m.defs.region("memset", GroupCUDAMemory, otf2.RegionRoleFunction)
	case *cupti.Synchronization:
		return m.defs.region(rec.Type.String(), GroupCUDAWaits, otf2.RegionRoleFunction)
	}
	return m.defs.region(NameCUDAGraph, GroupCUDAKernels, otf2.RegionRoleFunction)
}

// kernelRegion names a kernel's region readably; the mangled name is its canonical one.
func (m *Model) kernelRegion(g *cuda, mangled string) otf2.RegionRef {
	ref, ok := g.regions.byName[mangled]
	if ok {
		return ref
	}
	switch {
	case mangled == "":
		return m.defs.region(unnamedKernel, GroupCUDAKernels, otf2.RegionRoleFunction)
	case len(g.regions.byName) >= maxKernelNames:
		return m.defs.region(otherKernelName, GroupCUDAKernels, otf2.RegionRoleFunction)
	}
	// Whatever a compiler puts into names, or cuts them at: strings of archives are UTF-8.
	valid := func(s string) string { return strings.ToValidUTF8(s, "?") }
	name := cupti.FunctionName(mangled)
	name = valid(name[:min(len(name), maxKernelNameLen)])
	ref = otf2.RegionRef(len(m.process.Regions))
	m.process.Regions = append(m.process.Regions, experiment.Region{
		Name: name, Canonical: valid(mangled), Role: otf2.RegionRoleFunction, Paradigm: m.defs.paradigm, Group: GroupCUDAKernels,
	})
	g.regions.byName[mangled] = ref
	return ref
}

// attributes describe an activity.
func (a *activity) attributes(l *otf2.AttributeList) {
	correlation, graph, node := uint32(0), uint32(0), uint64(0)
	switch rec := a.record.(type) {
	case *cupti.Kernel:
		correlation, graph, node = rec.Correlation, rec.Graph, rec.GraphNode
		extent(l, AttrGridX, rec.Grid)
		extent(l, AttrBlockX, rec.Block)
		l.Uint16(AttrRegisters, rec.Registers)
		l.Uint32(AttrStaticShared, rec.StaticShared)
		l.Uint32(AttrDynamicShared, rec.DynamicShared)
	case *cupti.Copy:
		correlation, graph, node = rec.Correlation, rec.Graph, rec.GraphNode
		l.Uint64(AttrBytes, rec.Bytes)
	case *cupti.Set:
		correlation, graph, node = rec.Correlation, rec.Graph, rec.GraphNode
		l.Uint64(AttrBytes, rec.Bytes)
	case *cupti.Synchronization:
		correlation = rec.Correlation
	case *cupti.GraphTrace:
		correlation, graph = rec.Correlation, rec.Graph
	}
	l.Uint32(AttrCorrelationID, correlation)
	if !a.id.waits {
		l.Uint32(AttrDevice, a.id.device)
	}
	l.Uint32(AttrContext, a.id.context)
	if a.id.stream != cupti.None {
		l.Uint32(AttrStreamID, a.id.stream)
	}
	if graph != 0 {
		l.Uint32(AttrGraphID, graph)
	}
	if node != 0 {
		l.Uint64(AttrGraphNodeID, node)
	}
	planID, parent := a.planID, a.parent
	if a.launch != nil {
		l.Uint64(AttrExternalID, a.launch.handle)
		planID, parent = a.launch.planID, a.launch.operation
		if p := a.launch.plan; p != nil {
			parent = p.onlyOperation()
		}
	}
	if planID != 0 {
		l.Uint64(AttrPlanID, planID)
	}
	if parent != 0 {
		l.Uint64(AttrParentID, parent)
	}
}

// extent writes sizes in x, y and z; of y and z only what is not 1.
func extent(l *otf2.AttributeList, x otf2.AttributeRef, size [3]uint32) {
	l.Uint32(x, size[0])
	for i := otf2.AttributeRef(1); i < 3; i++ {
		if size[i] != 1 {
			l.Uint32(x+i, size[i])
		}
	}
}
