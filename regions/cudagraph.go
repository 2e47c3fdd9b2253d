// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// replays links the plans that replayed graphs bring to the kernels that graphs launched.
//
// Nothing names both: all kernels of a replay have the correlation id of the graph's launch, and the ids that were
// pushed when they were captured are gone. What tells is, first, the times: NCCL's stamps say when the plan ran, CUPTI
// when each kernel did, and a plan's kernel is the only one of NCCL's on that GPU that began and ended when it did.
// Second, where stamps are missing or not to be believed, the order within one launch of a graph: NCCL reports a plan in
// a callback of the graph that its kernel waits for (notes on the API, §3.5), so all plans reported since the launch
// before had ended belong to this one, in the order of its kernels. That needs as many plans as kernels, and launches
// that follow each other; else it says nothing.
//
// A kernel must also be able to be the plan's: not fewer blocks than the plan has channels, a name of the plan's function
// if it names one, and a node of the graph that has not been another captured plan's before. Where two kernels would do,
// none is linked. A wrong one is taken by its times only if the right one's record is missing while another communicator's
// kernel of the same function, on the same GPU, began and ended within slackNs of it, and no replay before has told the
// two apart; by order, if its record is missing while NCCL has run a kernel of the same function, between the same two
// launches, without a report.
type replays struct {
	kernels  map[int][]*activity // of NCCL's, by GPU, that are still to be written
	left     map[int]uint64      // by GPU, the end of those that have been
	reported map[int][]*plan     // replayed ones, by GPU, since then
	nodes    map[graphNode]capturedPlan
	plans    map[graphPlan]graphNode // the other way round
}

// graphNode names a kernel of a graph: as it was captured where CUPTI says so (13.4), else in the executable graph.
type graphNode struct {
	graph uint32
	node  uint64
}

// capturedPlan is what a node was linked to before: the captured call of the plan's first operation, which all its replays
// name.
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
	sureNodes = 3 // links after which a node's plan is believed without looking at its times
)

func newReplays() replays {
	return replays{
		kernels: make(map[int][]*activity), left: make(map[int]uint64), reported: make(map[int][]*plan),
		nodes: make(map[graphNode]capturedPlan), plans: make(map[graphPlan]graphNode),
	}
}

func nodeOf(k *cupti.Kernel) graphNode {
	if k.SourceGraphNode != 0 {
		return graphNode{0, k.SourceGraphNode}
	}
	return graphNode{k.Graph, k.GraphNode}
}

// replayed notes a plan that a graph brought again.
func (m *Model) replayed(p *plan) {
	if m.cuda == nil {
		return
	}
	r, gpu := &m.cuda.replays, p.comm.GPU
	list := slices.DeleteFunc(r.reported[gpu], func(q *plan) bool { return q.start < r.left[gpu] })
	if len(list) < maxNodes { // where no kernels of graphs are told of
		list = append(list, p)
	}
	r.reported[gpu] = list
}

// linkReplay links a replayed plan, with the times of its stamps if they are believed, as long as all kernels that ran
// then are still here.
func (m *Model) linkReplay(c *commRank, p *plan, when gpuclock.Interval, stamped bool) {
	if len(p.activities) > 0 { // with another plan of its launch
		return
	}
	linked := false
	switch {
	case p.ops[0].parent == 0:
	case stamped:
		linked = m.linkByTimes(c, p, when)
	default:
		linked = m.linkByOrder(c, p)
	}
	if !linked {
		m.cuda.counts[cuptiReplays]++
	}
}

func (m *Model) linkByTimes(c *commRank, p *plan, when gpuclock.Interval) bool {
	g := m.cuda
	if g.written+2*slackNs > when.End+m.activityHold() || when.Begin <= g.forced {
		return false
	}
	parent := p.ops[0].parent
	var found *activity
	rivals := 0
	for _, a := range g.replays.kernels[c.GPU] {
		if known := g.replays.nodes[nodeOf(a.record.(*cupti.Kernel))]; known.times >= sureNodes && known.parent != parent {
			continue
		}
		apart := max(distance(when.Begin, a.begin), distance(when.End, a.end))
		if apart > 2*slackNs+a.off {
			continue
		}
		rivals++
		if apart <= slackNs+a.off {
			found = a
		}
	}
	if rivals != 1 || found == nil || found.claimed || !g.replays.couldBe(p, found) {
		return false
	}
	g.replays.link(p, found)
	return true
}

// linkByOrder links all plans of the launch that a plan belongs to.
func (m *Model) linkByOrder(c *commRank, p *plan) bool {
	r := &m.cuda.replays
	kernels, after, ok := r.launchAround(c.GPU, p)
	if !ok {
		return false
	}
	var plans []*plan
	for _, q := range r.reported[c.GPU] {
		if end := kernels[len(kernels)-1].end; q.start > after && q.start < end {
			plans = append(plans, q)
		}
	}
	if len(plans) != len(kernels) || !slices.Contains(plans, p) {
		return false
	}
	slices.SortStableFunc(plans, func(a, b *plan) int { return cmp.Compare(a.start, b.start) })
	owner := make(map[string]*commRank) // by function: plans of one communicator rank keep their order, others need not
	once := make(map[uint64]bool)
	for i, q := range plans {
		a := kernels[i]
		function := functionIn(a.name)
		if of := owner[function]; of != nil && of != q.comm {
			return false
		}
		owner[function] = q.comm
		if len(q.ops) == 0 || q.ops[0].parent == 0 || once[q.ops[0].parent] || q.start > a.begin+a.off || !r.couldBe(q, a) {
			return false
		}
		once[q.ops[0].parent] = true
		if linked := len(q.activities) > 0; linked && q.activities[0] != a || a.claimed && a.planID != q.handle {
			return false
		}
	}
	for i, q := range plans {
		if !kernels[i].claimed {
			r.link(q, kernels[i])
		}
	}
	return true
}

// launchAround gives NCCL's kernels of the launch of a graph that a plan was reported in, in order, and when the launch
// before had ended; false unless that was before this one's kernels began.
func (r *replays) launchAround(gpu int, p *plan) (kernels []*activity, after uint64, ok bool) {
	launches := make(map[uint32][]*activity)
	for _, a := range r.kernels[gpu] {
		id := a.record.(*cupti.Kernel).Correlation
		launches[id] = append(launches[id], a)
	}
	after = r.left[gpu]
	for _, list := range launches {
		slices.SortFunc(list, func(a, b *activity) int { return cmp.Compare(a.begin, b.begin) })
		switch last := list[len(list)-1]; {
		case last.end <= p.start:
			after = max(after, last.end)
		case kernels == nil || list[0].begin < kernels[0].begin:
			kernels = list
		}
	}
	if kernels == nil || after > kernels[0].begin {
		return nil, 0, false
	}
	for _, list := range launches {
		if list[0] != kernels[0] && list[0].begin < kernels[len(kernels)-1].end && list[len(list)-1].end > kernels[0].begin {
			return nil, 0, false
		}
	}
	return kernels, after, true
}

// link links a plan to its kernel.
func (r *replays) link(p *plan, a *activity) {
	if len(r.nodes) >= maxNodes {
		clear(r.nodes)
		clear(r.plans)
	}
	node := nodeOf(a.record.(*cupti.Kernel))
	parent := p.ops[0].parent
	r.nodes[node], r.plans[graphPlan{node.graph, parent}] = capturedPlan{parent, r.nodes[node].times + 1}, node
	a.claimed, a.planID, a.parent = true, p.handle, p.onlyOperation()
	p.activities = append(p.activities, a)
}

// couldBe tells whether a kernel has as many blocks as the plan has channels, and no other function's name, and whether
// no other plan has been linked to its node, nor this one to another.
func (r *replays) couldBe(p *plan, a *activity) bool {
	node := nodeOf(a.record.(*cupti.Kernel))
	parent := p.ops[0].parent
	known := r.nodes[node]
	if at, placed := r.plans[graphPlan{node.graph, parent}]; known.times > 0 && known.parent != parent || placed && at != node {
		return false
	}
	var channels [256]bool
	n := uint32(0)
	for _, k := range p.stamps.Kernels {
		if !channels[k.Channel] {
			channels[k.Channel] = true
			n++
		}
	}
	if a.record.(*cupti.Kernel).Grid[0] < n {
		return false
	}
	named := functionIn(a.name)
	return named == "" || slices.ContainsFunc(p.ops, func(op *operation) bool {
		return named == op.name || op.p2p && named == "SendRecv"
	})
}

// functionIn is the NCCL function that a kernel's name has in it: "AllReduce" of ncclDevKernel_AllReduce_Sum_f32_RING_LL. A
// kernel can carry out more than its name says only where that is Generic. "" if there is none.
func functionIn(name string) string {
	_, rest, ok := strings.Cut(name, "Kernel_")
	if !ok {
		return ""
	}
	function, _, _ := strings.Cut(rest, "_")
	if CollectiveNamed(function) == nil && function != "SendRecv" {
		return ""
	}
	return function
}

// addReplayed keeps a kernel of a graph for its plan.
func (m *Model) addReplayed(g *cuda, a *activity) {
	gpu := m.gpuOf(g, a.id.device)
	g.replays.kernels[gpu] = append(g.replays.kernels[gpu], a)
}

// leaveReplayed counts what became of a kernel of a graph, which nothing can be linked to from here on.
func (m *Model) leaveReplayed(g *cuda, a *activity) {
	switch {
	case a.claimed:
		g.counts[cuptiGraphLinked]++
	case a.nccl:
		g.counts[cuptiGraphUnlinked]++
		g.counts[cuptiUnlinked]++
	default:
		g.counts[cuptiGraphOther]++
	}
	if !a.nccl || !a.timed {
		return
	}
	gpu := m.gpuOf(g, a.id.device)
	kernels := g.replays.kernels[gpu]
	g.replays.left[gpu] = max(g.replays.left[gpu], a.end)
	if i := slices.Index(kernels, a); i >= 0 {
		g.replays.kernels[gpu] = slices.Delete(kernels, i, i+1)
	}
}
