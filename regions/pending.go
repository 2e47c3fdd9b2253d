// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/takeover"
)

// Operations that have begun and not ended, for shard.json: what `report --hang` asks for, and what is left of a
// communicator rank that is finalized before its operations end.

// listPending lists what has begun and not ended, communicator by communicator in issue order.
func (rs *ranks) listPending() []description.Pending {
	out := slices.Clone(rs.left)
	for _, c := range rs.live {
		if !c.life.final {
			out = c.underWay(append(out, c.overtaken...))
		}
	}
	slices.SortStableFunc(out, func(a, b description.Pending) int { return cmp.Compare(a.Comm, b.Comm) })
	return out
}

// ordinalCounter returns a function for the ordinals of operations that are not written yet, to be called in issue
// order.
func (c *commRank) ordinalCounter() func(key string) uint64 {
	next := make(map[string]uint64)
	return func(key string) uint64 {
		n, known := next[key]
		if s := c.ordinals.sequences[key]; s != nil && !known {
			n = s.Count
		}
		next[key] = n + 1
		return n
	}
}

// underWay adds what a communicator rank has begun and not ended, in issue order.
func (c *commRank) underWay(out []description.Pending) []description.Pending {
	number := c.ordinalCounter()
	for _, p := range c.queue.plans {
		if p.captureOnly {
			continue
		}
		if p.gone != nil {
			for key, marks := range p.gone.operations {
				for range len(marks) / takeover.MarkSize {
					number(key)
				}
			}
		}
		for _, op := range p.ops {
			ordinal := number(op.sequenceKey())
			if p.completion.at == 0 {
				out = append(out, op.describePending(ordinal))
			}
		}
	}
	for call := range c.calls.allCalls() {
		// A message's peer is unknown before its task begins, so it is numbered among all calls of its function.
		state := "called"
		if !call.hasReturned() {
			state = "calling"
		}
		out = append(out, description.Pending{
			Comm: c.index, Function: call.name, Ordinal: number(call.name), Since: call.start, State: state,
			Count: call.count, Datatype: call.datatype, Root: int(call.root), Stream: call.stream,
		})
	}
	return out
}

func (op *operation) describePending(ordinal uint64) description.Pending {
	p := op.plan
	since, state, way := p.enqueue.start, "enqueued", p.underWay()
	if op.call != nil && !op.call.graph {
		since = min(since, op.call.start)
	}
	if way&Running != 0 {
		state = "running"
	}
	stream := op.stream
	if op.call != nil {
		stream = op.call.stream
	}
	count, datatype := op.requestedElements()
	return description.Pending{
		Comm: p.comm.index, Function: op.sequenceKey(), Ordinal: ordinal, Since: since, State: state,
		Begun: way&Begun != 0, LastNet: op.net.lastPhase,
		Count: count, Datatype: datatype, Root: int(op.root), Stream: stream, Transfers: op.openTransfers(),
	}
}

// rememberOvertaken remembers a plan that is written although its end was not seen, until a later one on the
// communicator rank has ended. If kernels are not reported at all, that is no evidence.
func (c *commRank) rememberOvertaken(p *plan) {
	if !c.reports.kernelsSeen || p.captureOnly || len(c.overtaken) >= maxOvertaken {
		return
	}
	number := c.ordinalCounter()
	for _, op := range p.ops {
		c.overtaken = append(c.overtaken, op.describePending(number(op.sequenceKey())))
	}
}

// maxOvertaken bounds the operations remembered by overtake; the oldest matter.
const maxOvertaken = 64

// maxLeft bounds the incomplete operations of finalized communicator ranks; the oldest matter.
const maxLeft = 4096

// keepIncomplete remembers what is incomplete when a communicator rank is finalized, as after ncclCommAbort.
func (rs *ranks) keepIncomplete(c *commRank) {
	left := c.underWay(c.overtaken)
	for i := range left {
		left[i].Left = true
	}
	rs.left = append(rs.left, left[:min(len(left), maxOvertaken, maxLeft-len(rs.left))]...)
	c.overtaken = nil
}
