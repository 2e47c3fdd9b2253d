// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// replays links the plans that replayed graphs bring to the kernels that graphs launched.
//
// No id links both: all kernels of a replay have the correlation id of the graph's launch, and the ids that were pushed
// at their capture are gone. The first evidence are the times: NCCL's stamps say when the plan ran, CUPTI when each
// kernel did, and a plan's kernel is the only one of NCCL's on that GPU that began and ended with it. The second, if
// stamps are missing or not believed, is the order within one launch of a graph: NCCL reports a plan in a callback of
// the graph that its kernel waits for (docs/nccl-profiler-api.md §3.5), so all plans reported since the previous launch
// had ended belong to this one, in the order of its kernels. That requires as many plans as kernels, and launches that
// follow each other.
//
// A kernel must also fit the plan: at least as many blocks as the plan has channels, the plan's function if its name
// has one, and a node of the graph that was not linked to another captured plan. If two kernels fit, none is linked. A
// wrong kernel is linked by times only if the right one's record is missing while another communicator's kernel of the
// same function, on the same GPU, began and ended within slackNs of it, and no earlier replay has distinguished the
// two; by order, only if its record is missing while NCCL has run a kernel of the same function, between the same two
// launches, without a report.
type replays struct {
	kernels  map[int][]*Activity // NCCL's kernels not written yet, by GPU
	left     map[int]uint64      // latest end of written kernels, by GPU
	reported map[int][]Plan      // replayed plans since then, by GPU
	nodes    map[graphNode]capturedPlan
	plans    map[graphPlan]graphNode // the inverse of nodes
}

// graphNode identifies a kernel of a graph: in the captured graph if CUPTI reports it (13.4), else in the executable
// graph.
type graphNode struct {
	graph uint32
	node  uint64
}

// capturedPlan identifies what a node was linked to: the captured call of the plan's first operation, which all its
// replays name.
type capturedPlan struct {
	parent uint64
	times  int
}

// graphPlan is a captured plan in an executable graph, 0 if it is in the captured one.
type graphPlan struct {
	graph  uint32
	parent uint64
}

const (
	maxNodes  = 65536
	sureNodes = 3 // links after which a node's plan is believed without checking its times
)

func newReplays() replays {
	return replays{
		kernels: make(map[int][]*Activity), left: make(map[int]uint64), reported: make(map[int][]Plan),
		nodes: make(map[graphNode]capturedPlan), plans: make(map[graphPlan]graphNode),
	}
}

func nodeOf(k *cupti.Kernel) graphNode {
	if k.SourceGraphNode != 0 {
		return graphNode{0, k.SourceGraphNode}
	}
	return graphNode{k.Graph, k.GraphNode}
}

// AddReplayedPlan takes a plan that a graph replayed.
func (g *Recorder) AddReplayedPlan(p Plan) {
	if !g.active {
		return
	}
	r, gpu := &g.replays, p.CommRank().GPU
	list := slices.DeleteFunc(r.reported[gpu], func(q Plan) bool { return q.ReportedAt() < r.left[gpu] })
	if len(list) < maxNodes { // if no kernels of graphs are recorded
		list = append(list, p)
	}
	r.reported[gpu] = list
}

// LinkReplay links a replayed plan; by its stamps, if they are believed, as long as all kernels that ran then are still
// known.
func (g *Recorder) LinkReplay(p Plan, when gpuclock.Interval, stamped bool) {
	if p.KernelLinks().hasKernels() { // with another plan of its launch
		return
	}
	linked := false
	switch {
	case p.CapturedCall() == 0:
	case stamped:
		linked = g.linkByTimes(p, when)
	default:
		linked = g.linkByOrder(p)
	}
	if !linked {
		g.counts[countReplays]++
	}
}

func (g *Recorder) linkByTimes(p Plan, when gpuclock.Interval) bool {
	if g.streams.written+2*slackNs > when.End+g.opts.Hold || when.Begin <= g.streams.forced {
		return false
	}
	var found *Activity
	rivals := 0
	for _, a := range g.replays.kernels[p.CommRank().GPU] {
		if known := g.replays.nodes[nodeOf(a.Record.(*cupti.Kernel))]; known.times >= sureNodes &&
			known.parent != p.CapturedCall() {
			continue
		}
		ns := max(timeDistance(when.Begin, a.begin), timeDistance(when.End, a.end))
		if ns > 2*slackNs+a.off {
			continue
		}
		rivals++
		if ns <= slackNs+a.off {
			found = a
		}
	}
	if rivals != 1 || found == nil || found.link.claimed || !g.couldBe(p, found) {
		return false
	}
	g.replays.linkKernel(p, found)
	return true
}

// linkByOrder links all plans of the launch that a plan belongs to.
func (g *Recorder) linkByOrder(p Plan) bool {
	r, gpu := &g.replays, p.CommRank().GPU
	kernels, after, ok := r.launchAround(gpu, p)
	if !ok {
		return false
	}
	var plans []Plan
	for _, q := range r.reported[gpu] {
		if end := kernels[len(kernels)-1].end; q.ReportedAt() > after && q.ReportedAt() < end {
			plans = append(plans, q)
		}
	}
	if len(plans) != len(kernels) || !slices.Contains(plans, p) {
		return false
	}
	slices.SortStableFunc(plans, func(a, b Plan) int { return cmp.Compare(a.ReportedAt(), b.ReportedAt()) })
	owner := make(map[string]*Rank) // by function: plans of one communicator rank keep their order, others need not
	once := make(map[uint64]bool)
	for i, q := range plans {
		a := kernels[i]
		function := g.functionIn(a.Name)
		if of := owner[function]; of != nil && of != q.CommRank() {
			return false
		}
		owner[function] = q.CommRank()
		if q.CapturedCall() == 0 || once[q.CapturedCall()] || q.ReportedAt() > a.begin+a.off || !g.couldBe(q, a) {
			return false
		}
		once[q.CapturedCall()] = true
		if l := q.KernelLinks(); l.hasKernels() && l.kernels[0] != a || a.link.claimed && a.link.planID != q.ID() {
			return false
		}
	}
	for i, q := range plans {
		if !kernels[i].link.claimed {
			r.linkKernel(q, kernels[i])
		}
	}
	return true
}

// launchAround returns, in order, NCCL's kernels of the graph launch in which a plan was reported, and the end of the
// previous launch; false unless that was before this one's kernels began.
func (r *replays) launchAround(gpu int, p Plan) (kernels []*Activity, after uint64, ok bool) {
	launches := make(map[uint32][]*Activity)
	for _, a := range r.kernels[gpu] {
		id := a.Record.(*cupti.Kernel).Correlation
		launches[id] = append(launches[id], a)
	}
	after = r.left[gpu]
	for _, list := range launches {
		slices.SortFunc(list, func(a, b *Activity) int { return cmp.Compare(a.begin, b.begin) })
		switch last := list[len(list)-1]; {
		case last.end <= p.ReportedAt():
			after = max(after, last.end)
		case kernels == nil || list[0].begin < kernels[0].begin:
			kernels = list
		}
	}
	if kernels == nil || after > kernels[0].begin {
		return nil, 0, false
	}
	for _, list := range launches {
		if list[0] != kernels[0] && list[0].begin < kernels[len(kernels)-1].end &&
			list[len(list)-1].end > kernels[0].begin {
			return nil, 0, false
		}
	}
	return kernels, after, true
}

// linkKernel links a plan to its kernel.
func (r *replays) linkKernel(p Plan, a *Activity) {
	if len(r.nodes) >= maxNodes {
		clear(r.nodes)
		clear(r.plans)
	}
	node := nodeOf(a.Record.(*cupti.Kernel))
	parent := p.CapturedCall()
	r.nodes[node], r.plans[graphPlan{node.graph, parent}] = capturedPlan{parent, r.nodes[node].times + 1}, node
	a.link.claimed, a.link.planID, a.link.parent = true, p.ID(), p.OnlyOperation()
	p.KernelLinks().kernels = append(p.KernelLinks().kernels, a)
}

// couldBe reports whether a kernel fits a plan: enough blocks for the plan's channels, no other function's name, and a
// node that is not linked to another plan, nor this plan to another node.
func (g *Recorder) couldBe(p Plan, a *Activity) bool {
	r, kernel, parent := &g.replays, a.Record.(*cupti.Kernel), p.CapturedCall()
	node := nodeOf(kernel)
	known := r.nodes[node]
	if at, placed := r.plans[graphPlan{node.graph, parent}]; known.times > 0 && known.parent != parent || placed &&
		at != node {
		return false
	}
	if kernel.Grid[0] < p.ChannelCount() {
		return false
	}
	named := g.functionIn(a.Name)
	return named == "" || p.RunsFunction(named)
}

// functionIn returns the function of the options in a kernel's name; "" if there is none.
func (g *Recorder) functionIn(name string) string {
	if function := KernelFunction(name); g.functions[function] {
		return function
	}
	return ""
}

// addReplayed keeps a kernel of a graph for its plan.
func (g *Recorder) addReplayed(a *Activity) {
	gpu := g.gpuOf(a.Stream.Device)
	g.replays.kernels[gpu] = append(g.replays.kernels[gpu], a)
}

// leaveReplayed counts the fate of a kernel of a graph, which cannot be linked from here on.
func (g *Recorder) leaveReplayed(a *Activity) {
	switch {
	case a.link.claimed:
		g.counts[countGraphLinked]++
	case a.nccl:
		g.counts[countGraphUnlinked]++
		g.counts[countUnlinked]++
	default:
		g.counts[countGraphOther]++
	}
	if !a.nccl || !a.timed {
		return
	}
	gpu := g.gpuOf(a.Stream.Device)
	kernels := g.replays.kernels[gpu]
	g.replays.left[gpu] = max(g.replays.left[gpu], a.end)
	if i := slices.Index(kernels, a); i >= 0 {
		g.replays.kernels[gpu] = slices.Delete(kernels, i, i+1)
	}
}
