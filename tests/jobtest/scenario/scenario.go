// SPDX-License-Identifier: Apache-2.0

// Package scenario writes recordings of NCCL callbacks by hand: what no real job at hand does, or not
// on demand. A scenario is a list of calls in processes and threads, each with its time; Write makes
// of it a folder in the schema of testdata/nccl-callbacks, which package replay loads and
// `nccl-otf2 replay` plays.
//
//	s := scenario.New("stale-handles", "2.29.7")
//	p := s.Process()
//	u := p.Thread("app") // the first is the process's main thread
//	c := u.Init(scenario.Comm{ID: 0xabc, NRanks: 2, Rank: 0})
//	g := u.Start(c, descriptor.GroupApi{GroupDepth: 1})
//	u.State(g, descriptor.StateGroupStartApiStop, nil)
//	u.Stop(g)
//	u.Stop(g)                    // again
//	u.Stop(scenario.Raw(0xdead)) // a handle that nobody gave
//	u.Finalize(c)
//	err := s.Write(dir)
//
// Calls take their time from the scenario's clock, which moves on by one step at each call; At and
// Advance move it by hand, also backwards: Write sorts the calls of each process by time. Rank and its
// methods (Call, Group, Capture) make the calls of whole operations as the release at hand does, and
// Random a whole job.
//
// # Beyond the recorder's schema
//
// What real recordings have no word for:
//
//   - stop, state: `id` null with an `h`: this very number; finalize: `ctxId` null with a `ctx`.
//   - start, init: `publish` N: the handle or context that the plugin gives is known to the other
//     processes of the run as number N. `ctxFrom`, `parentFrom`, `hFrom` N: what was published
//     under N is the context, the parent, the handle; in a ProxyOp's `d`, `pidFrom` N: the pid of the
//     process that published it.
//   - thread: `short` true: the thread is created when its first call is due.
//   - start: a `type` that is no event type of NCCL's has the `typeName` "?" and an empty `d`;
//     `typeName` "ProxyDiag" is RCCL's type of the bit that KernelPhase has.
//   - state: `args` may have `steps` beside `transSize` (ProxyOp, NCCL up to 2.26), `ib` (InfiniBand)
//     and `proxyDiag` (RCCL); NetPlugin's `d` may have `ib`.
//   - run.json: `library` "nccl" or "rccl".
package scenario

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
)

// Scenario is one run. Not for several goroutines.
type Scenario struct {
	Name    string
	What    string // one line for run.json
	Release string // of NCCL, "2.29.7"
	Library string // "", "nccl" or "rccl": which library seems to call
	Rearch  bool   // with NCCL_ENQUEUE_REARCH_ENABLE=1 (2.31 and later): calls are not reported, parents are NULL

	processes []*Process
	now, step uint64 // ns on the run's clock
	published int
	minor     int
	err       error // the first misuse; Write returns it
}

// Instants of the run's start on the three clocks, ns.
const (
	startRaw  = 3_600_000_000_000
	startMono = startRaw + 118_000_000
	startReal = 1_795_171_000_000_000_000
)

// New makes an empty scenario of an NCCL release from 2.23 on.
func New(name, release string) *Scenario {
	s := &Scenario{Name: name, Release: release, now: startRaw, step: 1000}
	if _, err := fmt.Sscanf(release, "2.%d", &s.minor); err != nil {
		s.fail("%q is not an NCCL release", release)
	}
	if _, err := NativeAPI(release); err != nil {
		s.fail("%v", err)
	}
	return s
}

// callsReported reports whether calls of the application are events.
func (s *Scenario) callsReported() bool { return s.minor >= 28 && !s.Rearch }

func (s *Scenario) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("scenario %s: "+format, append([]any{s.Name}, args...)...)
	}
}

// At sets the clock to so many microseconds after the start of the run.
func (s *Scenario) At(us float64) { s.now = startRaw + uint64(us*1000) }

// Advance moves the clock on.
func (s *Scenario) Advance(us float64) { s.now += uint64(us * 1000) }

// Now is the clock: microseconds since the start of the run.
func (s *Scenario) Now() float64 { return float64(s.now-startRaw) / 1000 }

// Step is by how much each call moves the clock on; at first 1 µs.
func (s *Scenario) Step(us float64) { s.step = uint64(us * 1000) }

// Process adds a process.
func (s *Scenario) Process() *Process {
	p := &Process{s: s, index: len(s.processes), pid: 20001 + 100*len(s.processes),
		gpu: startReal - 73_500_000_000_123 - startRaw}
	s.processes = append(s.processes, p)
	return p
}

// Process is one process of the run.
type Process struct {
	s        *Scenario
	index    int
	pid      int
	gpu      uint64 // GPU clock less the run's clock, ns
	threads  []*Thread
	contexts int
	events   int
	calls    []*call
}

// PID is the process's id in the recording; the playing process has its own.
func (p *Process) PID() int { return p.pid }

// skewGPU moves the process's GPU clock against that of the other processes.
func (p *Process) skewGPU(us float64) { p.gpu += uint64(int64(us * 1000)) }

// GPU is the GPU's clock, as NCCL's pTimer, at a time of the scenario's clock: ns, in steps of 32.
func (p *Process) GPU(us float64) uint64 { return (startRaw + uint64(us*1000) + p.gpu) &^ 31 }

// Thread adds a thread; the first is the process's main thread.
func (p *Process) Thread(name string) *Thread {
	t := &Thread{p: p, tid: p.pid + len(p.threads), name: name}
	p.threads = append(p.threads, t)
	return t
}

// ShortThread adds a thread that is created when its first call is due and ends after its last, as
// NCCL's threads for non-blocking groups do. It is never the main thread.
func (p *Process) ShortThread(name string) *Thread {
	if len(p.threads) == 0 {
		p.s.fail("a process's first thread is its main thread, which is not short")
	}
	t := p.Thread(name)
	t.short = true
	return t
}

// Thread is one thread; its methods are the calls that it makes.
type Thread struct {
	p     *Process
	tid   int
	name  string
	short bool
}

// Process is whose thread it is.
func (t *Thread) Process() *Process { return t.p }

// Comm is a communicator rank, as init tells it.
type Comm struct {
	ID           uint64
	Name         string // "": NULL
	NRanks, Rank int
	NNodes       int // 0: as many as ranks
}

// Ref stands for a handle or a context: *Event, *Context, Raw, or Shared.
type Ref interface{ ref() }

// Raw is a handle or context by its value; Raw(0) is NULL.
type Raw uint64

// Shared is a handle or context that one process publishes and others name.
type Shared struct{ number int }

// Event is an event that was started, Context a communicator rank that was initialized: what the
// plugin gives for them when the recording is played.
type (
	Event struct {
		p         *Process
		typ       descriptor.Type
		number    int // 1, 2, … in the process, in the order of the calls here
		published *int
		id        int // in the recording
		open      int
		stops     int
	}
	Context struct {
		Comm
		p         *Process
		number    int
		published *int
		id        int
		open      int
	}
)

func (*Event) ref()   {}
func (*Context) ref() {}
func (Raw) ref()      {}
func (Shared) ref()   {}

func (s *Scenario) publish(number **int) Shared {
	if *number == nil {
		n := s.published
		s.published++
		*number = &n
	}
	return Shared{**number}
}

// Publish makes the event's handle known to the other processes: those that name it wait for its
// start.
func (e *Event) Publish() Shared { return e.p.s.publish(&e.published) }

// Publish makes the context known to the other processes: those that name it wait for its init.
func (x *Context) Publish() Shared { return x.p.s.publish(&x.published) }

// call is one callback.
type call struct {
	kind    replay.CallKind
	t       uint64
	thread  *Thread
	context Ref // init, start, finalize
	event   *Event
	handle  Ref // stop, state
	start   *start
	state   descriptor.State
	args    *replay.Args
}

type start struct {
	descr          any
	bits           uint64
	parent, before Ref
	group          Ref
	pid            *Shared
	rank           int
}

func (t *Thread) call(c *call) *call {
	s := t.p.s
	c.t, c.thread = s.now, t
	s.now += s.step
	t.p.calls = append(t.p.calls, c)
	return c
}

// Init initializes a communicator rank.
func (t *Thread) Init(comm Comm) *Context {
	t.p.contexts++
	c := &Context{Comm: comm, p: t.p, number: t.p.contexts}
	c.NNodes = cmp.Or(c.NNodes, c.NRanks)
	t.call(&call{kind: replay.CallInit, context: c})
	return c
}

// finalize finalizes a context.
func (t *Thread) finalize(c Ref) { t.call(&call{kind: replay.CallFinalize, context: c}) }

// Option says more about a start.
type Option func(*start)

// Under sets the parent; else it is NULL.
func Under(parent Ref) Option { return func(s *start) { s.parent = parent } }

// InGroup sets a Coll's or P2p's parentGroup; else it is NULL.
func InGroup(group Ref) Option { return func(s *start) { s.group = group } }

// Before sets what *eHandle holds on entry; else it is NULL.
func Before(handle Ref) Option { return func(s *start) { s.before = handle } }

// WithRank sets the descriptor's rank; else it is the context's for the types for which NCCL fills it,
// and 0 for the others.
func WithRank(rank int) Option { return func(s *start) { s.rank = rank } }

// pidOf sets a ProxyOp's pid to that of the process that published something; else, and where the
// descriptor has 0, it is the process's own.
func pidOf(from Shared) Option { return func(s *start) { s.pid = &from } }

// WithType sets the descriptor's type, for a descriptor.Other: any bits that are no type of NCCL's.
func WithType(bits uint64) Option { return func(s *start) { s.bits = bits } }

// ranked are the types whose descriptors have the rank. Source: docs/nccl-profiler-api.md, rule 9.
var ranked = map[descriptor.Type]bool{
	descriptor.TypeColl: true, descriptor.TypeP2p: true, descriptor.TypeProxyOp: true, descriptor.TypeProxyStep: true,
	descriptor.TypeNetPlugin: true,
	descriptor.TypeCeColl:    true, descriptor.TypeCeSync: true, descriptor.TypeCeBatch: true,
}

// Start starts an event. descr is one of them (descriptor.Coll, descriptor.ProxyOp, …), or a
// pointer to one.
func (t *Thread) Start(context Ref, descr any, options ...Option) *Event {
	typ, ok := typeOf(descr)
	if !ok {
		t.p.s.fail("%T is not a descriptor", descr)
	}
	st := &start{descr: descr, bits: typ.Bit()}
	if c, ok := context.(*Context); ok && ranked[typ] {
		st.rank = c.Rank
	}
	for _, o := range options {
		o(st)
	}
	if typ == descriptor.TypeOther && bits.OnesCount64(st.bits) == 1 && st.bits < 1<<descriptor.TypeKernelPhase {
		t.p.s.fail("%#x is an event type: it needs its own descriptor", st.bits)
	}
	t.p.events++
	e := &Event{p: t.p, typ: typ, number: t.p.events}
	t.call(&call{kind: replay.CallStart, context: context, event: e, start: st})
	return e
}

// Stop stops an event.
func (t *Thread) Stop(handle Ref) { t.call(&call{kind: replay.CallStop, handle: handle}) }

// State records a state; nil args are NULL, new(replay.Args) are some without content.
func (t *Thread) State(handle Ref, state descriptor.State, args *replay.Args) {
	t.call(&call{kind: replay.CallState, handle: handle, state: state, args: args})
}

// TransSize are a ProxyStep's arguments.
func TransSize(bytes uint64) *replay.Args { return &replay.Args{TransSize: &bytes} }

// OpSteps are a ProxyOp's arguments, up to NCCL 2.26.
func OpSteps(bytes uint64, steps int) *replay.Args {
	return &replay.Args{TransSize: &bytes, Steps: &steps}
}

// Appended are a ProxyCtrl's arguments.
func Appended(ops int64) *replay.Args { return &replay.Args{AppendedProxyOps: &ops} }

// PTimer are the arguments of KernelChStop and KernelPhaseStop.
func PTimer(gpu uint64) *replay.Args { return &replay.Args{PTimer: &gpu} }
