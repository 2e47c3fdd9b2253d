// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"ncclotf2/plugin/shm"
	"ncclotf2/regions"
	"ncclotf2/shard"
)

// minimal is what the minimal profiler, or our export in its schema, wrote of one process.
type minimal struct {
	identity string
	pid      int
	host     string         // "" if the input does not tell
	epoch    micros         // since 1970, of time 0; not known to the minimal profiler
	ours     bool           // written by our export
	api      int            // version of NCCL's profiler API, 0: not told
	world    shard.Launcher // the process's rank in the job; Size 0: not told
	mask     uint32         // event mask as ProfilerInit told it
	events   []event
	states   []state
	seen     uint32 // types of events (bits)
}

// event is an event record.
type event struct {
	typ         shm.EventType
	life        life
	start, stop int64
	tids        [2]int32 // of start and stop
	comm        commKey
	parent      address
	address     address
	pxn         bool
	function    string
	gpu         string
	details     *details

	handle uint64
	index  int // of the communicator, −1: not known
}

// life tells lifecycle records from others.
type life uint8

const (
	lifeNone life = iota
	lifeInit
	lifeFinal
)

// commKey is what events name their communicator rank by.
type commKey struct {
	id    uint64
	rank  int32
	known bool
}

// state is a state record.
type state struct {
	time    int64
	address address
	state   uint32
	tid     int32
	arg     uint64
	hasArg  bool
}

// typeNames are the types of events by their names in records.
var typeNames = func() map[string]shm.EventType {
	all := make(map[string]shm.EventType)
	for t, name := range shm.EventNames {
		all["ncclProfile"+name] = shm.EventType(t)
	}
	return all
}()

const lifecycle = "ProfilerLifecycle"

// stateNumbers are the states by their names.
var stateNumbers = func() map[string]uint32 {
	all := make(map[string]uint32)
	for s := uint32(0); !strings.HasPrefix(shm.StateName(s), "State("); s++ {
		all[shm.StateName(s)] = s
	}
	return all
}()

// add takes an event record. It returns why the record is of no use, "" if it is.
func (m *minimal) add(l *line) (unused string) {
	e := event{
		start: l.Start.Time.ns, stop: l.Stop.Time.ns, parent: l.Parent, address: l.Address, pxn: l.PXN, function: l.Func, gpu: l.GPU,
		details: l.Details, index: -1,
	}
	for i, s := range []*stamp{l.Start, l.Stop} {
		if s.TID != nil && *s.TID > 0 {
			e.tids[i] = *s.TID
		}
	}
	if e.details == nil {
		e.details = new(details)
	}
	if l.CommID != nil && l.Rank != nil && *l.Rank >= 0 && !l.PXN {
		if id, err := strconv.ParseUint(string(*l.CommID), 10, 64); err == nil {
			e.comm = commKey{id, *l.Rank, true}
		}
	}
	if l.Type == lifecycle {
		switch l.Func {
		case "ProfilerInit":
			e.life = lifeInit
		case "ProfilerFinalize":
			e.life = lifeFinal
		default:
			return "OTHER_LIFECYCLE"
		}
		if !e.comm.known {
			return "LIFECYCLE_WITHOUT_COMMUNICATOR"
		}
		d := e.details
		if e.life == lifeInit {
			m.ours = m.ours || d.Writer == "nccl-otf2"
			m.host = cmp.Or(m.host, d.Host)
			if d.Epoch.known {
				m.epoch = d.Epoch
			}
			if v, err := strconv.Atoi(d.API); err == nil && v > 0 && v <= maxAPI {
				m.api = v
			}
			if r, n := d.WorldRank, d.WorldSize; r != nil && *r >= 0 && *r < n && n <= maxRanks {
				m.world = shard.Launcher{Name: "imported", Rank: *r, Size: n}
			}
			if d.EventMask != nil {
				m.mask |= *d.EventMask
			}
			if d.Ranks != nil && (*d.Ranks < 0 || *d.Ranks > maxRanks || int(e.comm.rank) >= max(*d.Ranks, 1)) {
				return "IMPOSSIBLE_RANKS"
			}
		}
	} else {
		t, ok := typeNames[l.Type]
		switch {
		case !ok:
			return "UNKNOWN_TYPES"
		case l.PXN:
			return "OTHER_PROCESSES_EVENTS" // nothing tells whose
		case t == shm.EventKernelCh && e.details.Timer == nil:
			return "KERNELS_WITHOUT_GPU_STAMPS"
		case !e.comm.known && t != shm.EventGroupApi:
			return "EVENTS_OF_UNKNOWN_COMMUNICATORS"
		}
		e.typ = t
		m.seen |= 1 << t
	}
	m.events = append(m.events, e)
	return ""
}

func (m *minimal) addState(l *line) (unused string) {
	s := state{time: l.Time.ns, address: l.Address}
	number, known := stateNumbers[strings.TrimPrefix(l.Name, "ncclProfiler")]
	switch {
	case known:
		s.state = number
	case l.ID != nil:
		s.state = *l.ID
	default:
		return "UNKNOWN_STATES"
	}
	if l.TID != nil && *l.TID > 0 {
		s.tid = *l.TID
	}
	for _, v := range []*uint64{l.Size, l.Timer, l.Appended} {
		if v != nil {
			s.arg, s.hasArg = *v, true
		}
	}
	m.states = append(m.states, s)
	return ""
}

// missing lists what the data does not tell.
func (m *minimal) missing() []string {
	if m.ours {
		return []string{"phases of transfers", "rows of channels, GPU stamps", "metrics", "kernels of other programs", "phases of the application", "communicators of one rank", "markers"}
	}
	out := []string{"date and time of day", "names of hosts", "API version", "library"}
	return out
}

// First and last times of what was recorded, and when communicators were made.
func (m *minimal) span() (first, last int64) {
	first, last = math.MaxInt64, math.MinInt64
	for i := range m.events {
		first, last = min(first, m.events[i].start), max(last, m.events[i].stop)
	}
	for i := range m.states {
		first, last = min(first, m.states[i].time), max(last, m.states[i].time)
	}
	return first, last
}

// maxDevices bounds what is taken for the number of a GPU.
const maxDevices = 1 << 16

// instance is a communicator rank from its init to its end.
type instance struct {
	index int
	init  int64
}

// resolve finds the communicators and gives every event its own.
func (m *minimal) resolve(p *processWriter, base uint64) {
	byKey := make(map[commKey][]instance)
	at := func(t int64) uint64 { return base + uint64(t) }
	add := func(e *event, ranks, nodes int, name string) int {
		i := len(p.comms)
		p.comms = append(p.comms, shard.Comm{ID: e.comm.id, Name: name, NRanks: ranks, Rank: int(e.comm.rank), NNodes: nodes, InitTime: at(e.start)})
		gpu := shard.GPU{Device: -1, UUID: e.gpu}
		if d := e.details.Device; d != nil && *d >= 0 && *d < maxDevices {
			gpu.Device = *d
		}
		p.gpus = append(p.gpus, gpu)
		byKey[e.comm] = append(byKey[e.comm], instance{i, e.start})
		return i
	}
	for i := range m.events {
		e := &m.events[i]
		if !e.comm.known {
			continue
		}
		if e.life == lifeInit {
			d := e.details
			ranks := 0
			if d.Ranks != nil {
				ranks = *d.Ranks
			}
			name := d.CommName
			if strings.HasPrefix(name, "ncclComm 0x") { // what archives call those without a name
				name = ""
			}
			e.index = add(e, ranks, d.Nodes, name)
			continue
		}
		all := byKey[e.comm]
		if len(all) == 0 {
			if e.life == lifeFinal {
				p.count("ENDS_OF_UNKNOWN_COMMUNICATORS", 1)
				continue
			}
			p.count("COMMUNICATORS_WITHOUT_INIT", 1)
			e.index = add(e, 0, 0, "")
			continue
		}
		e.index = all[len(all)-1].index
	}
}

// step is a moment of an event or state.
type step struct {
	time  int64
	class uint8 // order at one time
	at    int32 // index into events or states
	kind  stepKind
}

type stepKind uint8

const (
	stepStart stepKind = iota
	stepState
	stepStop
)

// depths order the starts of one time: parents come before their children.
var depths = [shm.TypeCount]uint8{
	shm.EventGroupApi: 1, shm.EventCollApi: 2, shm.EventP2pApi: 2, shm.EventKernelLaunch: 3, shm.EventGroup: 4, shm.EventColl: 5, shm.EventP2p: 5,
	shm.EventCeColl: 5, shm.EventProxyOp: 6, shm.EventProxyStep: 7, shm.EventKernelCh: 6, shm.EventCeSync: 6, shm.EventCeBatch: 6,
	shm.EventNetPlugin: 8, shm.EventKernelPhase: 7, shm.EventProxyCtrl: 6,
}

// Classes order the steps of one time: parents begin before their children and stop after them.
const (
	classEarlierStop = 10 // less the depth
	classInit        = 15
	classStart       = 20 // and the depth
	classState       = 40
	classStop        = 60 // less the depth: of what starts at the same time
	classFinal       = 70
)

func (m *minimal) steps() []step {
	all := make([]step, 0, 2*len(m.events)+len(m.states))
	for i := range m.events {
		e := &m.events[i]
		depth := depths[e.typ]
		switch e.life {
		case lifeInit:
			all = append(all, step{e.start, classInit, int32(i), stepStart})
			continue
		case lifeFinal:
			all = append(all, step{e.start, classFinal, int32(i), stepStart})
			continue
		}
		if e.tells() { // its records come together, when its call has ended, as NCCL has it
			all = append(all, step{e.stop, classStart + depth, int32(i), stepStart})
			continue
		}
		all = append(all, step{e.start, classStart + depth, int32(i), stepStart})
		stop := step{e.stop, classEarlierStop - depth, int32(i), stepStop}
		if e.stop == e.start {
			stop.class = classStop - depth
		}
		all = append(all, stop)
	}
	for i := range m.states {
		all = append(all, step{m.states[i].time, classState, int32(i), stepState})
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.class, b.class)) })
	return all
}

// thread is that of an event's start (0) or stop (1). Of those without one, each communicator rank's are of one thread.
func (e *event) thread(end int) int32 {
	if e.tids[end] != noThread {
		return e.tids[end]
	}
	return int32(-2 - e.index)
}

// tells reports whether a record gives the times of an operation itself, not of its callbacks.
func (e *event) tells() bool {
	return e.details.Source != "" && (e.typ == shm.EventColl || e.typ == shm.EventP2p || e.typ == shm.EventCeColl)
}

// waits are the event types that the model waits for, where operations are not told.
const waits = 1<<shm.EventKernelCh | 1<<shm.EventProxyOp

// write makes the process's shard; base is the time of the input's time 0.
func (m *minimal) write(p *processWriter, base uint64) error {
	slices.SortStableFunc(m.events, func(a, b event) int { return cmp.Compare(a.start, b.start) })
	mask := m.seen
	if m.ours {
		mask &^= waits
	}
	if m.world.Size > 0 {
		p.process.Launcher = m.world
	}
	p.begin(mask, cmp.Or(m.api, minimalAPI))
	m.resolve(p, base)
	w := &minimalWriter{minimal: m, p: p, base: base, now: make(map[address]uint64), first: make(map[address]uint64), live: make(map[uint64]liveEvent), plans: make(map[planKey][]int32)}
	for i := range m.events {
		e := &m.events[i]
		e.handle = p.handle(e.typ)
		if e.address != 0 {
			if _, ok := w.first[e.address]; !ok {
				w.first[e.address] = e.handle
			}
		}
		if e.tells() && e.details.Plan != nil {
			k := planKey{e.index, *e.details.Plan}
			w.plans[k] = append(w.plans[k], int32(i))
		}
	}
	for _, s := range m.steps() {
		if err := w.step(&s); err != nil {
			return err
		}
	}
	return nil
}

// minimalAPI is the version of NCCL's profiler API that the minimal profiler is written for, maxAPI the newest.
const (
	minimalAPI = 5
	maxAPI     = 7
)

// minimalWriter turns records into callbacks.
type minimalWriter struct {
	*minimal
	p     *processWriter
	base  uint64
	now   map[address]uint64 // the event that has an address at the time
	first map[address]uint64 // the first one that has it
	live  map[uint64]liveEvent
	plans map[planKey][]int32 // operations of one launch, in order
}

type planKey struct {
	comm int
	plan uint64
}

// liveEvent is an event between its start and its stop.
type liveEvent struct {
	op     uint64 // handle of the ProxyOp that was made for a step; 0: none
	thread int32
}

// parentOf gives the event that an address means now. In our own export a child may begin before its parent does, and
// addresses are used once.
func (w *minimalWriter) parentOf(a address) uint64 {
	if a == 0 {
		return 0
	}
	if h, ok := w.now[a]; ok {
		return h
	}
	return w.first[a]
}

func (w *minimalWriter) step(s *step) error {
	switch s.kind {
	case stepState:
		return w.state(&w.states[s.at])
	case stepStop:
		return w.stop(&w.events[s.at])
	}
	e := &w.events[s.at]
	t := w.base + uint64(e.start)
	switch {
	case e.life != lifeNone:
		kind := shm.RecordInit
		if e.life == lifeFinal {
			kind = shm.RecordFinalize
		}
		if e.index < 0 {
			return nil
		}
		w.p.count("EVENTS", 1)
		return w.p.record(e.thread(0), t, &shm.Record{Kind: kind, Aux: uint32(e.index)})
	case e.tells():
		return w.told(s.at)
	}
	w.p.count("EVENTS", 1)
	return w.start(e)
}

// start writes the start of an event.
func (w *minimalWriter) start(e *event) error {
	if e.address != 0 {
		w.now[e.address] = e.handle
	}
	live := liveEvent{thread: e.thread(0)}
	r := w.startRecord(e)
	t := w.base + uint64(e.start)
	if d := e.details; e.typ == shm.EventProxyStep && shm.TypeOf(r.Arg) != shm.EventProxyOp && d.Peer != nil && d.Channel != nil {
		// Our export has no ProxyOps: the step tells what is theirs.
		live.op = w.p.handle(shm.EventProxyOp)
		op := shm.Record{
			Kind: shm.RecordStart, Type: shm.EventProxyOp, Handle: live.op, Aux: r.Aux, Arg: r.Arg, Channel: *d.Channel, Peer: *d.Peer,
			Rank: e.comm.rank, PID: int32(w.pid),
		}
		if d.IsSend {
			op.Flags |= shm.FlagSend
		}
		if err := w.p.record(e.thread(0), t, &op); err != nil {
			return err
		}
		r.Arg = live.op
	}
	w.live[e.handle] = live
	return w.p.record(e.thread(0), t, r)
}

// startRecord makes the callback of an event's start.
func (w *minimalWriter) startRecord(e *event) *shm.Record {
	d := e.details
	r := &shm.Record{
		Kind: shm.RecordStart, Type: e.typ, Handle: e.handle, Aux: shm.None, Arg: w.parentOf(e.parent), Func: cmp.Or(d.Func, e.function), Datatype: d.Datatype,
		Algo: d.Algo, Proto: d.Proto, Stream: uint64(d.Stream), Root: -1, Rank: e.comm.rank, UserTag: d.UserTag, KernelVariant: d.Variant,
		SendBuff: uint64(d.SendBuff), RecvBuff: uint64(d.RecvBuff), ParentGroup: w.parentOf(d.ParentGroup), NSteps: d.Steps, ChunkSize: d.ChunkSize,
		Step: d.Step, NetID: d.NetID, PID: d.EventPID,
	}
	if e.index >= 0 {
		r.Aux = uint32(e.index)
	}
	for _, f := range []struct {
		from *uint64
		to   *uint64
	}{{d.Count, &r.Count}, {d.Seq, &r.Seq}, {d.Timer, &r.PTimer}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	for _, f := range []struct {
		from *uint8
		to   *uint8
	}{{d.Channels, &r.NChannels}, {d.Warps, &r.NWarps}, {d.Channel, &r.Channel}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if d.Root != nil {
		r.Root = *d.Root
	}
	if d.Peer != nil {
		r.Peer = *d.Peer
	}
	if d.Captured {
		r.Flags |= shm.FlagGraph
	}
	if d.IsSend {
		r.Flags |= shm.FlagSend
	}
	switch e.typ {
	case shm.EventGroupApi:
		r.GroupDepth = 2 // not told: a group of the user's
		if d.Depth != nil {
			r.GroupDepth = *d.Depth
		}
	case shm.EventP2p:
		r.SendBuff = uint64(d.Buff)
		if d.Channels == nil {
			r.Flags |= shm.FlagUnknownChannels
		}
	}
	return r
}

func (w *minimalWriter) stop(e *event) error {
	t := w.base + uint64(e.stop)
	if err := w.p.record(e.thread(1), t, &shm.Record{Kind: shm.RecordStop, Type: e.typ, Handle: e.handle}); err != nil {
		return err
	}
	op := w.live[e.handle].op
	delete(w.live, e.handle)
	if op == 0 {
		return nil
	}
	return w.p.record(e.thread(1), t, &shm.Record{Kind: shm.RecordStop, Type: shm.EventProxyOp, Handle: op})
}

func (w *minimalWriter) state(s *state) error {
	h, ok := w.now[s.address]
	if !ok {
		w.p.count("STATES_WITHOUT_EVENT", 1)
		return nil
	}
	r := shm.Record{Kind: shm.RecordState, Type: shm.TypeOf(h), Handle: h, Aux: s.state, Arg: s.arg}
	if s.hasArg {
		r.Flags |= shm.FlagHasArg
	}
	w.p.count("STATES", 1)
	thread := s.tid
	if thread == noThread {
		thread = w.live[h].thread
	}
	return w.p.record(thread, w.base+uint64(s.time), &r)
}

// told writes the operations of a launch whose times the input tells: a Group with all of them, which takes no time.
func (w *minimalWriter) told(at int32) error {
	e := &w.events[at]
	ops := []int32{at}
	if e.details.Plan != nil {
		k := planKey{e.index, *e.details.Plan}
		if ops = w.plans[k]; len(ops) == 0 {
			return nil // written with the first one
		}
		w.plans[k] = nil
	}
	t := w.base + uint64(e.stop)
	group := w.p.handle(shm.EventGroup)
	write := func(r *shm.Record) error { return w.p.record(noThread, t, r) }
	if err := write(&shm.Record{Kind: shm.RecordStart, Type: shm.EventGroup, Handle: group, Aux: uint32(e.index)}); err != nil {
		return err
	}
	for _, i := range ops {
		op := &w.events[i]
		d := op.details
		told := regions.Told{Begin: w.base + uint64(op.start), End: w.base + uint64(op.stop), Source: d.Source, Graph: d.Graph}
		if d.Uncertainty != nil {
			told.Uncertainty, told.Stated = *d.Uncertainty, true
		}
		w.p.model.Tell(op.handle, told)
		if op.address != 0 {
			w.now[op.address] = op.handle
		}
		r := w.startRecord(op)
		r.ParentGroup = group
		w.p.count("EVENTS", 1)
		if err := write(r); err != nil {
			return err
		}
	}
	for _, i := range ops {
		op := &w.events[i]
		if op.details.Unfinished {
			continue
		}
		if err := write(&shm.Record{Kind: shm.RecordStop, Type: op.typ, Handle: op.handle}); err != nil {
			return err
		}
	}
	return write(&shm.Record{Kind: shm.RecordStop, Type: shm.EventGroup, Handle: group})
}
