// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"reflect"

	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Raw events, on request (Options.Raw): each event that NCCL reports is a region on a row of its kind, from its start
// callback to its stop callback, with the members of its descriptor, and each of its states is a point inside. The
// other rows interpret the events; these show them as they came. Regions and states have NCCL's own names; members are
// those of plugin/api's table.
//
// Times are those of the callbacks, even for KernelCh: the GPU's own times are attributes, as NCCL passed them.

// Prefixes of NCCL's names of event types and states (docs/nccl-profiler-api.md §2.2, §2.3).
const (
	EventPrefix = "ncclProfile"
	StatePrefix = "ncclProfiler"
)

// Bounds of memory: NCCL does not stop every event that it starts.
const (
	maxRawOpen = 65536
	maxRawRows = 256 // rows of one kind
)

// rawKind is the key of events that may share rows.
type rawKind struct {
	comm    int // index into Process.Comms; −1: none of this process
	event   shm.EventType
	channel int // −1: it has none
	way     string
}

// rawRow is a row of a kind. Events of a kind overlap; each occupies its row from start to stop.
type rawRow struct {
	loc  *location
	busy bool
}

// rawState is a state of an event.
type rawState struct {
	at     uint64 // ns
	tid    int    // of the thread that reported it; 0: not known
	state  uint32
	arg    uint64
	steps  int32 // of a ProxyOp so far, to API v3
	hasArg bool
}

// rawEvent is an event that has not stopped.
type rawEvent struct {
	kind   rawKind
	row    *rawRow // nil: there are too many rows
	tid    int     // of the thread that reported its start; 0: not known
	start  uint64  // ns
	record shm.Record
	states []rawState
}

// raw draws the events as they were reported.
type raw struct {
	*board
	process *description.Process
	ranks   *ranks
	open    bounded.Map[*rawEvent]
	rows    map[rawKind][]*rawRow
	free    []*rawEvent
}

func newRaw(b *board, p *description.Process, rs *ranks) *raw {
	return &raw{board: b, process: p, ranks: rs, open: bounded.New[*rawEvent](maxRawOpen),
		rows: make(map[rawKind][]*rawRow)}
}

// takeRecord takes a start, stop or state. The record is not kept.
func (w *raw) takeRecord(th *thread, t uint64, r *shm.Record) {
	switch r.Kind {
	case shm.RecordStart:
		w.startEvent(th, t, r)
	case shm.RecordStop:
		if e := w.open.Get(r.Handle); e != nil {
			w.open.Remove(r.Handle)
			w.writeEvent(e, t, th.tid, false)
		}
	case shm.RecordState:
		s := rawState{at: t, tid: th.tid, state: r.Aux, arg: r.Arg, steps: r.Steps, hasArg: r.Flags&shm.FlagHasArg != 0}
		if e := w.open.Get(r.Handle); e != nil {
			e.states = append(e.states, s)
			return
		}
		w.drawStray(r, s)
	}
}

func (w *raw) startEvent(th *thread, t uint64, r *shm.Record) {
	e := &rawEvent{}
	if n := len(w.free); n > 0 {
		e, w.free = w.free[n-1], w.free[:n-1]
	}
	*e = rawEvent{kind: w.kindOf(r), tid: th.tid, start: t, record: *r, states: e.states[:0]}
	e.row = w.findRow(e.kind, t)
	if oldest, full := w.open.Put(r.Handle, e); full {
		w.writeEvent(oldest, t, oldest.tid, true)
	}
}

// kindOf returns the kind of an event. Transfers, and the network plugins' events of them, have the channel and the
// direction of their ProxyOp.
func (w *raw) kindOf(r *shm.Record) rawKind {
	p := rawKind{comm: -1, event: r.Type, channel: -1}
	if c := w.ranks.rankOf(r.Aux); c != nil {
		p.comm = c.index
	}
	switch r.Type {
	case shm.EventProxyOp:
		p.channel, p.way = int(r.Channel), recvEvents
		if r.Flags&shm.FlagSend != 0 {
			p.way = sendEvents
		}
	case shm.EventKernelCh, shm.EventKernelPhase:
		p.channel = int(r.Channel)
	case shm.EventProxyStep, shm.EventNetPlugin:
		if parent := w.open.Get(r.Arg); parent != nil {
			p.comm, p.channel, p.way = parent.kind.comm, parent.kind.channel, parent.kind.way
		}
	}
	return p
}

// findRow returns a row of the kind that is free at a time, a new one if necessary; nil if there are too many.
func (w *raw) findRow(p rawKind, t uint64) *rawRow {
	for _, l := range w.rows[p] {
		if !l.busy && uint64(l.loc.w.LastTime()) <= t {
			l.busy = true
			return l
		}
	}
	n := len(w.rows[p])
	if n == maxRawRows {
		w.countOddity(oddNoRow)
		return nil
	}
	loc, err := w.newLocation(description.KindEvent, otf2.LocationTypeCPUThread, w.rowName(p, n), p.comm, -1)
	if w.board.keepError(err) {
		return nil
	}
	l := &rawRow{loc, true}
	w.rows[p] = append(w.rows[p], l)
	return l
}

func (w *raw) rowName(p rawKind, n int) string {
	label := PXNRow[:len(PXNRow)-1]
	if p.comm >= 0 {
		label = w.ranks.all[p.comm].label
	}
	name := label + EventRow + p.event.String()
	if p.channel >= 0 {
		name += fmt.Sprintf(ChannelRow+"%02d", p.channel)
	}
	return fmt.Sprintf("%s%s %d", name, p.way, n)
}

// writeEvent draws an event that a thread has stopped, and frees its row.
func (w *raw) writeEvent(e *rawEvent, t uint64, tid int, unfinished bool) {
	if e.row != nil {
		loc := e.row.loc
		region := w.defs.regionRef(EventPrefix+e.record.Type.String(), GroupEvents, otf2.RegionRoleFunction)
		a := w.emptyAttributes()
		w.addEventAttributes(a, &e.record)
		rawThread(a, e.tid, 0)
		if unfinished {
			a.Uint8(AttrUnfinished, 1)
		}
		w.board.keepError(loc.w.Enter(loc.raiseTime(e.start), a, region))
		for i := range e.states {
			a := w.emptyAttributes()
			rawThread(a, e.states[i].tid, e.tid)
			w.drawState(loc, a, &e.states[i])
		}
		a = w.emptyAttributes()
		rawThread(a, tid, e.tid)
		w.board.keepError(loc.w.Leave(loc.raiseTime(t), a, region))
		e.row.busy = false
	}
	if len(w.free) < maxRawRows {
		e.record = shm.Record{} // its strings
		w.free = append(w.free, e)
	}
}

// rawThread names the reporting thread if it is known and differs from the one of the event's start.
func rawThread(a *otf2.AttributeList, tid, start int) {
	if tid != 0 && tid != start {
		a.Uint32(AttrTID, uint32(tid))
	}
}

// drawState draws a state: a region without duration, with the attributes given and the state's argument.
func (w *raw) drawState(loc *location, a *otf2.AttributeList, s *rawState) {
	if s.hasArg {
		a.Uint64(AttrArgument, s.arg)
	}
	if s.steps > 0 {
		a.Uint32(AttrSteps, uint32(s.steps))
	}
	w.writeRegion(loc, s.at, s.at, a, w.defs.regionRef(
		StatePrefix+shm.StateName(s.state), GroupStates, otf2.RegionRoleArtificial))
}

// drawStray draws a state of an event that is not open: before its start or after its stop.
func (w *raw) drawStray(r *shm.Record, s rawState) {
	l := w.findRow(rawKind{comm: -1, event: r.Type, channel: -1, way: strayEvents}, s.at)
	if l == nil {
		return
	}
	l.busy = false
	a := w.emptyAttributes()
	a.Uint64(AttrEventID, r.Handle)
	rawThread(a, s.tid, 0)
	w.drawState(l.loc, a, &s)
}

// endOpenEvents draws what is still open.
func (w *raw) endOpenEvents(t uint64) {
	for h := range w.open.Sorted() {
		e := w.open.Get(h)
		w.writeEvent(e, t, e.tid, true)
		w.open.Remove(h)
	}
}

// addEventAttributes writes an event's ids and the members of its descriptor.
func (w *raw) addEventAttributes(a *otf2.AttributeList, r *shm.Record) {
	a.Uint64(AttrEventID, r.Handle)
	if r.Arg != 0 {
		a.Uint64(AttrParentID, r.Arg)
	}
	w.addRank(a, r)
	v := reflect.ValueOf(r).Elem()
	for _, m := range rawMembers[r.Type] {
		if m.flag != 0 {
			if r.Flags&m.flag != 0 {
				a.Uint8(m.attribute, 1)
			}
			continue
		}
		if r.Type == shm.EventNetPlugin && !knownOfNet(r, m.attribute) {
			continue
		}
		if m.isReported(w.process) {
			w.addMember(a, m.attribute, v.Field(m.field))
		}
	}
}

// addRank adds the communicator and the rank. A descriptor without a rank, as of calls, gets that of the communicator
// rank.
func (w *raw) addRank(a *otf2.AttributeList, r *shm.Record) {
	c := w.ranks.rankOf(r.Aux)
	known := c != nil && c.life.announced
	if known && c.NRanks >= 2 {
		a.Comm(AttrComm, otf2.CommRef(c.index))
	}
	switch {
	case api.Events[r.Type].Ranked:
		if r.Rank >= 0 {
			a.Uint32(AttrRank, uint32(r.Rank))
		}
	case known && c.NRanks > 0 && c.Rank >= 0:
		a.Uint32(AttrRank, uint32(c.Rank))
	}
}

// knownOfNet reports whether a network plugin's event has a member: sockets have no queue pairs.
func knownOfNet(r *shm.Record, attribute otf2.AttributeRef) bool {
	switch attribute {
	case AttrNetID:
		return true
	case AttrWorkRequest, AttrOpcode, AttrQP:
		return r.Flags&shm.FlagKnownNet != 0 && r.NetID>>16&0xffff == pluginIB
	}
	return r.Flags&shm.FlagKnownNet != 0
}

// addMember adds one member. NULL and numbers below 0, which mean none, are left out.
func (w *raw) addMember(a *otf2.AttributeList, attribute otf2.AttributeRef, v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		if v.Len() > 0 {
			a.String(attribute, w.defs.stringRef(v.String()))
		}
	case v.CanInt():
		if v.Int() >= 0 {
			a.Add(attribute, Attributes[attribute].Type, otf2.Value(v.Int()))
		}
	default:
		a.Add(attribute, Attributes[attribute].Type, otf2.Value(v.Uint()))
	}
}

// rawMember is a member of a descriptor: its place in records, and its attribute.
type rawMember struct {
	attribute otf2.AttributeRef
	field     int             // of shm.Record
	flag      shm.RecordFlags // in place of a field
	of        *api.Member
}

// isReported reports whether the descriptors of the process's NCCL have the member: records of others have a
// meaningless 0.
func (m *rawMember) isReported(p *description.Process) bool {
	return p.APIVersion == 0 || m.of.Delivered(p.APIVersion)
}

// memberAttributes maps fields and flags of the record to the attributes for descriptor members. Data, an address
// without meaning, is left out.
var memberAttributes = map[string]otf2.AttributeRef{
	"Seq": AttrSeq, "Func": AttrFunction, "SendBuff": AttrSendBuff, "RecvBuff": AttrRecvBuff, "Count": AttrCount,
	"Root":     AttrRoot,
	"Datatype": AttrDatatype, "NChannels": AttrChannels, "NWarps": AttrWarps, "Algo": AttrAlgo, "Proto": AttrProto,
	"ParentGroup":   AttrPlanID,
	"KernelVariant": AttrKernelVariant, "UserTag": AttrUserTag, "Stream": AttrStream, "GroupDepth": AttrGroupDepth,
	"GRAPH": AttrGraph,
	"SYM":   AttrSymmetric, "Peer": AttrPeer, "Channel": AttrChannel,

	"PID": AttrProxyPID, "NSteps": AttrSteps, "ChunkSize": AttrChunkSize, "Step": AttrStep, "SEND": AttrSend,
	"NetID": AttrNetID, "Length": AttrBytes, "WrID": AttrWorkRequest, "DeviceOrFD": AttrNetDevice, "Opcode": AttrOpcode,
	"QP": AttrQP,

	"PTimer": AttrGPUTimer, "Phase": AttrPhase, "PhaseName": AttrPhaseName,

	"SyncStrategy": AttrSyncStrategy, "BatchSize": AttrBatchSize, "NumBatches": AttrBatches, "CeSeq": AttrCeSeq,
	"NRanks": AttrSyncRanks,
	"NumOps": AttrBatchOps, "Bytes": AttrBytes, "COMPLETE": AttrComplete,
}

// rawMembers lists the members of each event type in records.
var rawMembers = func() (all [shm.TypeCount][]rawMember) {
	record := reflect.TypeFor[shm.Record]()
	for t := range all {
		for i := range api.Events[t].Members {
			m := &api.Events[t].Members[i]
			if attribute, ok := memberAttributes[m.Flag]; ok {
				all[t] = append(all[t], rawMember{attribute: attribute, flag: shm.FlagsByName[m.Flag], of: m})
			}
			if attribute, ok := memberAttributes[m.Go]; ok {
				f, _ := record.FieldByName(m.Go)
				all[t] = append(all[t], rawMember{attribute: attribute, field: f.Index[0], of: m})
			}
		}
		if shm.EventType(t) == shm.EventNetPlugin { // a socket's op
			all[t] = append(all[t], rawMember{attribute: AttrSend, flag: shm.FlagSend})
		}
	}
	return all
}()
