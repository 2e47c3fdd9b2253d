// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Chrome traces of NCCL's example plugin (plugins/profiler/example of NCCL 2.23 to 2.30): one line for the begin ("b")
// and one for the end ("e") of an event, with the events that belong to it in between. Times are microseconds since the
// process created its first communicator. An event whose begin the plugin lacks has time 0; one whose end it lacks has
// no end. The plugin keeps the last events of each kind, so a trace may start anywhere.
type exampleArgs struct { // the case of names depends on the kind of event
	Count     *uint64      `json:"count"`
	Datatype  exampleType  `json:"datatype"`
	Root      *int32       `json:"root"`
	Number    *uint64      `json:"SeqNum"`
	Hash      *json.Number `json:"CommHash"`
	Rank      *int32       `json:"Rank"`
	Peer      *int32       `json:"Peer"`
	Algo      string       `json:"Algorithm"`
	Proto     string       `json:"Protocol"`
	Channels  *int         `json:"nChannels"`
	Most      *int         `json:"nMaxChannels"`
	Channel   *int         `json:"Channel"`
	Begin     uint64       `json:"StartGpuClk"`
	End       uint64       `json:"StopGpuClk"`
	Steps     int32        `json:"Steps"`
	ChunkSize int32        `json:"ChunkSize"`
	Step      int32        `json:"Step"`
	Stream    address      `json:"Stream"`
	Captured  boolean      `json:"GraphCaptured"`
	Depth     *int32       `json:"groupDepth"`
}

// exampleType is the name of a datatype; early versions write its number.
type exampleType string

// UnmarshalJSON reads names; the meaning of numbers is unknown.
func (e *exampleType) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*e = exampleType(s)
	}
	return nil
}

var exampleFormat = &format{from: "Chrome trace of NCCL's example plugin", whole: true, lacks: []string{
	"date and time of day", "names of hosts", "API version", "library",
	"sizes of communicators: taken from the greatest rank that is named"}}

// exampleKinds are the types of events by category; network events are distinguished by their names.
var exampleKinds = map[string]string{
	"GROUP_API": "GroupApi", "COLL_API": "CollApi", "P2P_API": "P2pApi", "KERNEL_LAUNCH": "KernelLaunch",
	"GROUP": "Group", "COLL": "Coll", "P2P": "P2p",
	"GPU": "KernelCh",
}

// examplePhases are the events that are printed in parts, with the state that each part begins and whether it is the
// first or the last part.
var examplePhases = map[string]struct {
	kind, state string
	first, last bool
}{
	"ScheduleSend": {"ProxyOp", "", true, false}, "ProgressSend": {"ProxyOp", "ProxyOpInProgress", false, true},
	"ScheduleRecv": {"ProxyOp", "", true, false}, "ProgressRecv": {"ProxyOp", "ProxyOpInProgress", false, true},
	"SendGpuWait":   {"ProxyStep", "ProxyStepSendGPUWait", true, false},
	"SendPeerWait":  {"ProxyStep", "ProxyStepSendPeerWait", false, false},
	"SendWait":      {"ProxyStep", "ProxyStepSendWait", false, true},
	"RecvWait":      {"ProxyStep", "ProxyStepRecvWait", true, false},
	"RecvFlushWait": {"ProxyStep", "ProxyStepRecvFlushWait", false, false},
	"RecvGpuWait":   {"ProxyStep", "ProxyStepRecvGPUWait", false, true},
}

// exampleParents are the possible parents of an event, by type.
var exampleParents = map[string][]string{
	"CollApi": {"GroupApi"}, "P2pApi": {"GroupApi"}, "KernelLaunch": {"GroupApi"}, "Coll": {"CollApi", "Group"},
	"P2p":      {"P2pApi", "Group"},
	"KernelCh": {"Coll", "P2p"}, "ProxyOp": {"Coll", "P2p"}, "ProxyStep": {"ProxyOp"},
}

// traceable checks which members such a line has.
func (l *line) traceable() error {
	switch {
	case !l.Time.known || l.StatePID == nil:
		return errors.New("an event without ts or pid")
	case l.Phase != "b" && l.Phase != "e":
		return fmt.Errorf("an event of phase %.40q", l.Phase)
	case l.Args != nil && l.Args.Number != nil && *l.Args.Number > maxOrdinal:
		return errors.New("an operation whose number no job reaches")
	case l.Args != nil && l.Args.Rank != nil && (*l.Args.Rank < 0 || *l.Args.Rank >= description.MaxRanks):
		return fmt.Errorf("rank %d: communicators have at most %d ranks", *l.Args.Rank, description.MaxRanks)
	}
	return nil
}

// exampleTrace is the content of one file, as records of the minimal profiler's schema.
type exampleTrace struct {
	*minimal
	open   []exampleOpen
	number address // of the last event
	comms  map[commKey]bool
	ranks  map[uint64]int32 // by communicator, one more than the greatest rank named
}

// exampleOpen is an event without its end so far.
type exampleOpen struct {
	kind, name string
	line       line
	latest     micros // of the events that belong to it
	hash       *json.Number
	rank       *int32
	launches   []line // whose communicator is not known yet
	gpuEnd     uint64 // stamp of a kernel's end; 0: none
}

// addExample adds a line. It returns why the line cannot be used, or "".
func (in *input) addExample(l *line) (unused string) {
	t := in.trace
	if t == nil {
		t = &exampleTrace{
			minimal: &minimal{pid: int(*l.StatePID), format: exampleFormat}, comms: make(map[commKey]bool),
			ranks:  make(map[uint64]int32),
			number: address(len(in.traces)) << 40,
		}
		in.trace, in.traces = t, append(in.traces, t)
	}
	kind := exampleKinds[l.Category]
	phase, parted := examplePhases[l.Name]
	if parted = parted && (l.Category == "PROXY" || l.Category == "NET"); parted {
		kind = phase.kind
	}
	switch {
	case kind == "":
		return "OTHER_RECORDS"
	case l.Phase == "b" && parted && !phase.first:
		if e := t.innermost(kind); e != nil {
			return t.addPhase(e, phase.state, l)
		}
		return "STATES_WITHOUT_EVENT"
	case l.Phase == "b":
		unused = t.beginEvent(kind, l)
		if parted && phase.state != "" {
			unused = cmp.Or(t.addPhase(&t.open[len(t.open)-1], phase.state, l), unused)
		}
		return unused
	case parted && !phase.last:
		return ""
	}
	return t.endEvent(kind, l)
}

// innermost returns the open event of the given types that began last; nil if there is none.
func (t *exampleTrace) innermost(kinds ...string) *exampleOpen {
	for i := len(t.open) - 1; i >= 0; i-- {
		if slices.Contains(kinds, t.open[i].kind) {
			return &t.open[i]
		}
	}
	return nil
}

// maxOpen bounds how deep events may be nested; NCCL nests five.
const maxOpen = 64

// beginEvent adds the begin of an event and ends events that are nested too deep.
func (t *exampleTrace) beginEvent(kind string, l *line) (unused string) {
	if len(t.open) == maxOpen {
		unused = t.closeFrom(0, micros{})
	}
	t.number++
	a := cmp.Or(l.Args, new(exampleArgs))
	e := exampleOpen{kind: kind, name: l.Name, latest: l.Time, hash: a.Hash, rank: a.Rank, line: line{
		Type: "ncclProfile" + kind, Func: l.Name, Address: t.number, Start: &stamp{Time: l.Time}, Details: &details{
			Func: l.Name, Seq: a.Number, Ordinal: a.Number, Algo: a.Algo, Proto: a.Proto, Count: a.Count, Root: a.Root,
			Datatype: string(a.Datatype), Peer: a.Peer,
			Stream: a.Stream, Captured: a.Captured, Depth: a.Depth, Steps: a.Steps, ChunkSize: a.ChunkSize,
			Step: a.Step, EventPID: int32(t.pid),
			IsSend: boolean(strings.Contains(l.Name, "Send")), Channels: smallNumber(cmp.Or(a.Channels, a.Most)),
			Channel: smallNumber(a.Channel),
		},
	}}
	if kind == "KernelCh" && a.Begin != 0 {
		begin := a.Begin
		e.line.Details.Timer, e.gpuEnd = &begin, a.End
	}
	if parent := t.innermost(exampleParents[kind]...); parent != nil {
		e.line.Parent = parent.line.Address
		if e.hash == nil {
			e.hash, e.rank = parent.hash, parent.rank
		}
	}
	if a.Hash != nil && a.Rank != nil {
		t.nameCommunicator(a)
	}
	t.open = append(t.open, e)
	return unused
}

// nameCommunicator notes the communicator rank of an operation, and gives it to the calls around the operation, whose
// lines lack it.
func (t *exampleTrace) nameCommunicator(a *exampleArgs) {
	for i := range t.open {
		if o := &t.open[i]; o.hash == nil {
			o.hash, o.rank = a.Hash, a.Rank
		}
	}
	id, err := strconv.ParseUint(string(*a.Hash), 10, 64)
	if err != nil {
		return
	}
	t.comms[commKey{id, *a.Rank, true}] = true
	t.ranks[id] = max(t.ranks[id], *a.Rank+1)
	if a.Peer != nil && *a.Peer < description.MaxRanks {
		t.ranks[id] = max(t.ranks[id], *a.Peer+1)
	}
}

func smallNumber(n *int) *uint8 {
	if n == nil || *n < 0 || *n > 255 {
		return nil
	}
	v := uint8(*n)
	return &v
}

func (t *exampleTrace) addPhase(e *exampleOpen, name string, l *line) (unused string) {
	if l.Time.ns == 0 {
		return "STATES_WITHOUT_TIME"
	}
	e.latest.ns = max(e.latest.ns, l.Time.ns)
	return t.addState(&line{Address: e.line.Address, Time: l.Time, Name: name})
}

// endEvent ends an event and the open events that belong to it.
func (t *exampleTrace) endEvent(kind string, l *line) (unused string) {
	_, parted := examplePhases[l.Name]
	for i := len(t.open) - 1; i >= 0; i-- {
		if e := &t.open[i]; e.kind == kind && (parted || e.name == l.Name) {
			return t.closeFrom(i, l.Time)
		}
	}
	return "ENDS_WITHOUT_BEGIN"
}

// closeFrom closes the open events from index from on. The first of them ends at time at unless that is 0, each other
// one at the end of the last event that belongs to it.
func (t *exampleTrace) closeFrom(from int, at micros) (unused string) {
	for i := len(t.open) - 1; i >= from; i-- {
		e := &t.open[i]
		stop := e.latest
		switch {
		case i == from && at.ns != 0:
			stop = at
		default:
			unused = "EVENTS_WITHOUT_END"
		}
		stop.ns = max(stop.ns, e.line.Start.Time.ns)
		e.line.Stop = &stamp{Time: stop}
		if i > 0 {
			t.open[i-1].latest.ns = max(t.open[i-1].latest.ns, stop.ns)
		}
		for k := range e.launches {
			e.launches[k].CommID, e.launches[k].Rank = e.hash, e.rank
			unused = cmp.Or(t.add(&e.launches[k]), unused)
		}
		if e.gpuEnd != 0 { // NCCL stamps the kernel's end before the stop
			unused = cmp.Or(t.addState(&line{Address: e.line.Address,
				Time: micros{max(stop.ns-1, e.line.Start.Time.ns), true}, Name: "KernelChStop", Timer: &e.gpuEnd}),
				unused)
		}
		switch group := t.innermost("GroupApi"); {
		case e.line.Start.Time.ns == 0:
			unused = "EVENTS_WITHOUT_BEGIN"
		case e.kind == "KernelLaunch" && e.hash == nil && group != nil:
			if len(group.launches) < maxOpen {
				group.launches = append(group.launches, e.line)
			}
		default:
			if e.kind != "GroupApi" {
				e.line.CommID, e.line.Rank = e.hash, e.rank
			}
			unused = cmp.Or(t.add(&e.line), unused)
		}
	}
	t.open = t.open[:from]
	return unused
}

// writeExamples writes the shards of the traces read. Files of one process share a shard unless they hold several ranks
// of one communicator.
func (im *importer) writeExamples() error {
	sizes := make(map[uint64]int32)
	for _, t := range im.traces {
		for id, n := range t.ranks {
			sizes[id] = max(sizes[id], n)
		}
	}
	var processes []*exampleTrace
	for _, t := range im.traces {
		at := slices.IndexFunc(processes, func(o *exampleTrace) bool { return o.pid == t.pid && o.sameProcess(t) })
		if at < 0 {
			processes = append(processes, t)
			continue
		}
		o := processes[at]
		o.events, o.states, o.seen = append(o.events, t.events...), append(o.states, t.states...), o.seen|t.seen
		maps.Copy(o.comms, t.comms)
	}
	im.traces = nil
	for i, t := range processes {
		im.progress("traces of NCCL's example plugin", i, len(processes))
		if len(t.events) == 0 {
			continue
		}
		// Times count from when each process created its first communicator, so no processes share a clock.
		host := hostClock{host: fmt.Sprintf("%s of process %d", units.UnknownHost, t.pid)}
		if slices.ContainsFunc(processes[:i], func(o *exampleTrace) bool { return o.pid == t.pid }) {
			host.host = fmt.Sprintf("%s (%d)", host.host, i)
		}
		t.identity = fmt.Sprintf("example %d %d", i, t.pid)
		first, _ := t.span()
		for c := range t.comms {
			e := event{life: lifeInit, start: first, stop: first, comm: c, details: new(details), index: -1}
			if n := int(sizes[c.id]); n > 1 {
				e.details.Ranks = &n
			}
			t.events = append(t.events, e)
		}
		if err := im.writeMinimal(t.minimal, host, nil); err != nil {
			return err
		}
	}
	return nil
}

// countAbsent counts the collectives that no record has, though their function has a greater ordinal.
func (m *minimal) countAbsent() (n uint64) {
	type sequence struct {
		comm     commKey
		function string
	}
	there := make(map[sequence]map[uint64]bool)
	for i := range m.events {
		e := &m.events[i]
		if e.typ != shm.EventColl || e.life != lifeNone || e.details.Ordinal == nil {
			continue
		}
		s := sequence{e.comm, e.function}
		keyed.Map(there, s)[*e.details.Ordinal] = true
	}
	for _, numbers := range there {
		n += slices.Max(slices.Collect(maps.Keys(numbers))) + 1 - uint64(len(numbers))
	}
	return n
}

// sameProcess reports whether two traces may be of one process: a process creates a communicator only once.
func (t *exampleTrace) sameProcess(o *exampleTrace) bool {
	for c := range t.comms {
		for d := range o.comms {
			if c.id == d.id {
				return false
			}
		}
	}
	return true
}
