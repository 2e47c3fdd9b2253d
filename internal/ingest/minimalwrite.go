// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// awaited are the event types that the model waits for, unless operation times are in the records.
const awaited = 1<<shm.EventKernelCh | 1<<shm.EventProxyOp

// write writes the process's shard; base is the time of the input's time 0.
func (m *minimal) write(p *processWriter, base uint64) error {
	slices.SortStableFunc(m.events, func(a, b event) int { return cmp.Compare(a.start, b.start) })
	mask := m.seen
	if m.ours && !m.raw {
		mask &^= awaited
		p.noPhases = true
	}
	if m.world.Size > 0 {
		p.process.Launcher = m.world
	}
	p.startModel(mask, cmp.Or(m.api, minimalAPI))
	m.resolve(p, base)
	w := &minimalWriter{minimal: m, p: p, base: base, now: make(map[address]uint64), first: make(map[address]uint64),
		live: make(map[uint64]liveEvent), plans: make(map[planKey][]int32)}
	for i := range m.events {
		e := &m.events[i]
		e.handle = p.newHandle(e.typ)
		if e.address != 0 {
			if _, ok := w.first[e.address]; !ok {
				w.first[e.address] = e.handle
			}
		}
		if e.hasOperationTimes() && e.details.Plan != nil {
			k := planKey{e.index, *e.details.Plan}
			w.plans[k] = append(w.plans[k], int32(i))
		}
	}
	for _, s := range m.steps() {
		w.writeWork(s.time)
		if err := w.writeStep(&s); err != nil {
			return err
		}
	}
	w.writeWork(math.MaxInt64)
	return nil
}

// writeWork writes the kernels of the application that ended before a time.
func (w *minimalWriter) writeWork(before int64) {
	work := w.work
	for work != nil && len(work.kernels) > 0 && work.kernels[0].end < before {
		k := &work.kernels[0]
		w.p.model.ImportKernel(&cupti.Kernel{Start: w.base + uint64(k.begin), End: w.base + uint64(k.end),
			Device: work.device, Stream: k.stream}, work.names[k.name])
		work.kernels = work.kernels[1:]
	}
}

// minimalAPI is the version of NCCL's profiler API for which the minimal profiler is written.
const minimalAPI = 5

// minimalWriter turns records into callbacks.
type minimalWriter struct {
	*minimal
	p     *processWriter
	base  uint64
	now   map[address]uint64 // the event that has an address at present
	first map[address]uint64 // the first event that had it
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

// parentOf returns the event that an address refers to at present. In our own export a child may begin before its
// parent, and each address is used once.
func (w *minimalWriter) parentOf(a address) uint64 {
	if a == 0 {
		return 0
	}
	if h, ok := w.now[a]; ok {
		return h
	}
	return w.first[a]
}

func (w *minimalWriter) writeStep(s *step) error {
	switch s.kind {
	case stepState:
		return w.writeState(&w.states[s.at])
	case stepStop:
		return w.writeStop(&w.events[s.at])
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
		return w.p.passRecord(e.thread(0), t, &shm.Record{Kind: kind, Aux: uint32(e.index)})
	case e.hasOperationTimes():
		return w.writeStated(s.at)
	}
	w.p.count("EVENTS", 1)
	return w.writeStart(e)
}

// start writes the start of an event.
func (w *minimalWriter) writeStart(e *event) error {
	if e.address != 0 {
		w.now[e.address] = e.handle
	}
	live := liveEvent{thread: e.thread(0)}
	r := w.startRecord(e)
	t := w.base + uint64(e.start)
	if d := e.details; e.typ == shm.EventProxyStep && shm.TypeOf(r.Arg) != shm.EventProxyOp && d.Peer != nil &&
		d.Channel != nil {
		// Our export has no ProxyOps; the step's record has their details.
		live.op = w.p.newHandle(shm.EventProxyOp)
		op := shm.Record{
			Kind: shm.RecordStart, Type: shm.EventProxyOp, Handle: live.op, Aux: r.Aux, Arg: r.Arg, Channel: *d.Channel,
			Peer: *d.Peer,
			Rank: e.comm.rank, PID: int32(w.pid),
		}
		if d.IsSend {
			op.Flags |= shm.FlagSend
		}
		if err := w.p.passRecord(e.thread(0), t, &op); err != nil {
			return err
		}
		r.Arg = live.op
	}
	w.live[e.handle] = live
	if n := e.details.Ordinal; n != nil && w.format != nil && e.typ == shm.EventColl {
		w.p.model.Import(e.handle, regions.Imported{Ordinal: *n, Numbered: true})
	}
	return w.p.passRecord(e.thread(0), t, r)
}

// startRecord makes the callback of an event's start.
func (w *minimalWriter) startRecord(e *event) *shm.Record {
	d := e.details
	r := &shm.Record{
		Kind: shm.RecordStart, Type: e.typ, Handle: e.handle, Aux: shm.None, Arg: w.parentOf(e.parent),
		Func: cmp.Or(d.Func, e.function), Datatype: d.Datatype,
		Algo: d.Algo, Proto: d.Proto, Stream: uint64(d.Stream), Root: -1, Rank: e.comm.rank, UserTag: d.UserTag,
		KernelVariant: d.Variant,
		SendBuff:      uint64(d.SendBuff), RecvBuff: uint64(d.RecvBuff), ParentGroup: w.parentOf(d.ParentGroup),
		NSteps: d.Steps, ChunkSize: d.ChunkSize,
		Step: d.Step, NetID: d.NetID, PID: d.EventPID,
	}
	if e.index >= 0 {
		r.Aux = uint32(e.index)
	}
	setKnown(&r.Count, d.Count)
	setKnown(&r.Seq, d.Seq)
	setKnown(&r.PTimer, d.Timer)
	setKnown(&r.NChannels, d.Channels)
	setKnown(&r.NWarps, d.Warps)
	setKnown(&r.Channel, d.Channel)
	setKnown(&r.Root, d.Root)
	setKnown(&r.Peer, d.Peer)
	if d.Captured {
		r.Flags |= shm.FlagGraph
	}
	if d.IsSend {
		r.Flags |= shm.FlagSend
	}
	switch e.typ {
	case shm.EventNetPlugin:
		if d.Length != nil {
			r.Length, r.DeviceOrFD, r.WrID, r.Opcode, r.QP = *d.Length, d.NetDevice, d.WrID, d.Opcode, d.QP
			r.Flags |= shm.FlagKnownNet
		}
	case shm.EventGroupApi:
		r.GroupDepth = 2 // not reported: a group call of the user
		setKnown(&r.GroupDepth, d.Depth)
	case shm.EventP2p:
		r.SendBuff = uint64(d.Buff)
		if d.Channels == nil {
			r.Flags |= shm.FlagUnknownChannels
		}
	}
	return r
}

func (w *minimalWriter) writeStop(e *event) error {
	t := w.base + uint64(e.stop)
	r := &shm.Record{Kind: shm.RecordStop, Type: e.typ, Handle: e.handle}
	if err := w.p.passRecord(e.thread(1), t, r); err != nil {
		return err
	}
	op := w.live[e.handle].op
	delete(w.live, e.handle)
	if op == 0 {
		return nil
	}
	return w.p.passRecord(e.thread(1), t, &shm.Record{Kind: shm.RecordStop, Type: shm.EventProxyOp, Handle: op})
}

func (w *minimalWriter) writeState(s *state) error {
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
	return w.p.passRecord(thread, w.base+uint64(s.time), &r)
}

// writeStated writes the operations of a launch whose times are in the input: a Group of no duration with all of them.
func (w *minimalWriter) writeStated(at int32) error {
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
	group := w.p.newHandle(shm.EventGroup)
	write := func(r *shm.Record) error { return w.p.passRecord(noThread, t, r) }
	if err := write(&shm.Record{Kind: shm.RecordStart, Type: shm.EventGroup, Handle: group,
		Aux: uint32(e.index)}); err != nil {
		return err
	}
	for _, i := range ops {
		op := &w.events[i]
		d := op.details
		times := regions.Imported{Begin: w.base + uint64(op.start), End: w.base + uint64(op.stop), Source: d.Source,
			Graph: bool(d.Graph)}
		// Without losses all are there, in order.
		if w.partial && d.Ordinal != nil && *d.Ordinal <= maxOrdinal && op.typ != shm.EventP2p {
			times.Ordinal, times.Numbered = *d.Ordinal, true
		}
		if w.carries {
			times.Carried = carried(d.Attributes)
		}
		times.UnderWay = regions.UnderWay(d.Attributes["UNFINISHED"]) & regions.AnyUnderWay
		if d.Uncertainty != nil {
			times.Uncertainty, times.Stated = *d.Uncertainty, true
		}
		if w.format != nil && op.typ == shm.EventColl && d.Ordinal != nil {
			times.Ordinal, times.Numbered = *d.Ordinal, true
		}
		w.p.model.Import(op.handle, times)
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

// carried returns the attributes of an operation that an export states, as far as their values are possible.
func carried(all map[string]uint64) []otf2.AttributeValue {
	out := []otf2.AttributeValue{}
	for i := range regions.Attributes {
		a := &regions.Attributes[i]
		v, ok := all[a.Name]
		fits := v <= math.MaxUint8 || a.Type == otf2.TypeUint64 || a.Type == otf2.TypeUint32 && v <= math.MaxUint32
		if ok && fits && regions.IsCarried(a.Ref) && a.Ref != regions.AttrUnfinished {
			out = append(out, otf2.AttributeValue{ID: a.Ref, Type: a.Type, Bits: v})
		}
	}
	return out
}

// setKnown sets a value to one that may be unknown, and then stays as it is.
func setKnown[T any](to, known *T) {
	if known != nil {
		*to = *known
	}
}
