// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The queues of plans: each communicator rank writes its plans in issue order, in which its members see them, and each
// plan waits until it is complete, until a limit in time, or until too much memory waits.

// planQueue holds the plans of a communicator rank that are not written yet.
type planQueue struct {
	plans    []*plan // in issue order
	headAt   uint64  // when the queue's head became its head
	issued   uint64  // plans so far
	enqueued uint64  // when the last of them had been enqueued
	followed int     // plans at the head of the queue that followPlans has passed on
	bytes    int     // memory of the queue, see plan.countBytes
	allBytes *int    // memory of all queues of the process
}

// maxUnseen and maxQueue bound the plans that wait: of a communicator rank without any KernelCh event so far, and of
// any.
const (
	maxUnseen = 4096
	maxQueue  = 65536
)

// maxKernelTimeouts is the number of plans in a row without any KernelCh after which a communicator rank is not
// expected to have them.
const maxKernelTimeouts = 3

// maxHeld bounds the memory (bytes) of complete operations that wait for a better mapping of the GPU's clock: beyond
// it, those of communicator ranks with more than their share are written at once, and counted. With incomplete
// operations included, the bound is twice as high. The bounds are not checked at every operation: before the next
// check, memory may grow by mostRelief, and by one group of calls of any size. Variable for the tests.
var maxHeld = 48 << 20

func mostRelief() int { return maxHeld / 8 }

// exceedsShare reports whether more than a bound (bytes) waits, and of this communicator rank more than its share.
func (ops *operations) exceedsShare(c *commRank, bound int) bool {
	return ops.ranks.bytes > bound && c.queue.bytes > bound/len(ops.ranks.live)
}

// writeExcess writes complete operations if too much waits. Like everything the model writes, it depends on the records
// alone.
func (ops *operations) writeExcess(now uint64) {
	for _, c := range ops.ranks.live {
		if !c.life.final {
			ops.writeQueue(c, now, drainDue)
		}
	}
	ops.relieveAt = max(maxHeld, ops.ranks.bytes) + mostRelief()
}

// isOverdue reports whether a plan at the head of the queue has waited long enough: for children that have not begun,
// until the limit; for these and for network traffic that does not end, until a later plan of the communicator, which
// runs after it, has been complete for a while. While a plan is known to run, its age says nothing: it may hang.
func (ops *operations) isOverdue(c *commRank, p *plan, now uint64) bool {
	if len(c.queue.plans) > maxQueue || len(c.queue.plans) > 1 && ops.exceedsShare(c, 2*maxHeld) {
		return true
	}
	if !p.enqueue.stopped || p.gpu.open > 0 {
		return false
	}
	if p.net.open == 0 && now > max(p.enqueue.stop, c.queue.headAt)+ops.opts.operationLimit {
		return true
	}
	for _, later := range c.queue.plans[1:] {
		if !later.callOnly && later.completion.at != 0 && (len(later.gpu.stamps.Kernels) > 0 || later.net.stop != 0) {
			return now > later.completion.at+ops.opts.gpuHold/2
		}
	}
	return false
}

// Modes of drain.
type drainMode int

const (
	drainDue      drainMode = iota // complete, and held long enough for the GPU's clock
	drainComplete                  // complete
	drainEnded                     // everything that does not wait for CUPTI: NCCL has reported all
	drainAll                       // everything: no more records will come
)

// writeQueue writes the plans at the head of a communicator rank's queue.
func (ops *operations) writeQueue(c *commRank, now uint64, mode drainMode) {
	if !c.life.announced && mode < drainEnded {
		return // its name and rank are not known yet (API v1 … v3)
	}
	c.life.ending = mode >= drainEnded
	if len(c.queue.plans) > 0 {
		c.gpu.stamps.Clock.FitLine(mode != drainDue)
	}
	for len(c.queue.plans) > 0 {
		p := c.queue.plans[0]
		if p.measurement != 0 {
			// Plans may come that precede it, see addPlan.
			if mode == drainDue && len(c.queue.plans) == 1 && p.measurement == otf2.MeasurementOff &&
				now < p.enqueue.start+ops.opts.operationLimit {
				return
			}
			ops.timing.followPlans(c)
			ops.writer.writeEdge(c, p)
			ops.removeHead(c, now, p)
			continue
		}
		ops.noteCompletion(p, now)
		if p.completion.at == 0 {
			if mode < drainEnded && !ops.isOverdue(c, p, now) {
				return
			}
			if mode == drainAll {
				p.completion.underWay = p.underWay()
			} else {
				c.rememberOvertaken(p)
			}
			p.completion.forced = true
			p.completion.at = now
			if len(p.gpu.stamps.Kernels) == 0 {
				c.reports.kernelTimeouts++
			}
		} else if mode == drainDue && now < p.completion.at+ops.holdTime(p) ||
			(mode == drainDue || mode == drainEnded) &&
				now < p.completion.at+ops.timing.kernelHold(c, p) {
			if !ops.exceedsShare(c, maxHeld) {
				return
			}
			ops.oddities[oddShortHold] += uint64(len(p.ops))
		}
		if ops.mayHaveNetwork(p) && p.net.stop == 0 {
			c.reports.quietPlans++
		}
		if len(p.gpu.stamps.Kernels) > 0 {
			c.reports.kernelTimeouts = 0
		}
		if len(p.gpu.stamps.Kernels) > 0 && !p.completion.forced {
			c.overtaken = nil // kernels of a communicator run one after the other
		}
		ops.timing.followPlans(c)
		c.loseGone(p)
		if !p.captureOnly {
			ops.writer.writePlan(c, p, now)
		}
		if p.counted != 0 { // counted as outstanding, but it did not run
			ops.writer.metrics.endOutstanding(c, c.rows.rank, p, c.rows.rank.w.LastTime())
		}
		ops.removeHead(c, now, p)
	}
}

// holdTime returns how long a complete plan waits: until the GPU's clock is known better; shorter if only its network
// traffic shows when it ran, where one channel's may begin after others have ended.
func (ops *operations) holdTime(p *plan) uint64 {
	switch {
	case len(p.gpu.stamps.Kernels) > 0:
		return ops.opts.gpuHold
	case p.net.stop != 0:
		return ops.opts.gpuHold / 8
	}
	return 0
}

// removeHead removes the head of a queue: no event refers to its operations by handle any more.
func (ops *operations) removeHead(c *commRank, now uint64, p *plan) {
	ops.changes++
	c.outstanding.removePlan(p)
	c.queue.plans[0] = nil
	c.queue.plans = c.queue.plans[1:]
	c.queue.followed = max(c.queue.followed, 1) - 1
	for _, op := range p.ops {
		delete(ops.byHandle, op.handle)
	}
	for _, o := range p.net.proxies {
		o.op = nil
	}
	p.leaveSums(now)
	delete(ops.plans, p.handle)
	p.tellWritten()
	p.memory.released = true
	c.queue.bytes -= p.memory.bytes
	ops.ranks.bytes -= p.memory.bytes
	c.queue.headAt = max(c.queue.headAt, min(now, p.completion.at))
}

// addPlan adds a plan to the queue of its communicator rank. Plans that come after recording was switched off belong to
// calls before that, so they precede the switch.
func (c *commRank) addPlan(p *plan, t uint64) {
	if len(c.queue.plans) == 0 {
		c.queue.headAt = t
	}
	c.queue.issued++
	p.gpu.stamps.Number, p.enqueue.floor = c.queue.issued, c.queue.enqueued
	if n := len(c.queue.plans); n > 0 && c.queue.plans[n-1].measurement == otf2.MeasurementOff && p.measurement == 0 {
		c.queue.plans = slices.Insert(c.queue.plans, n-1, p)
		c.queue.followed = min(c.queue.followed, n-1)
		return
	}
	c.queue.plans = append(c.queue.plans, p)
}
