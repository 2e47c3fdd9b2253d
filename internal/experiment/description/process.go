// SPDX-License-Identifier: Apache-2.0

// Package description defines what a shard says of its process: which locations, communicators, GPUs and regions has
// it, what was lost, and how did it end?
package description

import (
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/takeover"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Version is the schema version of shard.json. A reader refuses other versions.
const Version = 2

// Process is the content of shard.json.
//
// All times are nanoseconds of the process's own time line: AnchorReal + (CLOCK_MONOTONIC_RAW −
// AnchorRaw), see Clock. It is the clock of the event files, too.
type Process struct {
	Version int    `json:"version"`
	UUID    string `json:"uuid"`
	// number of writes of shard.json so far; the files beside it have that of the previous write
	Serial   uint64 `json:"serial"`
	Finished bool   `json:"finished"` // the job process has ended and all its data is on disk

	Host       string `json:"host"`
	BootID     string `json:"bootId"`
	PID        int    `json:"pid"`
	PIDStart   uint64 `json:"pidStart"` // clock ticks since boot, /proc/<pid>/stat field 22
	Tag        uint16 `json:"tag"`      // upper 16 bits of the process's NCCL handles
	Executable string `json:"executable"`
	APIVersion int    `json:"apiVersion"` // NCCL profiler API in use

	// The library that called the plugin: "NCCL" or "RCCL", "" if that could not be told; its version as
	// ncclGetVersion gives it (22907 is 2.29.7), 0 if unknown; the file it was loaded from, "" if unknown.
	Library        string `json:"library"`
	LibraryVersion int    `json:"libraryVersion"`
	LibraryPath    string `json:"libraryPath"`

	// LibrarySettings are the library's own settings that decide what it reports (package hidden), as far as they are
	// set in the process's environment; nil if that is not known.
	LibrarySettings map[string]string `json:"librarySettings,omitempty"`
	// Architectures are those of the machine's AMD GPUs, "gfx942"; of RCCL only, none if not known.
	Architectures []string `json:"architectures,omitempty"`

	Masks  provenance.Masks   `json:"masks"`
	Memory provenance.Memory  `json:"memory"`
	Cupti  *provenance.Cupti  `json:"cupti,omitempty"`  // nil: it was not asked for
	Scorep *provenance.Scorep `json:"scorep,omitempty"` // nil: not found, or not to be used

	Launcher provenance.Launcher `json:"launcher"`
	Clock    provenance.Clock    `json:"clock"`
	Settings map[string]string   `json:"settings"`

	EventChunkSize uint64 `json:"eventChunkSize"`
	FirstTime      uint64 `json:"firstTime"` // of the first event; 0 if there is none
	LastTime       uint64 `json:"lastTime"`

	Strings   []string   `json:"strings"`
	Regions   []Region   `json:"regions"`
	GPUs      []GPU      `json:"gpus"`
	Comms     []Comm     `json:"comms"`
	Locations []Location `json:"locations"`
	Markers   []Marker   `json:"markers"`

	// Metrics is what Metric events refer to: its index is the local metric id.
	Metrics []Metric `json:"metrics,omitempty"`

	// Foreign lists the communicator ranks of other processes whose network work ran here.
	Foreign []ForeignComm `json:"foreign,omitempty"`
	// Wins says whose transfers a local RMA window id stands for; its index is that id.
	Wins []Win `json:"wins,omitempty"`

	// Import says where the data came from if no plugin of ours recorded it; nil: one did.
	Import *Import `json:"import,omitempty"`

	Counts Counts            `json:"counts"`
	Costs  []provenance.Cost `json:"costs,omitempty"`
	// Waited is the total time for which the process's threads have waited until their records were on disk.
	Waited  time.Duration `json:"waitedNs,omitempty"`
	Pending []Pending     `json:"pending"` // operations begun and not ended at the last flush

	Resume takeover.State `json:"resume"` // state for a collector that takes over

	End *End `json:"end,omitempty"` // nil: the process's end was not observed, or it still runs
	// Ended is set if the process has ended, and its collector processes what it has put off (setting BACKLOG). It is
	// false again when everything is in the shard.
	Ended bool `json:"ended,omitempty"`

	// Instead is set by Read if this description is not from shard.json.
	Instead *Instead `json:"-"`
}

// SettingContinues is the key of Process.Settings under which a collector that took over from a dead one gives the uuid
// of that one's shard: both shards are of one life of one process.
const SettingContinues = "CONTINUES"

// SettingSpooled is the key of Process.Settings that says how many bytes of a raw file a shard was made of.
const SettingSpooled = "SPOOLED_BYTES"

// IsSpooled reports whether a shard was made from a raw file, without a collector.
func (p *Process) IsSpooled() bool { return p != nil && p.Settings[SettingSpooled] != "" }

// Import describes the data of an imported process.
type Import struct {
	From    string   `json:"from"`    // the format: "minimal profiler JSONL", …
	Missing []string `json:"missing"` // what such data lacks, each a few words
	// operations may be missing: an absent one may have been called
	Partial bool `json:"partial"`
	// Snapshot: the data is the state of operations at one time. It has no times at which they ran, collectives of a
	// communicator are numbered together, and those that it lacks are known to have been called, or not to have been.
	Snapshot bool `json:"snapshot,omitempty"`
}

// FromTorch is Import.From of traces of PyTorch's profiler: answers say that they rest on those.
const FromTorch = "traces of PyTorch's profiler"

// FromNsight and FromROCpd are Import.From of SQLite files of profilers, whose answers rest on the same.
const (
	FromNsight = "SQLite exports of Nsight Systems"
	FromROCpd  = "databases of rocprofv3"
)

// KernelsWithoutGroup counts, for such traces, kernels of NCCL of which it is not known to which communicator they
// belong.
const KernelsWithoutGroup = "KERNELS_WITHOUT_GROUP"

// Lossy reports whether operations of the process are missing, or may be missing uncounted.
func (p *Process) Lossy() bool {
	return len(p.Counts.Lost) > 0 || p.Import != nil && p.Import.Partial && !p.Import.Snapshot
}

// IsSnapshot reports whether the data is the state of operations at one time, see Import.
func (p *Process) IsSnapshot() bool { return p.Import != nil && p.Import.Snapshot }

// ForeignComm is a communicator rank of another process whose network work this process did (PXN).
// Tag and Index are what that process's plugin put into the context value: its Process.Tag and the
// index into its Process.Comms. Rank and PID are what NCCL's descriptors said of the originator: its
// rank in the communicator and its process id, which means something in its own pid namespace only.
type ForeignComm struct {
	Tag   uint16 `json:"tag"`
	Index int    `json:"index"`
	Rank  int    `json:"rank"`
	PID   int    `json:"pid"`
}

// Win is a local RMA window: the network of one communicator as seen from one of its ranks. One of
// Comm and Foreign is an index, the other −1.
type Win struct {
	Comm    int `json:"comm"`    // into Process.Comms
	Foreign int `json:"foreign"` // into Process.Foreign
	// Ranks is one more than the greatest rank that events name in this window. It gives the window a size
	// where the communicator's is not known; 0: nothing is known of it.
	Ranks int `json:"ranks"`
}

// Region is a region definition; its index in Process.Regions is its local id.
type Region struct {
	Name        string          `json:"name"`
	Canonical   string          `json:"canonical"`
	Description string          `json:"description"`
	Role        otf2.RegionRole `json:"role"`
	Paradigm    otf2.Paradigm   `json:"paradigm"`
	Group       string          `json:"group"` // region group it belongs to, such as "NCCL API"
}

// GPU is a device that communicators of this process use. Index in Process.GPUs.
type GPU struct {
	Device int    `json:"device"` // CUDA ordinal in the process, −1 if unknown
	UUID   string `json:"uuid"`   // "" if unknown
	PCI    string `json:"pci"`    // "" if unknown

	Facts *provenance.GPUFacts `json:"facts,omitempty"` // nil if the driver was not asked or did not answer
}

// MaxRanks bounds the number of ranks of a communicator, of windows and of jobs. It is several times what any machine
// has, and small enough for a list: greater values are damaged.
const MaxRanks = 1 << 18

// Comm is one communicator rank: what one ncclCommInit… of this process made. Its index in
// Process.Comms is its local communicator id.
type Comm struct {
	ID        uint64 `json:"id,string"` // NCCL's commId, not unique by itself
	Name      string `json:"name"`      // as the user named it, else ""
	NRanks    int    `json:"nranks"`    // 0 if NCCL never reported it (profiler API v1 to v3)
	Rank      int    `json:"rank"`
	NNodes    int    `json:"nnodes"`
	GPU       int    `json:"gpu"` // index into Process.GPUs
	InitTime  uint64 `json:"initTime"`
	FinalTime uint64 `json:"finalTime"` // 0 while alive
	Location  int    `json:"location"`  // local number of the communicator-rank location, −1 if none

	// Network are the locations that show its transfers if their Location.Comm is another one, because they are reused.
	Network *NetworkRows `json:"network,omitempty"`

	// Sequences, by NCCL function ("AllReduce", …; point-to-point as "Send>3", "Recv<0" with the peer
	// rank): what unify compares between the members.
	Sequences map[string]sequence.Sequence `json:"sequences"`

	// Order is the same over its collectives of all functions, in the order in which they were called, without those of
	// graphs: members call them in one order.
	Order *sequence.Sequence `json:"order,omitempty"`

	// Held are the operations, by the keys of Sequences, that are complete and not in their sequence yet: they wait for
	// a better mapping of the GPU's clock.
	Held map[string]uint64 `json:"held,omitempty"`

	// when the latest of its operations that were recorded was called, or enqueued
	Begun uint64 `json:"begun,omitempty"`

	// Unreported is the number of collectives that NCCL counted and did not report, because RAS had changed the
	// activation mask. They have their ordinals in Sequences.
	Unreported uint64 `json:"untold,omitempty"`

	// LostMessages is the number of messages that the input of an import lacks at unknown positions.
	LostMessages uint64 `json:"lostMessages,omitempty"`

	// Unpaired: the input of an import does not say which message of one rank is which of another.
	Unpaired bool `json:"unpaired,omitempty"`

	// Unseen: a snapshot does not tell which operations the rank has called, besides those that have not ended.
	Unseen bool `json:"unseen,omitempty"`

	// Gaps are the parts of its operations that were not recorded, in order.
	Gaps []Gap `json:"gaps,omitempty"`
}

// NetworkRows are the local numbers of the locations on which a communicator rank's transfers are drawn.
type NetworkRows struct {
	Send uint32 `json:"send"`
	Recv uint32 `json:"recv"`
}

// Gap is a run of operations that were not recorded because the recording was paused or its window left them out, or
// because they could not be written (Lost). From and To count the collectives that the application calls on the
// communicator, or those that replayed graphs bring, from 0, which all members count alike: operations From ≤ ordinal <
// To are missing.
type Gap struct {
	Replays  bool   `json:"replays,omitempty"` // of replayed graphs
	Lost     bool   `json:"lost,omitempty"`    // not on request
	From     uint64 `json:"from"`
	To       uint64 `json:"to"` // 0: still open
	FromTime uint64 `json:"fromTime"`
	ToTime   uint64 `json:"toTime"` // 0: still open
}

// Location is a location of this process; Number names its event file and is its local id.
type Location struct {
	Number uint32            `json:"number"`
	Kind   LocationKind      `json:"kind"`
	Name   string            `json:"name"`
	Type   otf2.LocationType `json:"type"`
	Comm   int               `json:"comm"` // index into Process.Comms, −1 for application threads and foreign work
	// Foreign is an index into Process.Foreign where another process's work is drawn (KindNetSend with
	// Comm −1), else −1.
	Foreign int `json:"foreign"`
	// of application threads, and of the network's rows the proxy thread, if it is one; else 0
	TID    int    `json:"tid"`
	Thread string `json:"thread,omitempty"` // the system's name of that thread; "" if it is not known
	GPU    int    `json:"gpu,omitempty"`    // of CUDA streams (KindStream): index into Process.GPUs
	Events uint64 `json:"events"`           // in the event file
	Bytes  int64  `json:"bytes"`            // of the event file; it was a whole file when this was written

	// Owners is how many threads, or communicator ranks, had the location one after the other; 0: one. Name, Comm and
	// TID are those of the first, Last is the last one.
	Owners int    `json:"owners,omitempty"`
	Last   *Owner `json:"last,omitempty"`
}

// Owner is the subject of a location: a thread of the application, or a part of a communicator rank.
type Owner struct {
	Name string `json:"name"`
	Comm int    `json:"comm"` // as Location.Comm
	TID  int    `json:"tid,omitempty"`
}

// Shared reports whether the location had several owners.
func (l *Location) Shared() bool { return l.Owners > 1 }

// Present returns the current or last owner of the location.
func (l *Location) Present() Owner {
	if l.Last != nil {
		return *l.Last
	}
	return Owner{Name: l.Name, Comm: l.Comm, TID: l.TID}
}

// LocationKind is the role of a location in the timeline model.
type LocationKind string

const (
	KindThread  LocationKind = "thread"  // application thread
	KindEnqueue LocationKind = "enqueue" // NCCL's group and host-callback threads, per communicator rank
	KindRank    LocationKind = "rank"    // operations of a communicator rank, on its GPU
	KindChannel LocationKind = "channel" // kernel intervals of one channel of a communicator rank

	KindStream LocationKind = "stream" // kernels and copies on a CUDA stream

	KindNetSend LocationKind = "net-send" // transfers that a proxy sends for a communicator rank, here or elsewhere
	KindNetRecv LocationKind = "net-recv" // transfers that a proxy receives for a communicator rank

	KindEvent LocationKind = "event" // raw events of one type, on a channel and in a direction where they have one

	KindGPUMetrics LocationKind = "gpu-metrics" // measurements of a GPU; Process.Metrics names it
)

// Marker is a notice for readers of the trace: losses, implausible times, irregularities.
type Marker struct {
	Time     uint64              `json:"time"`
	Duration uint64              `json:"duration"`
	Severity otf2.MarkerSeverity `json:"severity"`
	Category string              `json:"category"`
	Text     string              `json:"text"`
	Location int                 `json:"location"` // local number, −1 for the whole process
}

// Counts are the totals that the archive's properties show. Keys of Starts and Stops are NCCL's
// event names without prefix ("Coll", "ProxyStep", …), those of States the state names.
type Counts struct {
	Starts   map[string]uint64 `json:"starts"`
	Stops    map[string]uint64 `json:"stops"`
	States   map[string]uint64 `json:"states"`
	Filtered map[string]uint64 `json:"filtered"` // started by NCCL although not requested
	// started outside the window that was to be recorded
	Paused   map[string]uint64            `json:"paused"`
	Lost     map[string]map[string]uint64 `json:"lost"`     // reason → event type → number
	Oddities map[string]uint64            `json:"oddities"` // see package regions
	Timing   map[string]uint64            `json:"timing"`   // operations by timing source
	// EarlyEnds: operations of the source "gpu" whose ends are those of parts of kernels, see regions.AttrEndsEarly
	Ends    map[string]uint64 `json:"ends,omitempty"`
	Network map[string]uint64 `json:"network,omitempty"` // see package regions, Model.Network
	CUPTI   map[string]uint64 `json:"cupti,omitempty"`   // counters of CUPTI, see package regions

	// Import counts the input of an import: LINES, MALFORMED, TRUNCATED, …
	Import map[string]uint64 `json:"import,omitempty"`

	// Calls forwarded to Score-P (FORWARDED), and those that were not, by reason: OTHER_THREADS, OUTSIDE, PAUSED,
	// UNDEFINED, MEMORY.
	Scorep map[string]uint64 `json:"scorep,omitempty"`

	// Uncounted states, one line each, why more is missing than Lost has, by an unknown amount.
	Uncounted []string `json:"uncounted,omitempty"`

	NullHandles uint64 `json:"nullHandles"` // stops and states of events that were refused
}

// Keys of ends of operations: of Counts.Ends, and below the property ENDS of archives.
const (
	EarlyEnds = "EARLY" // those of parts of kernels
	MovedEnds = "MOVED" // of these, in archives: moved to the end that other ranks show
)

// Pending is an operation that has begun and not ended.
type Pending struct {
	Comm int `json:"comm"` // index into Process.Comms
	// Function is a key of Comm.Sequences; a message that has only been called is "Send" or "Recv", without peer.
	Function string `json:"function"`
	Ordinal  uint64 `json:"ordinal"`
	Since    uint64 `json:"since"`
	// State: "calling" (inside the call), "called" (it has returned, and no operation was seen), "enqueued", "running".
	State   string `json:"state"`
	Begun   bool   `json:"begun,omitempty"`   // its GPU has begun
	LastNet string `json:"lastNet,omitempty"` // last proxy phase seen
	// Count, Datatype and Root are what the application asked for, as far as NCCL has said; Root means something for
	// functions with one.
	Count    uint64 `json:"count,omitempty"`    // elements
	Datatype string `json:"datatype,omitempty"` // "ncclFloat32"; "" if it is not known
	Root     int    `json:"root,omitempty"`
	Stream   uint64 `json:"stream,string,omitempty"` // CUDA's, 0 if it is not known
	CallSite string `json:"callSite,omitempty"`      // line of the program that called it, "" if it is not known
	// Transfers are those of its network transfers that are under way, of each channel, peer and direction the first.
	Transfers []Transfer `json:"transfers,omitempty"`
	// Left: the communicator was finalized, or aborted, before the operation's end was seen. NCCL does not always
	// report the end of the last ones.
	Left bool `json:"left,omitempty"`
}

// Transfer is a network transfer that has begun and not ended.
type Transfer struct {
	Peer    int    `json:"peer"` // rank in the communicator
	Send    bool   `json:"send"` // to the peer, else from it
	Channel int    `json:"channel"`
	Step    int    `json:"step"`            // of the operation on this channel
	Phase   string `json:"phase"`           // what it waits for, see package regions
	Bytes   uint64 `json:"bytes,omitempty"` // 0: not known
	Since   uint64 `json:"since"`           // when the phase began
}

// Unwritten counts the operations of a communicator rank that were known and in no event file at the last flush,
// complete or under way, by the keys of Comm.Sequences: they are lost if the collector died then. Calls without
// operations so far come later.
func (p *Process) Unwritten(comm int) map[string]uint64 {
	operations := make(map[string]uint64)
	for _, plan := range p.Resume.Plans {
		if plan.Comm == comm {
			for key, marks := range plan.Ops {
				operations[key] += uint64(len(marks) / takeover.MarkSize)
			}
		}
	}
	return operations
}

const modeKey = "MODE" // of Process.Settings

const modeProfile = "profile"

// IsProfile reports whether the process's events were summed up instead of written.
func (p *Process) IsProfile() bool { return p != nil && p.Settings[modeKey] == modeProfile }

// Instead states that a shard's description was not taken from shard.json.
type Instead struct {
	File string // that it was taken from
	Why  string // what is wrong with shard.json
}

// Encode returns the description as a file has it.
func (p *Process) Encode() ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("description of a shard: %w", err)
	}
	return append(text, '\n'), nil
}

// End is how and when the job process ended.
type End struct {
	// Time is when the system had ended the process, on its own time line; 0 if that was not observed. With the clock
	// "host" it is the program's last clock value.
	Time uint64 `json:"time"`
	// Status is what waitpid(2) returned to the process's parent; nil if it is unknown: only the parent knows it for
	// certain, and what the system reports to others depends on its version.
	Status *uint32 `json:"status,omitempty"`
	// Called is set if its exit handlers have begun, so that it called exit, or returned from main.
	Called bool `json:"called"`
}

// Signal returns the signal that ended the process; 0 if none is known.
func (e *End) Signal() unix.Signal {
	if e == nil || e.Status == nil || !unix.WaitStatus(*e.Status).Signaled() {
		return 0
	}
	return unix.WaitStatus(*e.Status).Signal()
}

// Died reports whether the process did not end in order: by a signal, with another exit code than 0, or in an unknown
// way without a call of exit.
func (e *End) Died() bool {
	switch {
	case e == nil:
		return false
	case e.Status != nil:
		return *e.Status != 0
	}
	return !e.Called
}

// String describes how the process ended, as in "Rank 3: killed by SIGSEGV"; "" if nothing is known.
func (e *End) String() string {
	switch {
	case e == nil:
		return ""
	case e.Signal() != 0:
		if name := unix.SignalName(e.Signal()); name != "" {
			return "killed by " + name
		}
		return fmt.Sprintf("killed by signal %d", int(e.Signal()))
	case e.Status != nil && *e.Status != 0:
		return fmt.Sprintf("exited with code %d", unix.WaitStatus(*e.Status).ExitStatus())
	case e.Status == nil && !e.Called:
		return "ended without exit (killed, or by _exit)"
	}
	return "exited"
}

// Metric is a set of quantities that events record together, at any time (OTF2: asynchronous).
type Metric struct {
	Members []MetricMember `json:"members"`
	// Recorder is the kind of locations that record it, each of itself; RecorderKindAbstract if one location
	// records it on behalf of a GPU.
	Recorder otf2.RecorderKind `json:"recorder"`
	// Location is that one location's number (KindGPUMetrics), GPU an index into Process.GPUs; −1 without.
	Location int `json:"location"`
	GPU      int `json:"gpu"`
	// Locations are those that have recorded it, where each does so of itself.
	Locations []uint32 `json:"locations,omitempty"`
}

// MetricMember is one quantity. A value v means v · 10^Exponent of the unit.
type MetricMember struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Type        otf2.Type       `json:"type"` // of values: UINT64 or DOUBLE
	Mode        otf2.MetricMode `json:"mode"`
	Exponent    int64           `json:"exponent,omitempty"`
	Unit        string          `json:"unit"`
}
