// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions/cuda"
)

// Sink makes the event files of new locations.
type Sink interface {
	// EventWriter opens the event file of a location. Numbers are 0, 1, 2, … in order of creation.
	EventWriter(loc description.Location) (EventWriter, error)
	// Finished reports that a location takes no more events.
	Finished(number uint32)
}

// Source is the recording whose records a Model gets.
type Source interface {
	// LostCollectives reports whether the plugin itself has lost collectives so far.
	LostCollectives() bool
	// LostParts reports whether the plugin has lost any operations, messages or kernels so far, by which kernels are
	// counted.
	LostParts() bool
	// ThreadName returns the current name of a thread of the process, "" if it is unknown.
	ThreadName(tid int) string
}

// Options of a Model; nil means the defaults.
type Options struct {
	// operationLimit (ns) is how long the oldest operation of a communicator rank waits for children that have not
	// begun. It always waits for children that have begun. Default 10 s.
	operationLimit uint64
	// gpuHold (ns) is how long GPU stamps wait for later ones, which improve the mapping of the GPU's clock. Default 2
	// s.
	gpuHold uint64
	// Paradigm of the regions: otf2.ParadigmCUDA (default) or otf2.ParadigmHIP.
	Paradigm otf2.Paradigm
	// RecordMask holds the event types (bits) that the plugin records; others are not waited for.
	RecordMask uint32
	// cuptiHold (ns) is how long a plan waits for CUPTI's record of its kernel, if CUPTI records anything: its records
	// come in bursts, about one a second. Default 3 s.
	cuptiHold uint64
	// Channels asks for a location per communicator rank and channel with the intervals of its kernels.
	Channels bool
	// Raw asks for rows with each event as NCCL reports it.
	Raw bool
	// Lasting is for processes of any length whose events are summed up: sequences get no intermediate digests, and
	// rows of communicator ranks are not reused, because the sink merges finished ones.
	Lasting bool
	// Source answers questions about the process's recording. Nil: nothing was lost, and threads keep the name of their
	// first callback.
	Source Source
	// Resume is the description that an earlier model left of the same process, nil if this is the first: ordinals, and
	// calls without operations, continue from there. What that model had in memory is missing.
	Resume *description.Process
	// NetSums asks for sums of the network's transfers by operation, direction and peer, instead of rows with their
	// phases.
	NetSums bool
	// NoPhases says that steps have transfers only: what they were in before and after is not known, and gets no
	// regions.
	NoPhases bool
	// Metrics asks for the derived metrics: bandwidths, operations outstanding, bytes in flight.
	Metrics bool
}

// Model builds the timeline of one process. It distributes the records to parts with one task each.
//
//	board        rows of the timeline, and what is written to any of them (location.go, rows.go, span.go)
//	ledger       counts of records and oddities, and markers (oddity.go)
//	ranks        communicator ranks, their GPUs and gaps (comm.go, family.go, recordingswitch.go, sequence.go)
//	threads      the application's threads: groups and calls, launches, copy-engine calls, phases (call.go, ce.go, mark.go)
//	operations   what was enqueued, from its Group or call to its place on a row (plan.go, operation.go, kernel.go,
//	             callonly.go, queue.go)
//	timing       when operations ran (interval.go, kerneltimes.go)
//	planWriter   operations on the rows of communicator ranks and channels (write.go, channel.go, buffer.go)
//	network      transfers and what proxy threads do (netrank.go, netsum.go, proxy.go, proxyctrl.go, netplugin.go)
//	metrics      values on rows (metric.go, gpumetric.go)
//	streams      CUDA streams, as package cuda gives them out (stream.go)
//	raw          on request: every event as it was reported (raw.go)
//
// Each part refers to the board and to the parts that it has as fields; references have no cycles.
type Model struct {
	*board
	cuda    *cuda.Recorder
	metrics *metrics
	ranks   *ranks
	ops     *operations
	threads *threads
	net     *network
	raw     *raw // nil: not asked for
	changed bool // records since the last Snapshot may have changed what is under way

	handlers [shm.TypeCount]handlers
}

// setup is the configuration of a model, and the description that it fills in.
type setup struct {
	opts    Options
	process *description.Process
}

// New makes the model of a process. It appends to the lists of p; Snapshot updates the rest of p.
func New(sink Sink, p *description.Process, opts *Options) *Model {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o.operationLimit = cmp.Or(o.operationLimit, 10e9)
	o.gpuHold = cmp.Or(o.gpuHold, 2e9)
	o.cuptiHold = cmp.Or(o.cuptiHold, 3e9)
	o.Paradigm = cmp.Or(o.Paradigm, otf2.ParadigmCUDA)
	b := newBoard(sink, &setup{o, p})
	m := &Model{board: b, metrics: &metrics{board: b}, ranks: &ranks{board: b, family: newFamily()}, changed: true}
	// An activity waits longer for its plan than a plan does for an activity.
	hold := max(o.cuptiHold, o.gpuHold) + 1e9
	m.cuda = cuda.New(&streams{board: b, ranks: m.ranks, kernels: make(map[string]otf2.RegionRef)},
		cuda.Options{Hold: hold, Functions: kernelFunctions()})
	t := &timing{b, m.cuda}
	m.ops = newOperations(b, m.ranks, m.cuda, t, newPlanWriter(b, m.ranks, m.cuda, t, m.metrics))
	m.threads = newThreads(b, m.ranks, m.ops, m.cuda)
	m.net = newNetwork(b, m.ranks, m.ops, m.metrics)
	if o.Raw {
		m.raw = newRaw(b, p, m.ranks)
	}
	m.handlers = m.handlersOf()
	m.threads.resumeThreads()
	return m
}

// recordsType reports whether events of a type are recorded at all.
func (s *setup) recordsType(t shm.EventType) bool { return s.opts.RecordMask&(1<<t) != 0 }

// callsReported reports whether NCCL reports the application's calls, as it does since API v5 (version 0 is unknown).
// Without them the application's threads are not known, and plans stand on the enqueue row.
func (s *setup) callsReported() bool { return s.process.APIVersion == 0 || s.process.APIVersion > 4 }

// stateCount is the number of values of recordEventState's enumeration.
const stateCount = shm.StateCount

// handler takes one record of a thread.
type handler func(th *thread, t uint64, r *shm.Record)

// handlers handle the records of an event type. Events of a type without handlers are only counted.
type handlers struct{ start, stop, state handler }

// handlersOf returns the handlers of each event type.
func (m *Model) handlersOf() [shm.TypeCount]handlers {
	ts, ops, net := m.threads, m.ops, m.net
	return [shm.TypeCount]handlers{
		shm.EventGroupApi:     {start: ts.startGroupAPI, stop: ts.stopGroupAPI},
		shm.EventCollApi:      {start: ts.startCall, stop: ts.stopCall},
		shm.EventP2pApi:       {start: ts.startCall, stop: ts.stopCall},
		shm.EventKernelLaunch: {start: ts.startLaunch, stop: ts.stopLaunch},
		shm.EventGroup:        {start: ops.startGroup, stop: ops.stopGroup},
		shm.EventColl:         {start: ops.startTask, stop: ops.stopTask},
		shm.EventP2p:          {start: ops.startTask, stop: ops.stopTask},
		shm.EventKernelCh:     {start: ops.startKernel, stop: ops.stopKernel, state: ops.stateKernel},
		shm.EventProxyOp:      {start: net.startProxyOp, stop: net.stopProxyOp, state: net.stateProxyOp},
		shm.EventProxyStep:    {start: net.startStep, stop: net.stopStep, state: net.stateStep},
		shm.EventProxyCtrl:    {start: net.startCtrl, stop: net.stopCtrl, state: net.stateCtrl},
		shm.EventNetPlugin:    {start: net.startNet, stop: net.stopNet},
		shm.EventCeColl:       {start: ts.startCE, stop: ts.stopCE},
		shm.EventCeSync:       {start: ts.startCEPart, stop: ts.stopCEPart},
		shm.EventCeBatch:      {start: ts.startCEPart, stop: ts.stopCEPart},
		shm.EventKernelPhase:  {start: ops.startPhase, stop: ops.stopPhase, state: ops.statePhase},
	}
}

// Bounds of open events of types that NCCL ends soon, if at all.
const (
	maxLaunches  = 4096
	maxKernels   = 65536
	maxTransfers = 65536
)

// Record takes one record; t is its time (ns) on the process's time line, ring the ring that it came from. Records of a
// ring come in the order in which they were written, those of different rings by time. The record is not kept. The
// error is the first one of the event files; the model goes on counting after it.
func (m *Model) Record(ring int, t uint64, r *shm.Record) error {
	m.changed = true
	th := m.threads.threadOfRing(ring)
	m.extendTime(t) // records that were published late are older than others before them
	m.last = max(m.last, t)
	if r.Kind != shm.RecordThread {
		m.threads.resumeThread(th)
	}
	if m.raw != nil {
		m.raw.takeRecord(th, t, r)
	}
	switch r.Kind {
	case shm.RecordThread:
		m.endThread(th, t)
		m.threads.byRing[ring] = m.threads.openThread(int(r.TID), r.ThreadName)
	case shm.RecordInit:
		if c := m.ranks.rankOf(r.Aux); c != nil {
			m.ranks.initComm(t, c)
		}
	case shm.RecordFinalize:
		if c := m.ranks.rankOf(r.Aux); c != nil && !c.life.final {
			m.finalizeComm(t, c)
		}
	case shm.RecordMark:
		m.threads.applicationMark(th, t, r)
	case shm.RecordEdge:
		m.ranks.switchRecording(t, r)
	case shm.RecordMask:
		m.ranks.maskChanged(t, r)
	case shm.RecordCupti:
		m.cuda.AddRecord(t, r.Activity, uint32(r.Arg), r.ActivityName)
	case shm.RecordCuptiClock:
		m.cuda.AddClockReading(t, r.Handle, r.Real, r.Ticks, r.Arg)
	case shm.RecordStart:
		m.starts[r.Type]++
		if m.ranks.afterFinalize(r) {
			break
		}
		if h := m.handlers[r.Type].start; h != nil {
			h(th, t, r)
		}
	case shm.RecordStop:
		m.stops[r.Type]++
		if h := m.handlers[r.Type].stop; h != nil {
			h(th, t, r)
		}
	case shm.RecordState:
		if r.Aux < stateCount {
			m.states[r.Aux]++
		}
		if h := m.handlers[r.Type].state; h != nil {
			h(th, t, r)
		}
	}
	if m.ranks.bytes > m.ops.relieveAt {
		m.ops.writeExcess(t)
	}
	return m.err
}

// Advance states that all records before t have been taken, and writes the operations that are due.
func (m *Model) Advance(t uint64) error {
	m.changed = true
	m.ranks.removeClosed()
	for _, c := range m.ranks.live {
		if c.life.final {
			m.closeComm(c, t, drainEnded)
			continue
		}
		// A plan can follow its calls late (a callback behind long work on the stream), so time says nothing;
		// but thousands of calls and no plan are broadcasts.
		if c.calls.count > maxUnseen {
			if middle := c.calls.middleCall(); middle.hasReturned() || !c.calls.oneGroup(middle) {
				m.ops.resolveCalls(c, middle.groupNumber()+1)
			}
		}
		m.ops.writeQueue(c, t, drainDue)
	}
	m.net.eachNet(func(n *netRank) {
		if n.polls.times > 0 && t > n.polls.first+pollsLimit {
			m.net.flushPolls(n)
		}
	})
	m.cuda.Advance(t)
	return m.err
}

// Changes returns a number that changes when the passing of time, or Settle, has changed the state of the process:
// something that waited has been written, or an operation is complete.
func (m *Model) Changes() uint64 { return m.changes }

// Holds reports whether complete operations are waiting to be written.
func (m *Model) Holds() bool {
	return slices.ContainsFunc(m.ranks.live, func(c *commRank) bool {
		return slices.ContainsFunc(c.queue.plans, func(p *plan) bool { return p.completion.at != 0 })
	})
}

// Settle writes complete operations without waiting for a better mapping of the GPU's clock.
func (m *Model) Settle(t uint64) error {
	m.changed = true
	for _, c := range m.ranks.live {
		if !c.life.final {
			m.ops.writeQueue(c, t, drainComplete)
		}
	}
	m.net.eachNet(m.net.flushPolls)
	return m.err
}

// Finish ends the timeline: open regions are written as unfinished, up to the time of the last record. Only Snapshot
// may follow.
func (m *Model) Finish() error {
	m.changed = true
	for _, th := range m.threads.byRing {
		m.endThread(th, m.last)
	}
	m.threads.loseOpen()
	m.cuda.LinkRest()
	for _, c := range m.ranks.live {
		switch {
		case c.life.closed:
		case c.life.final:
			m.closeComm(c, m.last, drainAll)
		default:
			m.ops.resolveCalls(c, noGroup)
			m.ops.writeQueue(c, m.last, drainAll)
		}
	}
	m.net.eachNet(func(n *netRank) { m.net.closeNet(n, m.last) })
	m.cuda.Finish()
	if m.raw != nil {
		m.raw.endOpenEvents(m.last)
	}
	return m.err
}
