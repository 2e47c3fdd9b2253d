// SPDX-License-Identifier: Apache-2.0

package shard

import "ncclotf2/otf2"

// Version is the schema version of shard.json. A reader refuses other versions.
const Version = 1

// Process is the content of shard.json.
//
// All times are nanoseconds of the process's own time line: AnchorReal + (CLOCK_MONOTONIC_RAW −
// AnchorRaw), see Clock. It is the clock of the event files, too.
type Process struct {
	Version  int    `json:"version"`
	UUID     string `json:"uuid"`
	Finished bool   `json:"finished"` // the job process has ended and all it left is on disk

	Host       string            `json:"host"`
	BootID     string            `json:"bootId"`
	PID        int               `json:"pid"`
	PIDStart   uint64            `json:"pidStart"` // clock ticks since boot, /proc/<pid>/stat field 22
	Tag        uint16            `json:"tag"`      // upper 16 bits of the process's NCCL handles
	Executable string            `json:"executable"`
	APIVersion int               `json:"apiVersion"` // NCCL profiler API in use
	Launcher   Launcher          `json:"launcher"`
	Clock      Clock             `json:"clock"`
	Settings   map[string]string `json:"settings"`

	EventChunkSize uint64 `json:"eventChunkSize"`
	FirstTime      uint64 `json:"firstTime"` // of the first event; 0 if there is none
	LastTime       uint64 `json:"lastTime"`

	Strings   []string   `json:"strings"`
	Regions   []Region   `json:"regions"`
	GPUs      []GPU      `json:"gpus"`
	Comms     []Comm     `json:"comms"`
	Locations []Location `json:"locations"`
	Markers   []Marker   `json:"markers"`

	Counts  Counts    `json:"counts"`
	Pending []Pending `json:"pending"` // operations begun and not ended at the last flush
}

// Launcher is what the job's launcher said of this process in its environment.
type Launcher struct {
	Name string `json:"name"` // "slurm", "openmpi", "pmix", "torchrun", … or "" if nothing was found
	Rank int    `json:"rank"` // −1 if unknown
	Size int    `json:"size"` // −1 if unknown
}

// Clock tells how event times came about.
type Clock struct {
	Source     string `json:"source"` // "tsc", "monotonic", "cntvct", "host"
	AnchorRaw  uint64 `json:"anchorRaw"`
	AnchorReal uint64 `json:"anchorReal"`
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
	Device int    `json:"device"` // CUDA ordinal in the process, −1 if it could not be learnt
	UUID   string `json:"uuid"`   // "" if unknown
	PCI    string `json:"pci"`    // "" if unknown
}

// Comm is one communicator rank: what one ncclCommInit… of this process made. Its index in
// Process.Comms is its local communicator id.
type Comm struct {
	ID        uint64 `json:"id,string"` // NCCL's commId, not unique by itself
	Name      string `json:"name"`      // as the user named it, else ""
	NRanks    int    `json:"nranks"`
	Rank      int    `json:"rank"`
	NNodes    int    `json:"nnodes"`
	GPU       int    `json:"gpu"` // index into Process.GPUs
	InitTime  uint64 `json:"initTime"`
	FinalTime uint64 `json:"finalTime"` // 0 while alive
	Location  int    `json:"location"`  // local number of the communicator-rank location, −1 if none

	// Sequences, by NCCL function ("AllReduce", …; point-to-point as "Send>3", "Recv<0" with the peer
	// rank): what unify compares between the members.
	Sequences map[string]Sequence `json:"sequences"`
}

// DigestStep is the number of operations between two entries of Sequence.Digests.
const DigestStep = 64

// Sequence is a short digest of the operations of one function on one communicator rank, in order.
type Sequence struct {
	Count uint64 `json:"count"`
	// Digests[i] is a running hash over the first (i+1)·DigestStep operations (what all members must
	// have alike: element count, datatype, root); Last is the hash over all of them.
	Digests []uint64 `json:"digests"`
	Last    uint64   `json:"last,string"`
	Bytes   uint64   `json:"bytes"` // point-to-point: sum of message lengths
}

// Location is a location of this process; Number names its event file and is its local id.
type Location struct {
	Number uint32            `json:"number"`
	Kind   LocationKind      `json:"kind"`
	Name   string            `json:"name"`
	Type   otf2.LocationType `json:"type"`
	Comm   int               `json:"comm"` // index into Process.Comms, −1 for application threads
	TID    int               `json:"tid"`  // of application threads, else 0
	Events uint64            `json:"events"`
	Bytes  int64             `json:"bytes"` // of the event file; it was a whole file when this was written
}

// LocationKind is the role of a location in the timeline model.
type LocationKind string

const (
	KindThread  LocationKind = "thread"  // application thread
	KindEnqueue LocationKind = "enqueue" // NCCL's group and host-callback threads, per communicator rank
	KindRank    LocationKind = "rank"    // operations of a communicator rank, on its GPU
)

// Marker is something a reader of the trace should see: losses, implausible times, oddities.
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
	Starts   map[string]uint64            `json:"starts"`
	Stops    map[string]uint64            `json:"stops"`
	States   map[string]uint64            `json:"states"`
	Filtered map[string]uint64            `json:"filtered"` // started by NCCL although not asked for
	Lost     map[string]map[string]uint64 `json:"lost"`     // reason → event type → number
	Oddities map[string]uint64            `json:"oddities"` // see package regions
	Timing   map[string]uint64            `json:"timing"`   // operations by timing source
}

// Pending is an operation that has begun and not ended.
type Pending struct {
	Comm     int    `json:"comm"` // index into Process.Comms
	Function string `json:"function"`
	Ordinal  uint64 `json:"ordinal"`
	Since    uint64 `json:"since"`
	State    string `json:"state"`             // "called", "enqueued", "running"
	LastNet  string `json:"lastNet,omitempty"` // last proxy phase seen
}
