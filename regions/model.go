// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Sink makes the event files of new locations.
type Sink interface {
	// EventWriter opens the event file of a location. Numbers are 0, 1, 2, … in order of creation.
	EventWriter(loc experiment.Location) (EventWriter, error)
	// Finished tells that nothing more will be written to a location.
	Finished(number uint32)
}

// Options of a Model; nil means the defaults.
type Options struct {
	// OperationLimit (ns) is how long the oldest operation of a communicator rank waits for children
	// that have not begun. Children that have begun are always waited for. Default 10 s.
	OperationLimit uint64
	// GPUHold (ns) is how long GPU stamps wait for later ones, which make the GPU's clock better
	// known. Default 2 s.
	GPUHold uint64
	// Paradigm of the regions: otf2.ParadigmCUDA (default) or otf2.ParadigmHIP.
	Paradigm otf2.Paradigm
	// RecordMask holds the event types (bits) that the plugin records: what need not be waited for.
	RecordMask uint32
	// CUPTIHold (ns) is how long a plan waits for what CUPTI tells of its kernel, where CUPTI tells anything: its
	// records come in bursts, about one a second. Default 3 s.
	CUPTIHold uint64
	// Channels asks for a location per communicator rank and channel with the intervals of its kernels.
	Channels bool
	// Lasting is for processes of any length whose events are summed up: sequences get no digests on the way, and rows of communicator
	// ranks are not used again, as the sink makes one of those that are finished.
	Lasting bool
	// Lost tells whether the plugin itself has lost collectives so far. Nil: it has not.
	Lost func() bool
	// Resume is the description that another model left of the same process, nil if this is the first: ordinals, and calls whose
	// operations were not seen, go on from there. What it had in memory is missing.
	Resume *experiment.Process
	// Metrics asks for the derived metrics: bandwidths, operations outstanding, bytes in flight.
	Metrics bool
}

// Model is the timeline of one process in the making.
type Model struct {
	sink    Sink
	process *experiment.Process
	opts    Options
	defs    *definitions
	err     error

	comms   []*commRank          // by index
	live    []*commRank          // those of them that are not closed, in order
	left    []experiment.Pending // what was not complete when their communicator ranks were finalized
	gone    *location            // in the place of rows of communicator ranks that are
	clocks  []*gpuClock          // by index into process.GPUs
	threads []*thread            // by ring

	locations   []*location
	rows        rows
	groupNumber int64
	masked      bool // somebody else has changed the activation mask

	// Events by handle, as long as something may refer to them.
	groups     map[uint64]*groupCall
	calls      map[uint64]*call
	launches   bounded[*launch]
	kept       bounded[*launch] // also when they have ended: CUPTI tells of their kernels later
	plans      map[uint64]*plan
	operations map[uint64]*operation
	kernels    bounded[*kernel]
	phases     bounded[*kernel] // KernelPhase: the kernel it is part of
	proxies    map[uint64]*proxyOp
	steps      map[uint64]*proxyStep
	transfers  bounded[struct{}] // NetPlugin

	nets         []*netRank          // of this process's communicator ranks, by their indices; nil where there is none
	foreign      map[uint64]*netRank // of other processes', by context
	foreignNets  []*netRank          // the same, in order of appearance
	freeSteps    *proxyStep
	phaseRegions [numNetPhases]otf2.RegionRef // plus 1
	network      [numNetCounts]uint64

	metrics metricState
	tales   map[uint64]*Told // of operations to come, see Tell

	heritage map[int]*heritage // what another model left, by communicator rank
	past     int64             // one more than the greatest number of its groups of calls
	told     []experiment.GPU  // what CUDA told of the GPUs, by their indices

	attributes *otf2.AttributeList
	first      uint64
	last       uint64

	starts, stops [shm.TypeCount]uint64
	states        [stateCount]uint64
	oddities      [numOddities]uint64
	timing        map[string]uint64
	cuda          *cuda // nil until CUPTI tells anything
	markers       int   // of NCCL's side
	points        int   // of the application's
}

// New makes the model of a process. It fills in the lists of p as they grow; Snapshot brings the
// rest of p up to date.
func New(sink Sink, p *experiment.Process, opts *Options) *Model {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.OperationLimit == 0 {
		o.OperationLimit = 10e9
	}
	if o.GPUHold == 0 {
		o.GPUHold = 2e9
	}
	if o.CUPTIHold == 0 {
		o.CUPTIHold = 3e9
	}
	if o.Paradigm == 0 {
		o.Paradigm = otf2.ParadigmCUDA
	}
	m := &Model{
		sink: sink, process: p, opts: o, defs: newDefinitions(p, o.Paradigm),
		groups: make(map[uint64]*groupCall), calls: make(map[uint64]*call), launches: newBounded[*launch](maxLaunches),
		kept:  newBounded[*launch](firstKeptLaunches),
		plans: make(map[uint64]*plan), operations: make(map[uint64]*operation),
		kernels: newBounded[*kernel](maxKernels), phases: newBounded[*kernel](maxLaunches),
		proxies: make(map[uint64]*proxyOp),
		steps:   make(map[uint64]*proxyStep), transfers: newBounded[struct{}](maxTransfers),
		foreign:    make(map[uint64]*netRank),
		attributes: &otf2.AttributeList{}, timing: make(map[string]uint64),
		rows: newRows(), gone: goneRow(),
	}
	m.resume()
	return m
}

// Records tells whether events of a type are recorded at all.
func (m *Model) Records(t shm.EventType) bool { return m.opts.RecordMask&(1<<t) != 0 }

// fail keeps the first error and tells whether there was one.
func (m *Model) fail(err error) bool {
	switch {
	case errors.Is(err, otf2.ErrClosed): // on the row of a communicator rank that is gone
		m.oddity(OddAfterFinalize)
		return true
	case errors.Is(err, errRows):
		m.oddity(OddNoRow)
		if !m.rows.full {
			m.rows.full = true
			m.mark(nil, m.last, SeverityHigh, "NCCL rows", fmt.Sprintf("the process has %d rows: what belongs on further ones is not drawn from here on", m.rows.most))
		}
		return true
	}
	if err != nil && m.err == nil {
		m.err = err
	}
	return err != nil
}

// stateCount is the number of values of recordEventState's enumeration, up to API v7.
const stateCount = 32

// handler takes one record of a thread.
type handler func(m *Model, th *thread, t uint64, r *shm.Record)

// handlers says what the model does with each event type. Types without an entry are counted only.
var handlers = [shm.TypeCount]struct{ start, stop, state handler }{
	shm.EventGroupApi:     {start: (*Model).startGroupAPI, stop: (*Model).stopGroupAPI},
	shm.EventCollApi:      {start: (*Model).startCall, stop: (*Model).stopCall},
	shm.EventP2pApi:       {start: (*Model).startCall, stop: (*Model).stopCall},
	shm.EventKernelLaunch: {start: (*Model).startLaunch, stop: (*Model).stopLaunch},
	shm.EventGroup:        {start: (*Model).startGroup, stop: (*Model).stopGroup},
	shm.EventColl:         {start: (*Model).startTask, stop: (*Model).stopTask},
	shm.EventP2p:          {start: (*Model).startTask, stop: (*Model).stopTask},
	shm.EventKernelCh:     {start: (*Model).startKernel, stop: (*Model).stopKernel, state: (*Model).stateKernel},
	shm.EventProxyOp:      {start: (*Model).startProxyOp, stop: (*Model).stopProxyOp, state: (*Model).stateProxyOp},
	shm.EventProxyStep:    {start: (*Model).startStep, stop: (*Model).stopStep, state: (*Model).stateStep},
	shm.EventProxyCtrl:    {start: (*Model).startCtrl, stop: (*Model).stopCtrl, state: (*Model).stateCtrl},
	shm.EventNetPlugin:    {start: (*Model).startNet, stop: (*Model).stopNet},
	shm.EventCeColl:       {start: (*Model).startCE, stop: (*Model).stopCE},
	shm.EventCeSync:       {start: (*Model).startCEPart, stop: (*Model).stopCEPart},
	shm.EventCeBatch:      {start: (*Model).startCEPart, stop: (*Model).stopCEPart},
	shm.EventKernelPhase:  {start: (*Model).startPhase, stop: (*Model).stopPhase, state: (*Model).statePhase},
}

// Events that NCCL ends soon, if at all: how many are kept open at most.
const (
	maxLaunches  = 4096
	maxKernels   = 65536
	maxTransfers = 65536
)

// Record takes one record; t is its time (ns) on the process's time line, ring the ring it came
// from. Records of a ring come in the order they were written, those of different rings by time.
// The record is not kept. The error is that of the event files, the first one; the model goes on
// counting after it.
func (m *Model) Record(ring int, t uint64, r *shm.Record) error {
	th := m.thread(ring)
	m.begins(t) // records that were published late are older than others before them
	m.last = max(m.last, t)
	if r.Kind != shm.RecordThread {
		m.resumeThread(th)
	}
	switch r.Kind {
	case shm.RecordThread:
		m.endThread(th, t)
		m.threads[ring] = &thread{tid: int(r.TID)}
	case shm.RecordInit:
		if c := m.comm(r.Aux); c != nil {
			m.initComm(t, c)
		}
	case shm.RecordFinalize:
		if c := m.comm(r.Aux); c != nil && !c.final {
			m.finalizeComm(t, c)
		}
	case shm.RecordMark:
		m.applicationMark(th, t, r)
	case shm.RecordEdge:
		m.edge(t, r)
	case shm.RecordMask:
		m.maskChanged(t, r)
	case shm.RecordCupti:
		m.takeActivity(t, r)
	case shm.RecordCuptiClock:
		m.readCUPTIClock(t, r)
	case shm.RecordStart:
		m.starts[r.Type]++
		if m.afterFinalize(r) {
			break
		}
		if h := handlers[r.Type].start; h != nil {
			h(m, th, t, r)
		}
	case shm.RecordStop:
		m.stops[r.Type]++
		if h := handlers[r.Type].stop; h != nil {
			h(m, th, t, r)
		}
	case shm.RecordState:
		if r.Aux < stateCount {
			m.states[r.Aux]++
		}
		if h := handlers[r.Type].state; h != nil {
			h(m, th, t, r)
		}
	}
	return m.err
}

// begins notes that something was at a time.
func (m *Model) begins(t uint64) {
	if m.first == 0 || t < m.first {
		m.first = t
	}
}

func (m *Model) thread(ring int) *thread {
	for len(m.threads) <= ring {
		m.threads = append(m.threads, &thread{})
	}
	return m.threads[ring]
}

// Advance tells that all records before t have been given, and writes the operations that are due.
func (m *Model) Advance(t uint64) error {
	m.sweep()
	for _, c := range m.live {
		if c.final {
			m.closeComm(c, t, drainEnded)
			continue
		}
		// A plan can follow its calls late (a callback behind long work on the stream), so time says nothing;
		// but thousands of calls and no plan are broadcasts.
		if len(c.calls) > maxUnseen {
			m.resolveCalls(c, c.calls[len(c.calls)/2].groupNumber()+1)
		}
		m.drain(c, t, drainDue)
	}
	m.eachNet(func(n *netRank) {
		if n.polls.times > 0 && t > n.polls.first+pollsLimit {
			m.flushPolls(n)
		}
	})
	m.advanceCUDA(t)
	return m.err
}

// Settle writes what is complete without waiting for better knowledge of the GPU's clock.
func (m *Model) Settle(t uint64) error {
	for _, c := range m.live {
		if !c.final {
			m.drain(c, t, drainComplete)
		}
	}
	m.eachNet(m.flushPolls)
	return m.err
}

// Finish ends the timeline: what is still open is written as unfinished, up to the time of the last
// record. Nothing may follow but Snapshot.
func (m *Model) Finish() error {
	for _, th := range m.threads {
		m.endThread(th, m.last)
	}
	m.linkRest()
	for _, c := range m.live {
		switch {
		case c.closed:
		case c.final:
			m.closeComm(c, m.last, drainAll)
		default:
			m.resolveCalls(c, noGroup)
			m.drain(c, m.last, drainAll)
		}
	}
	m.eachNet(func(n *netRank) { m.closeNet(n, m.last) })
	m.finishCUDA()
	return m.err
}

// sweep forgets the communicator ranks that are closed, but that they were there.
func (m *Model) sweep() {
	m.live = slices.DeleteFunc(m.live, func(c *commRank) bool {
		if c.closed {
			m.comms[c.index] = closedRank
		}
		return c.closed
	})
}

// closedRank stands for all communicator ranks that are closed: no event of theirs is drawn.
var closedRank = &commRank{index: -1, final: true, closed: true}

// endThread closes what a thread has open: its ring has another owner from here on, or the data ends.
func (m *Model) endThread(th *thread, t uint64) {
	m.endCtrl(th, t, true)
	m.closeCE(th, t, true)
	if th.group != nil {
		m.closeGroupCall(th, t, true)
	}
	m.endPhases(th, t)
	m.release(th.loc)
	th.loc = nil
}

// afterFinalize tells whether an event comes too late to be drawn: its communicator rank is gone. Proxy
// threads that several communicators share go on under the name of the first (notes on the API, §5.3).
// A group call belongs to its thread, not to the communicator it names.
func (m *Model) afterFinalize(r *shm.Record) bool {
	if int64(r.Aux) >= int64(len(m.comms)) {
		return false
	}
	c := m.comms[r.Aux]
	if c == nil || !c.final {
		return false
	}
	m.oddity(OddAfterFinalize)
	return r.Type != shm.EventGroupApi
}
