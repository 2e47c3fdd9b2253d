// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Calls for which NCCL reports no operation: they become operations of their own.

// resolveCalls turns calls of groups before the given one that no plan took up into operations of their own: broadcasts
// since 2.29, symmetric kernels, copy-engine collectives. They follow the plans of their own group and precede those of
// later ones, as on all members.
func (ops *operations) resolveCalls(c *commRank, before int64) {
	place := len(c.queue.plans)
	for place > 0 && before != noGroup && (!c.queue.plans[place-1].enqueue.stopped ||
		c.queue.plans[place-1].measurement != 0) {
		place--
	}
	if place > 0 && before != noGroup {
		place-- // before the plan that just ended
	}
	if before == noGroup && place > 0 && c.queue.plans[place-1].measurement == otf2.MeasurementOff {
		place--
	}

	var alone []*plan
	for call := range c.calls.callsBefore(before) {
		if before != noGroup && !call.hasReturned() {
			continue
		}
		c.calls.removeCall(call)
		ops.dropCall(call)
		if call.p2p { // a message to oneself with one buffer: dropped by NCCL (docs/nccl-profiler-api.md §4.3)
			ops.countOddity(oddDroppedMessage)
			continue
		}
		stop := call.stop
		if call.group != nil && call.group.stopped {
			stop = call.group.stop
		}
		p := &plan{comm: c, callOnly: true, completion: completion{at: stop},
			enqueue: enqueueing{start: call.start, stop: stop, stopped: true}}
		p.addOperation(&operation{parent: call.handle, plan: p, call: call, arguments: call.arguments, stopped: true})
		alone = append(alone, p)
	}
	if len(alone) == 0 {
		return
	}
	if len(c.queue.plans) == 0 {
		c.queue.headAt = alone[0].enqueue.stop
	}
	if before == noGroup {
		ops.mergeAlone(c, alone, place) // the last plans have not been seen to stop
		return
	}
	c.queue.plans = slices.Insert(c.queue.plans, place, alone...)
	places := make([]int, len(alone))
	for i := range places {
		places[i] = place + i
	}
	ops.timing.countsAlone(c, places)
}

// mergeAlone inserts calls that have become operations of their own into a queue: each before the first plan with
// operations of a later group, at the latest before the plan at index last.
func (ops *operations) mergeAlone(c *commRank, alone []*plan, last int) {
	slices.SortStableFunc(alone, func(a, b *plan) int { return cmp.Compare(a.latestGroup(), b.latestGroup()) })
	rest := c.queue.plans
	c.queue.plans = make([]*plan, 0, len(rest)+len(alone))
	places := make([]int, len(alone))
	for i, p := range alone {
		for last > 0 && rest[0].latestGroup() <= p.latestGroup() {
			c.queue.plans, rest = append(c.queue.plans, rest[0]), rest[1:]
			last--
		}
		places[i] = len(c.queue.plans)
		c.queue.plans = append(c.queue.plans, p)
	}
	c.queue.plans = append(c.queue.plans, rest...)
	ops.timing.countsAlone(c, places)
}
