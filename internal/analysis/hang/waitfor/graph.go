// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
)

// The wait-for graph of a hanging job. The shards' tables of pending operations say which process is in which
// operation; CUDA guarantees that operations on one stream run one after the other.

// edge says why an operation waits for another one: a member has not come to it, and is in the other one.
type edge struct {
	to     *operation
	member *part // of the operation that waits
	// queued: the member has called the waiting operation after the other one, on the same stream as far as is known.
	// Otherwise the member has not called it.
	queued bool
}

// graph holds the operations of a job that are not complete, and what they wait for.
type graph struct {
	communicators []*progress.Communicator
	operations    []*operation
	queues        map[*progress.Process][]queued // the operations that each process is in, in the order of their calls
}

// queued is an operation that a process is in.
type queued struct {
	of   *operation
	part *part
}

func newGraph(j *progress.Job) *graph {
	g := &graph{communicators: j.Communicators, queues: make(map[*progress.Process][]queued)}
	for _, c := range j.Communicators {
		g.operations = append(g.operations, operationsOf(c)...)
	}
	for _, o := range g.operations {
		for i := range o.parts {
			if p := &o.parts[i]; p.pending != nil || p.since > 0 && len(o.with(missing)) > 0 {
				g.queues[p.member.Process] = append(g.queues[p.member.Process], queued{o, p})
			}
		}
	}
	for _, q := range g.queues {
		slices.SortStableFunc(q, func(a, b queued) int {
			return cmp.Compare(a.part.since, b.part.since)
		})
	}
	for _, o := range g.operations {
		for i := range o.parts {
			g.link(o, &o.parts[i])
		}
	}
	return g
}

// link adds edges for whatever keeps a member from an operation.
func (g *graph) link(o *operation, p *part) {
	switch p.state {
	case missing:
		for _, q := range g.queues[p.member.Process] {
			if q.of != o && p.member.SameGPU(q.part.member) {
				o.waits = append(o.waits, edge{to: q.of, member: p})
				return
			}
		}
	case called, running:
		if p.pending == nil || !p.member.Process.Ends {
			return
		}
		for _, q := range g.queues[p.member.Process] {
			if q.part == p {
				return
			}
			if p.member.SameGPU(q.part.member) && behind(p, q.part) {
				o.waits = append(o.waits, edge{to: q.of, member: p, queued: true})
				return
			}
		}
	}
}

// behind reports whether an operation p of a process has to wait for one that the process called before it. On one
// stream it has to, even while its transfers are being set up (p then appears as running, because NCCL's proxy thread
// begins with them at the call). If a stream is not known it is taken to be the same one, unless p is running.
func behind(p, before *part) bool {
	if before.pending == nil {
		return false
	}
	if a, b := p.pending.Stream, before.pending.Stream; a != 0 && b != 0 {
		return a == b
	}
	return p.state == called
}

// cycles lists the cycles of the graph, each once, with the operations in the order in which they wait, and ends, the
// operations that wait for no other one.
func (g *graph) cycles() (cycles [][]edge, ends []*operation) {
	const (
		unseen = iota
		open
		closed
	)
	seen := make(map[*operation]int)
	var way []edge // the edges into each open operation but the first
	var visit func(o *operation)
	visit = func(o *operation) {
		seen[o] = open
		for _, e := range o.waits {
			way = append(way, e)
			switch seen[e.to] {
			case unseen:
				visit(e.to)
			case open:
				at := len(way) - 1
				for at > 0 && way[at-1].to != e.to {
					at--
				}
				if !known(cycles, way[at:]) {
					cycles = append(cycles, slices.Clone(way[at:]))
				}
			}
			way = way[:len(way)-1]
		}
		seen[o] = closed
	}
	for _, o := range g.operations {
		if seen[o] == unseen {
			visit(o)
		}
		if len(o.waits) == 0 {
			ends = append(ends, o)
		}
	}
	return cycles, ends
}

// known reports whether a cycle of the same operations is already in cycles.
func known(cycles [][]edge, c []edge) bool {
	return slices.ContainsFunc(cycles, func(o []edge) bool {
		return len(o) == len(c) && !slices.ContainsFunc(c, func(e edge) bool {
			return !slices.ContainsFunc(o, func(f edge) bool { return f.to == e.to })
		})
	})
}
