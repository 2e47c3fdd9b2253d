// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
	"github.com/nccl-otf2/nccl-otf2/regions/gpuclock"
)

// Operations as events: the region of a plan, whether a collective is blocking or a request, and its sent and received
// bytes. docs/internals.md, "Operations", maps NCCL's events to OTF2's records.

// planWriter writes plans and their operations onto the rows of communicator ranks and their channels.
type planWriter struct {
	*board
	ranks   *ranks
	cuda    *cuda.Recorder
	timing  *timing
	metrics *metrics
	ends    []operationEnd // of the plan that is being written; reused memory
}

func newPlanWriter(b *board, rs *ranks, recorder *cuda.Recorder, ti *timing, m *metrics) *planWriter {
	return &planWriter{board: b, ranks: rs, cuda: recorder, timing: ti, metrics: m}
}

// writePlan writes one plan onto the location of its communicator rank, and counts its operations.
func (pw *planWriter) writePlan(c *commRank, p *plan, now uint64) {
	if len(p.ops) == 0 {
		return
	}
	when, source, gpuSource := pw.timing.planTimes(c, p, now)
	if p.completion.forced {
		pw.countOddity(oddIncompleteOperation)
	}
	loc := pw.rankLocation(c)
	if loc == nil {
		for _, op := range p.ops {
			if op.task {
				pw.loseUndrawn(op.eventType())
			}
		}
		return
	}
	pw.process.Comms[c.index].Location = int(loc.Number)
	pw.createComm(when.Begin, c)
	enter := loc.raiseTime(when.Begin)
	leave := max(enter, otf2.Timestamp(when.End))

	region, composite := pw.planRegion(c, p)
	a := pw.planAttributes(c, p, when, source, gpuSource)
	pw.metrics.beginOutstanding(c, loc, p, enter)
	pw.keepError(loc.w.Enter(enter, a, region))
	ends := pw.beginOperations(c, loc, p, enter)
	if composite {
		pw.sources[source]++
	} else {
		pw.sources[source] += uint64(len(p.ops))
	}
	shown := source != TimingEnqueue && pw.metrics.beginBandwidth(c, loc, p, when.Begin, when.End)
	stamped := timesAreStamps(p, source, gpuSource)
	if stamped {
		pw.writeKernelPhases(c, loc, p, enter, leave)
	}
	pw.metrics.endOutstanding(c, loc, p, leave)
	for i := range ends {
		pw.keepError(ends[i].write(loc.w, leave, otf2.CommRef(c.index), &ends[i]))
	}
	if shown {
		pw.metrics.endBandwidth(loc, leave)
	}
	pw.keepError(loc.w.Leave(leave, nil, region))
	if pw.opts.Channels {
		pw.writeChannels(c, p, region, stamped)
	}
}

// timesAreStamps reports whether a plan's times are NCCL's stamps.
func timesAreStamps(p *plan, source, gpuSource string) bool {
	return source == TimingGPU && gpuSource != sourceCUPTI && p.importedTimes() == nil
}

// planAttributes add the description of a plan, and of its operation if it has only one.
func (pw *planWriter) planAttributes(c *commRank, p *plan, when gpuclock.Interval, source,
	gpuSource string) *otf2.AttributeList {
	single := len(p.ops) == 1
	a := pw.emptyAttributes()
	if single {
		pw.operationAttributes(a, c, p.ops[0])
	}
	a.String(AttrTimingSource, pw.defs.stringRef(source))
	if !single && p.compositeFunction(c) == nil { // a function that NCCL made of messages is one operation
		a.Uint32(AttrOperations, uint32(len(p.ops)))
	}
	if p.statesUncertainty(source) {
		a.Uint64(AttrUncertainty, when.Uncertainty)
	}
	if n := p.gpu.stamps.Realigned; n > 0 && timesAreStamps(p, source, gpuSource) {
		a.Uint32(attrRealigned, uint32(n))
	}
	if timesAreStamps(p, source, gpuSource) && p.endsEarly() {
		a.Uint8(AttrEndsEarly, 1)
		if last := p.lastGiven(); last > when.End {
			a.Uint64(AttrGPULast, last-when.Begin)
		}
	}
	pw.timing.kernelAttributes(a, p, gpuSource)
	p.turnAttributes(a, when, source)
	if slices.ContainsFunc(a.Values(), func(v otf2.AttributeValue) bool { return v.ID == AttrEndsEarly }) {
		pw.early += uint64(len(p.ops))
	}
	if p.graph {
		a.Uint8(AttrGraph, 1)
	}
	if single {
		if s := p.launchStream(); s != nil {
			a.Uint64(AttrStream, *s)
		}
	}
	unfinished := uint8(p.completion.underWay)
	if p.completion.forced && (!p.enqueue.stopped || p.completion.openTasks > 0 || p.gpu.open > 0) {
		unfinished |= 1
	}
	if unfinished != 0 {
		a.Uint8(AttrUnfinished, unfinished)
	}
	return a
}

// beginOperations writes the begins of a plan's operations and returns their ends.
func (pw *planWriter) beginOperations(c *commRank, loc *location, p *plan, enter otf2.Timestamp) []operationEnd {
	ends := pw.ends[:0]
	for _, op := range p.ops {
		var a *otf2.AttributeList // the plan's region describes its only operation
		if len(p.ops) > 1 {
			a = pw.emptyAttributes()
			pw.operationAttributes(a, c, op)
		}
		if e := pw.beginOperation(c, loc, op, enter, a); e.write != nil {
			ends = append(ends, e)
		}
		if c.NRanks == 0 {
			pw.countOddity(oddUnknownCommSize)
		}
	}
	pw.ends = ends
	return ends
}

// operationEnd is what is known of the end of an operation at its begin.
type operationEnd struct {
	write          func(w EventWriter, t otf2.Timestamp, comm otf2.CommRef, e *operationEnd) error
	op             otf2.CollectiveOp
	peer           uint32 // or root
	sent, received uint64
	request        uint64
}

// Ends of operations.
var (
	endSend = func(w EventWriter, t otf2.Timestamp, _ otf2.CommRef, e *operationEnd) error {
		return w.MpiIsendComplete(t, nil, e.request)
	}
	endReceive = func(w EventWriter, t otf2.Timestamp, comm otf2.CommRef, e *operationEnd) error {
		return w.MpiIrecv(t, nil, e.peer, comm, 0, e.received, e.request)
	}
	endCollective = func(w EventWriter, t otf2.Timestamp, comm otf2.CommRef, e *operationEnd) error {
		return w.MpiCollectiveEnd(t, nil, e.op, comm, e.peer, e.sent, e.received)
	}
	endRequest = func(w EventWriter, t otf2.Timestamp, comm otf2.CommRef, e *operationEnd) error {
		return w.NonBlockingCollectiveComplete(t, nil, e.op, comm, e.peer, e.sent, e.received, e.request)
	}
)

// planRegion returns the region of a plan. It is named after its operation; after the application's function, if NCCL
// made sends and receives of it; else "Group". The second is one operation, of messages.
func (pw *planWriter) planRegion(c *commRank, p *plan) (region otf2.RegionRef, composite bool) {
	if f := p.compositeFunction(c); f != nil {
		return pw.defs.regionRef(f.Name, GroupCollectives, f.Role), true
	}
	group, role := GroupPointToPoint, otf2.RegionRolePoint2Point
	for _, op := range p.ops {
		if !op.p2p {
			group, role = GroupCollectives, otf2.RegionRoleCollOther
		}
	}
	if len(p.ops) > 1 {
		return pw.defs.regionRef(LaunchName, group, role), false
	}
	return pw.operationRegion(p.ops[0]), false
}

// LaunchName names the region of a launch of several operations; AttrOperations has their number.
const LaunchName = "Group"

// LaunchSize returns the number of operations in the name of a launch's region in archives of earlier versions ("Group
// (3 ops)"), 1 for names without one.
func LaunchSize(name string) uint64 {
	n := uint64(1)
	if _, err := fmt.Sscanf(name, LaunchName+" (%d ops)", &n); err != nil {
		return 1
	}
	return n
}

// operationRegion returns the region of an operation that has times of its own.
func (pw *planWriter) operationRegion(op *operation) otf2.RegionRef {
	group := GroupCollectives
	if op.p2p {
		group = GroupPointToPoint
	}
	return pw.defs.regionRef(op.name, group, roleOf(op.name, op.p2p))
}

// compositeFunction returns the function whose sends and receives the plan consists of; nil if there is none. A large
// one may take several plans.
func (p *plan) compositeFunction(c *commRank) *Collective {
	if len(p.ops) < 2 || p.ops[0].call == nil || p.ops[0].call.group == nil {
		return nil
	}
	g := p.ops[0].call.group
	for _, op := range p.ops {
		if op.call == nil || op.call.group != g || op.call.comm != c {
			return nil
		}
	}
	if name, ok := g.compositeName(); ok {
		return CollectiveNamed(name)
	}
	return nil
}

func (p *plan) launchStream() *uint64 {
	op := p.ops[0]
	switch {
	case p.enqueue.launch != nil:
		return &p.enqueue.launch.stream
	case op.copies.byEngines:
		return &op.stream
	case op.call != nil:
		return &op.call.stream
	}
	return nil
}

// beginOperation writes the begin of an operation and returns its end, which is empty if there is none. A plan's only
// collective is a blocking one, those of a batch are requests, because NCCL stamps a batch as a whole.
func (pw *planWriter) beginOperation(c *commRank, loc *location, op *operation, begin otf2.Timestamp,
	a *otf2.AttributeList) operationEnd {
	comm := otf2.CommRef(c.index)
	single := a == nil
	if op.p2p {
		length := op.count * DatatypeSize(op.datatype)
		if c.NRanks < 2 {
			return operationEnd{}
		}
		if op.peer < 0 || int(op.peer) >= c.NRanks {
			pw.countOddity(oddUnplacedTransfer)
			return operationEnd{}
		}
		loc.request++
		e := operationEnd{write: endReceive, peer: uint32(op.peer), received: length, request: loc.request}
		if op.name == "Send" {
			pw.keepError(loc.w.MpiIsend(begin, a, e.peer, comm, 0, length, e.request))
			e.write = endSend
			return e
		}
		pw.keepError(loc.w.MpiIrecvRequest(begin, a, e.request))
		return e
	}
	f := CollectiveNamed(op.name)
	if f == nil {
		pw.countOddity(oddUnknownFunction)
		return operationEnd{}
	}
	if c.NRanks < 2 {
		return operationEnd{}
	}
	e := operationEnd{write: endCollective, op: f.Op, peer: otf2.CollectiveRootNone}
	if f.Rooted() {
		if op.root < 0 || int(op.root) >= c.NRanks {
			pw.countOddity(oddUnplacedTransfer)
			return operationEnd{}
		}
		e.peer = uint32(op.root)
	}
	e.sent, e.received = op.transferredBytes(f, c)
	if single {
		pw.keepError(loc.w.MpiCollectiveBegin(begin, nil))
		return e
	}
	loc.request++
	e.write, e.request = endRequest, loc.request
	pw.keepError(loc.w.NonBlockingCollectiveRequest(begin, a, e.request))
	return e
}

// requestedElements returns what the application asked for: a Coll of AllGather or Broadcast counts bytes.
func (op *operation) requestedElements() (count uint64, datatype string) {
	if op.call != nil {
		return op.call.count, op.call.datatype
	}
	return op.count, op.datatype
}

// shareBytes returns the bytes that each rank contributes (or gets).
func (op *operation) shareBytes() uint64 {
	count, datatype := op.requestedElements()
	return count * DatatypeSize(datatype)
}

// transferredBytes returns what the rank sends and receives.
func (op *operation) transferredBytes(f *Collective, c *commRank) (sent, received uint64) {
	share, ranks := op.shareBytes(), uint64(c.NRanks)
	if same, _ := op.inPlace(c); f.InPlace && op.task && same {
		return (ranks - 1) * share, (ranks - 1) * share
	}
	return f.Bytes(share, ranks, int(op.root) == c.Rank)
}

// eventType returns the type of the event that reported the operation.
func (op *operation) eventType() shm.EventType {
	switch {
	case op.copies.byEngines:
		return shm.EventCeColl
	case op.p2p:
		return shm.EventP2p
	}
	return shm.EventColl
}

// sequenceKey returns the key of the sequence in which the operation is numbered, see description.Comm.
func (op *operation) sequenceKey() string {
	peer := int(op.peer)
	switch {
	case !op.p2p:
		return op.name
	case op.name == "Send":
		return sequence.Pair{To: peer}.SendKey()
	}
	return sequence.Pair{From: peer}.RecvKey()
}

// numberOperation returns the ordinal of an operation in its sequence. It is called once for each, in order.
func (pw *planWriter) numberOperation(c *commRank, op *operation) uint64 {
	s := c.ordinals.sequenceOf(op.sequenceKey())
	if op.p2p {
		s.Bytes += op.shareBytes()
		return s.addOperation(op.agreementHash())
	}
	if t := op.imported; t != nil && t.Numbered {
		return s.addNumbered(t.Ordinal, op.agreementHash())
	}
	if !op.plan.graph { // from another thread, which members may order differently
		c.ordinals.order.addOperation(op.agreementHash() ^ uint32(hashText(op.name)))
	}
	if n := pw.ranks.countUnreported(c, s, op); n > 0 {
		pw.ranks.markMissing(c, op, s.Count, n)
		s.skipOperations(n)
	}
	return s.addOperation(op.agreementHash())
}

// operationAttributes numbers the operation and adds its description as far as NCCL reported it.
func (pw *planWriter) operationAttributes(a *otf2.AttributeList, c *commRank, op *operation) {
	if op.task && !op.p2p {
		a.Uint64(AttrSeq, op.seq)
	}
	a.Uint64(AttrOrdinal, pw.numberOperation(c, op))
	for _, name := range []struct {
		ref   otf2.AttributeRef
		value string
	}{{AttrAlgo, op.tuning.algo}, {AttrProto, op.tuning.proto}, {AttrKernelVariant, op.tuning.kernelVariant}} {
		if name.value != "" {
			a.String(name.ref, pw.defs.stringRef(name.value))
		}
	}
	if op.copies.byEngines {
		a.String(AttrSyncStrategy, pw.defs.stringRef(op.copies.syncStrategy))
		a.Uint32(AttrBatches, op.copies.batches)
	}
	// Only the first task of a symmetric kernel has channels.
	if op.task && !op.copies.byEngines && !op.tuning.anyChannels && !(op.tuning.symmetric && op.tuning.channels == 0) {
		a.Uint32(AttrChannels, op.tuning.channels)
	}
	if op.task && !op.copies.byEngines && !op.p2p {
		a.Uint32(AttrWarps, op.tuning.warps)
	}
	count, datatype := op.requestedElements()
	a.String(AttrDatatype, pw.defs.stringRef(datatype))
	a.Uint64(AttrCount, count)
	switch {
	case op.p2p && op.name == "Send":
		a.Uint64(AttrSendBuff, op.buffers.send)
	case op.p2p:
		a.Uint64(AttrRecvBuff, op.buffers.recv)
	case op.task:
		a.Uint64(AttrSendBuff, op.buffers.send)
		a.Uint64(AttrRecvBuff, op.buffers.recv)
	}
	pw.bufferAttributes(a, c, op)
	op.linkAttributes(a)
	if op.tag != 0 {
		a.Uint64(AttrUserTag, op.tag)
	}
	if t := op.imported; t != nil && t.CallSite != "" {
		a.String(AttrCallSite, pw.defs.stringRef(t.CallSite))
	}
	if op.handle != 0 {
		a.Uint64(AttrEventID, op.handle)
	}
	if op.parent != 0 {
		a.Uint64(AttrParentID, op.parent)
	}
}

// writeEnqueue draws a plan without an open call of the application's thread.
func (ops *operations) writeEnqueue(p *plan, stop uint64) {
	loc := ops.enqueueLocation(p.comm)
	if loc == nil {
		return
	}
	region := ops.defs.regionRef("Enqueue plan", GroupEnqueue, otf2.RegionRoleFunction)
	a := ops.emptyAttributes()
	if p.graph {
		a.Uint8(AttrGraph, 1)
	}
	a.Uint64(AttrEventID, p.handle)
	ops.writeRegion(loc, p.enqueue.start, stop, a, region)
}
