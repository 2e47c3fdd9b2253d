// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"slices"
	"strings"

	"ncclotf2/cupti"
)

// replays links the plans that replayed graphs bring to the kernels that graphs launched.
//
// Nothing names both: all kernels of a replay have the correlation id of the graph's launch, and the ids that were
// pushed when they were captured are gone. Order alone could link wrongly whenever a record is missing. So the times
// decide: NCCL's stamps say when the plan ran, CUPTI when each kernel did, and a plan's kernel is the only one of
// NCCL's on that GPU that began and ended when it did. It must also be able to be: not fewer blocks than the plan has
// channels, a name of the plan's function if it names one, and a node of the graph that has not been another captured
// plan's before. Where two kernels would do, none is linked. A wrong one is taken only if the right one's record is missing
// while another communicator's kernel of the same function, on the same GPU, began and ended within slackNs of it, and
// no replay before has told the two apart.
type replays struct {
	kernels map[int][]*activity // of NCCL's, by GPU, that are still to be written
	nodes   map[graphNode]capturedPlan
	plans   map[graphPlan]graphNode // the other way round
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
	return replays{kernels: make(map[int][]*activity), nodes: make(map[graphNode]capturedPlan), plans: make(map[graphPlan]graphNode)}
}

func nodeOf(k *cupti.Kernel) graphNode {
	if k.SourceGraphNode != 0 {
		return graphNode{0, k.SourceGraphNode}
	}
	return graphNode{k.Graph, k.GraphNode}
}

// linkReplay links a replayed plan that ran from begin to end by NCCL's stamps, as long as all kernels that ran then are
// still here.
func (m *Model) linkReplay(c *commRank, p *plan, begin, end uint64) {
	g := m.cuda
	parent := p.ops[0].parent
	if parent == 0 || g.written+2*slackNs > end+m.activityHold() || begin <= g.forced {
		g.counts[cuptiReplays]++
		return
	}
	var found *activity
	rivals := 0
	for _, a := range g.replays.kernels[c.GPU] {
		if known := g.replays.nodes[nodeOf(a.record.(*cupti.Kernel))]; known.times >= sureNodes && known.parent != parent {
			continue
		}
		apart := max(distance(begin, a.begin), distance(end, a.end))
		if apart > 2*slackNs+a.off {
			continue
		}
		rivals++
		if apart <= slackNs+a.off {
			found = a
		}
	}
	if rivals != 1 || found == nil || found.claimed || !p.couldBe(found) {
		g.counts[cuptiReplays]++
		return
	}
	node := nodeOf(found.record.(*cupti.Kernel))
	plan := graphPlan{node.graph, parent}
	known := g.replays.nodes[node]
	at, placed := g.replays.plans[plan]
	if known.times > 0 && known.parent != parent || placed && at != node {
		g.counts[cuptiReplays]++
		return
	}
	if len(g.replays.nodes) >= maxNodes {
		clear(g.replays.nodes)
		clear(g.replays.plans)
	}
	g.replays.nodes[node], g.replays.plans[plan] = capturedPlan{parent, known.times + 1}, node
	found.claimed, found.planID, found.parent = true, p.handle, p.onlyOperation()
	p.activities = append(p.activities, found)
}

// couldBe tells whether a kernel has as many blocks as the plan has channels, and no other function's name.
func (p *plan) couldBe(a *activity) bool {
	var channels [256]bool
	n := uint32(0)
	for _, s := range p.spans {
		if !channels[s.channel] {
			channels[s.channel] = true
			n++
		}
	}
	if blocks := a.record.(*cupti.Kernel).Grid[0]; blocks < n {
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
	if functions[function] == nil && function != "SendRecv" {
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
	if i := slices.Index(kernels, a); i >= 0 {
		g.replays.kernels[gpu] = slices.Delete(kernels, i, i+1)
	}
}
