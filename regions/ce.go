// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Collectives of the copy engines: CeColl becomes an operation; its CeSync and CeBatch become regions on the thread
// that enqueues them (docs/nccl-profiler-api.md §3.2).

// engineCopies is how the copy engines carry out an operation.
type engineCopies struct {
	syncStrategy string
	batches      uint32
	byEngines    bool // there was a CeColl event
}

// ceCall is an open CeColl event: a thread enqueues a collective that the GPU's copy engines carry out (API v6 and
// later). One thread makes it and its parts, strictly nested.
type ceCall struct {
	handle uint64
	comm   *commRank
	plan   *plan // nil if it was captured into a graph, whose replays NCCL does not report
	spans  []span
	open   []cePart
}

// cePart is an open CeSync or CeBatch event.
type cePart struct {
	handle uint64
	span   int // in the call's spans
}

func (ts *threads) startCE(th *thread, t uint64, r *shm.Record) {
	comm := ts.ranks.rankOf(r.Aux)
	if comm == nil {
		ts.countOddity(oddForeign)
		ts.loseUndrawn(r.Type)
		return
	}
	ts.closeCE(th, t, true)
	call := ts.ops.takeCall(r.Arg)
	th.ce = ts.newCE(r.Handle, comm, r.Func, t, r.Arg)
	if call != nil && call.graph || r.Arg&shm.CapturedBit != 0 {
		ts.ops.captureOnly(comm, t)
	} else {
		p := &plan{comm: comm, handle: r.Handle, enqueue: enqueueing{start: t}}
		p.addOperation(&operation{
			handle: r.Handle, parent: r.Arg, plan: p, call: call, task: true, seq: r.Seq, stopped: true,
			arguments: argumentsOf(r), buffers: buffers{send: r.SendBuff, recv: r.RecvBuff},
			copies: engineCopies{byEngines: true, syncStrategy: r.SyncStrategy, batches: r.NumBatches},
		})
		th.ce.plan = p
		comm.addPlan(p, t)
	}
}

func (ts *threads) newCE(handle uint64, comm *commRank, function string, t, parent uint64) *ceCall {
	region := ts.defs.regionRef("Enqueue CE "+function, GroupEnqueue, otf2.RegionRoleFunction)
	return &ceCall{handle: handle, comm: comm,
		spans: []span{{start: t, stop: t, region: region, by: describerFunc(func(a *otf2.AttributeList) {
			a.Uint64(AttrEventID, handle)
			if parent != 0 {
				a.Uint64(AttrParentID, parent)
			}
		})}}}
}

func (ts *threads) stopCE(th *thread, t uint64, r *shm.Record) {
	if th.ce == nil || th.ce.handle != r.Handle {
		ts.countOddity(oddStrayStop)
		return
	}
	ts.closeCE(th, t, false)
}

// closeCE ends the thread's copy-engine call, if it has one.
func (ts *threads) closeCE(th *thread, t uint64, unfinished bool) {
	ce := th.ce
	if ce == nil {
		return
	}
	th.ce = nil
	if unfinished {
		ts.countOddity(oddUnfinishedCall)
	}
	for _, part := range ce.open {
		ce.spans[part.span].stop = t
	}
	ce.spans[0].stop = t
	ts.onThread(th, ce.comm, ce.spans)
	if p := ce.plan; p != nil {
		ts.ops.endPlan(p, t)
	}
}

func (ts *threads) startCEPart(th *thread, t uint64, r *shm.Record) {
	ce := th.ce
	if ce == nil || ce.handle != r.Arg {
		ts.countOddity(oddLateChild)
		return
	}
	name := "CE sync"
	bytes, handle := r.Bytes, r.Handle
	if r.Type == shm.EventCeBatch {
		name = "CE batch"
	}
	region := ts.defs.regionRef(name, GroupEnqueue, otf2.RegionRoleFunction)
	ce.open = append(ce.open, cePart{r.Handle, len(ce.spans)})
	ce.spans = append(ce.spans, span{start: t, stop: t, region: region, by: describerFunc(func(a *otf2.AttributeList) {
		if bytes != 0 {
			a.Uint64(AttrBytes, bytes)
		}
		a.Uint64(AttrEventID, handle)
	})})
}

func (ts *threads) stopCEPart(th *thread, t uint64, r *shm.Record) {
	if ce := th.ce; ce != nil {
		for i := len(ce.open) - 1; i >= 0; i-- {
			if ce.open[i].handle != r.Handle {
				continue
			}
			for _, part := range ce.open[i:] { // those inside have ended, too
				ce.spans[part.span].stop = t
			}
			ce.open = ce.open[:i]
			return
		}
	}
	ts.countOddity(oddStrayStop)
}

// captureOnly counts, and marks once for each communicator rank, work that NCCL reports at its capture into a graph
// only, not when the graph runs.
func (ops *operations) captureOnly(c *commRank, t uint64) {
	ops.countOddity(oddCaptureOnly)
	if !c.reports.silentGraphs {
		c.reports.silentGraphs = true
		ops.addMarker(c.rows.rank, t, SeverityLow, "Graph replays not seen",
			c.label+": work was captured into a CUDA graph whose replays NCCL does not report")
	}
}
