// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// minimal is the data of one process by the minimal profiler, or by our export in its schema.
type minimal struct {
	identity string
	pid      int
	host     string              // "" if the input does not state it
	epoch    micros              // ns since 1970 of time 0; the minimal profiler does not state it
	ours     bool                // by our export
	raw      bool                // by our export, of events as they were reported
	partial  bool                // by our export, of an archive that may lack operations
	carries  bool                // by our export, with the attributes of operations
	counted  *details            // by our export, with what the archive counted
	format   *format             // nil: of the minimal profiler, or of our export
	work     *gpuWork            // nil: none is known
	api      int                 // version of NCCL's profiler API; 0: not stated
	world    provenance.Launcher // the process's rank in the job; Size 0: not stated
	mask     uint32              // event mask that ProfilerInit returned
	events   []event
	states   []state
	seen     uint32 // types of events (bits)
}

// format describes another writer's data in this schema, in which the writer has numbered the collectives.
type format struct {
	from     string   // its name
	lacks    []string // what such data does not contain
	whole    bool     // numbers begin at 0, by function: those that are not there are losses
	unpaired bool     // which message of one rank is which of another is not known
}

// gpuWork are kernels of the application on one GPU.
type gpuWork struct {
	device  uint32
	kernels []workKernel
	names   []string
}

// workKernel is the run of a kernel, with the index of its name.
type workKernel struct {
	begin, end   int64
	stream, name uint32
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
	index  int // of the communicator; −1: unknown
}

// life distinguishes lifecycle records from others.
type life uint8

const (
	lifeNone life = iota
	lifeInit
	lifeFinal
)

// commKey is how events refer to their communicator rank.
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

// typeNames maps the names of event types in records to the types.
var typeNames = func() map[string]shm.EventType {
	all := make(map[string]shm.EventType)
	for t, name := range shm.EventNames {
		all["ncclProfile"+name] = shm.EventType(t)
	}
	return all
}()

const lifecycle = "ProfilerLifecycle"

// stateNumbers maps the names of states to their numbers.
var stateNumbers = func() map[string]uint32 {
	all := make(map[string]uint32)
	for s := uint32(0); !strings.HasPrefix(shm.StateName(s), "State("); s++ {
		all[shm.StateName(s)] = s
	}
	return all
}()

// add adds an event record. It returns why the record cannot be used, or "".
func (m *minimal) add(l *line) (unused string) {
	e := event{
		start: l.Start.Time.ns, stop: l.Stop.Time.ns, parent: l.Parent, address: l.Address, pxn: bool(l.PXN),
		function: l.Func, gpu: l.GPU,
		details: l.Details, index: -1,
	}
	for i, s := range []*stamp{l.Start, l.Stop} {
		if s.TID != nil && *s.TID > 0 {
			e.tids[i] = *s.TID
		}
	}
	e.details = cmp.Or(e.details, new(details))
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
			m.raw = m.raw || d.Writer == "nccl-otf2 raw"
			m.ours = m.ours || m.raw || d.Writer == "nccl-otf2"
			m.partial = m.partial || bool(d.Incomplete)
			m.counted = d
			m.host = cmp.Or(m.host, d.Host)
			if d.Epoch.known {
				m.epoch = d.Epoch
			}
			if v, err := strconv.Atoi(d.API); err == nil && v > 0 && v <= api.Newest().Number {
				m.api = v
			}
			if r, n := d.WorldRank, d.WorldSize; r != nil && *r >= 0 && *r < n && n <= description.MaxRanks {
				m.world = provenance.Launcher{Name: "imported", Rank: *r, Size: n}
			}
			if d.EventMask != nil {
				m.mask |= *d.EventMask
			}
			if d.Ranks != nil && (*d.Ranks < 0 || int(e.comm.rank) >= max(*d.Ranks, 1)) {
				return "IMPOSSIBLE_RANKS"
			}
		}
	} else {
		t, ok := typeNames[l.Type]
		switch {
		case !ok:
			return "UNKNOWN_TYPES"
		case bool(l.PXN):
			return "OTHER_PROCESSES_EVENTS" // their process is unknown
		case t == shm.EventKernelCh && e.details.Timer == nil:
			return "KERNELS_WITHOUT_GPU_STAMPS"
		case !e.comm.known && t != shm.EventGroupApi:
			return "EVENTS_OF_UNKNOWN_COMMUNICATORS"
		}
		e.typ = t
		m.carries = m.carries || e.details.Attributes != nil
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

// missing lists what the data does not contain.
func (m *minimal) missing() []string {
	if m.format != nil {
		return m.format.lacks
	}
	if m.raw {
		return []string{"metrics of GPUs", "kernels of other programs", "phases of the application",
			"communicators of one rank", "markers"}
	}
	if m.ours {
		return []string{"phases of transfers", "rows of channels, GPU stamps", "metrics", "kernels of other programs",
			"phases of the application", "communicators of one rank", "markers", "how processes ended"}
	}
	return []string{"date and time of day", "names of hosts", "API version", "library"}
}

// span returns the first and the last time recorded; times of creating communicators count.
func (m *minimal) span() (first, last int64) {
	first, last = math.MaxInt64, math.MinInt64
	for i := range m.events {
		first, last = min(first, m.events[i].start), max(last, m.events[i].stop)
	}
	for i := range m.states {
		first, last = min(first, m.states[i].time), max(last, m.states[i].time)
	}
	if m.work != nil {
		for _, k := range m.work.kernels {
			first, last = min(first, k.begin), max(last, k.end)
		}
	}
	return first, last
}

// maxDevices bounds the numbers of GPUs accepted.
const maxDevices = 1 << 16

// instance is a communicator rank from its init to its finalize.
type instance struct {
	index int
	init  int64
}

// resolve finds the communicators and assigns every event to its own.
func (m *minimal) resolve(p *processWriter, base uint64) {
	byKey := make(map[commKey][]instance)
	at := func(t int64) uint64 { return base + uint64(t) }
	add := func(e *event, ranks, nodes int, name string) int {
		i := len(p.comms)
		p.comms = append(p.comms, description.Comm{ID: e.comm.id, Name: name, NRanks: ranks, Rank: int(e.comm.rank),
			NNodes: nodes, InitTime: at(e.start)})
		if m.format != nil && m.format.unpaired {
			p.comms[i].Unpaired = true
		}
		gpu := description.GPU{Device: -1, UUID: e.gpu}
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
			if strings.HasPrefix(name, "ncclComm 0x") { // archives name communicators without a name like this
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

// thread returns the thread of an event's start (0) or stop (1). Events without a thread share one per communicator
// rank.
func (e *event) thread(end int) int32 {
	if e.tids[end] != noThread {
		return e.tids[end]
	}
	return int32(-2 - e.index)
}

// hasOperationTimes reports whether a record gives the times of the operation itself, not of its callbacks.
func (e *event) hasOperationTimes() bool {
	return e.details.Source != "" && (e.typ == shm.EventColl || e.typ == shm.EventP2p || e.typ == shm.EventCeColl)
}
