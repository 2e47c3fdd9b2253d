// SPDX-License-Identifier: Apache-2.0

// Package provenance defines where and how a process was recorded: launcher, clock, memory, GPUs, CUPTI, Score-P, and
// what recording cost.
package provenance

// Launcher is what the job's launcher said of this process in its environment.
type Launcher struct {
	Name string `json:"name"` // "slurm", "openmpi", "pmix", "torchrun", … or "" if nothing was found
	Rank int    `json:"rank"` // −1 if unknown
	Size int    `json:"size"` // −1 if unknown
}

// Clock describes how event times are made.
type Clock struct {
	Source     string `json:"source"` // "tsc", "monotonic", "cntvct", "host"
	AnchorRaw  uint64 `json:"anchorRaw"`
	AnchorReal uint64 `json:"anchorReal"`

	// Tuples are simultaneous readings of the clocks, ticks and raw clock ascending. The process's times are
	// interpolated: the ticks of an event between two readings are mapped linearly to the raw clock; before the first
	// and after the last the nearest two count. Empty: unknown.
	Tuples []ClockTuple `json:"tuples,omitempty"`

	// Readings are those of the host's own time service, in order.
	Readings []ClockReading `json:"readings,omitempty"`
}

// ClockReading is a reading of a time service of the host (Source: "chrony"): at Time of the process's line it was
// Reference in UTC (ns since 1970), within Bound ns.
type ClockReading struct {
	Source    string `json:"source"`
	Time      uint64 `json:"time"`
	Reference uint64 `json:"reference"`
	Bound     uint64 `json:"bound"`
}

// ClockTuple is one reading of the clocks.
type ClockTuple struct {
	Ticks uint64 `json:"ticks"` // of Clock.Source
	Raw   uint64 `json:"raw"`   // CLOCK_MONOTONIC_RAW, ns
	Mono  uint64 `json:"mono"`  // CLOCK_MONOTONIC, ns
	Real  uint64 `json:"real"`  // CLOCK_REALTIME, ns since 1970
}

// Masks are sets of NCCL's event types, by the bit numbers of its activation mask.
type Masks struct {
	Event    uint32 `json:"event"`              // requested from NCCL
	Record   uint32 `json:"record"`             // recorded part of it, at the last flush
	Withheld uint32 `json:"withheld,omitempty"` // also wanted, but could have hung or crashed the job
	// WithheldWhy is the reason, one of the words below; "": Broadcasts.
	WithheldWhy string `json:"withheld_why,omitempty"`
	NetSums     bool   `json:"net_sums,omitempty"` // the network's steps are summed up
}

// Values of Masks.WithheldWhy.
const (
	WithheldLate = "late" // the collector was not ready in time
	WithheldRoom = "room" // NCCL's proxies lacked room when a communicator was made
)

// Memory is how the plugin and the collector shared their memory.
type Memory struct {
	Kind string `json:"kind"`           // "memfd" or "shm"
	Path string `json:"path,omitempty"` // of the file, with "shm"
}

// Cupti is the state of CUPTI, which records kernels. Its losses are in Counts.Oddities: CUPTI_LOST (for want of
// memory), CUPTI_DROPPED (by itself), CUPTI_UNKNOWN (places in its buffers after which nothing could be read),
// CUPTI_BUFFERS_OUT (not returned), CUPTI_BUFFERS_STRANGE (returned but never handed out), CUPTI_BUFFERS_OVERWRITTEN
// (written on top of each other, as there was no memory left).
type Cupti struct {
	State   string            `json:"state"`   // see shm.CuptiState
	Version uint32            `json:"version"` // as cuptiGetVersion returns it, 0 without a library
	Error   int32             `json:"error,omitempty"`
	Why     string            `json:"why,omitempty"`     // one line, if it was requested and is not on, or failed
	Kinds   uint64            `json:"kinds"`             // bit k: activity kind k was wanted
	Records map[uint32]uint64 `json:"records,omitempty"` // activity records taken, by kind
}

// Scorep reports whether NCCL's calls were forwarded to a Score-P measurement in the process.
type Scorep struct {
	State string `json:"state"`         // see shm.ScorepState
	Model string `json:"model"`         // how it sees threads: "none", "omp", "pthread", or "unknown"
	Why   string `json:"why,omitempty"` // one line, if calls cannot be forwarded

	Points bool `json:"points,omitempty"` // forwarded calls are regions without duration there

	Substrate *ScorepSubstrate `json:"substrate,omitempty"` // nil: our substrate plugin was not loaded in it
}

// ScorepSubstrate is what the Score-P substrate plugin of this project reported of the measurement.
type ScorepSubstrate struct {
	// Score-P's number of this process: in its traces the location group's id; −1 if unknown
	Rank    int            `json:"rank"`
	Threads []ScorepThread `json:"threads"` // complete when the measurement, or the process, has ended
}

// ScorepThread states that a thread recorded at a location of Score-P's, whose id in its traces is Location<<32
//
// Rank. A thread can have several over time, and a location several threads.
type ScorepThread struct {
	TID      int    `json:"tid"`
	Location uint32 `json:"location"`
}

// Cost is what one callback took for one event type, as the plugin measured it on a sample; or by how much the
// collector's late sleeps overran, for want of a processor.
type Cost struct {
	Callback string  `json:"callback"` // "start", "stop" or "state"; "collector"
	Type     string  `json:"type"`     // NCCL's event name without prefix; of the collector "KeptWaiting"
	Samples  uint64  `json:"samples"`
	MeanNs   float64 `json:"meanNs"`
	MostNs   float64 `json:"mostNs"`
}

// GPUFacts is what the driver (NVML) reports of a GPU; what it did not report is zero.
type GPUFacts struct {
	Index  int    `json:"index"` // NVML's number, −1 if unknown
	Name   string `json:"name,omitempty"`
	Memory uint64 `json:"memory,omitempty"` // bytes
	Driver string `json:"driver,omitempty"` // version

	PCIeGeneration int      `json:"pcieGeneration,omitempty"` // of the link as it was
	PCIeWidth      int      `json:"pcieWidth,omitempty"`
	NVLinks        []NVLink `json:"nvlinks,omitempty"` // active ones
	MIGMode        bool     `json:"migMode,omitempty"` // the GPU is divided
	MIG            *MIG     `json:"mig,omitempty"`     // the part that the process uses; nil: all of it

	// Guess is how the GPU was identified without CUDA: "CUDA_VISIBLE_DEVICES" or "ordinal".
	Guess string `json:"guess,omitempty"`
}

// NVLink is an active link of a GPU.
type NVLink struct {
	Link    int    `json:"link"`
	Version string `json:"version,omitempty"` // of NVLink, such as "4.0"
	Speed   int    `json:"speed,omitempty"`   // MB/s in one direction
	Peer    string `json:"peer,omitempty"`    // PCI address of the other end
	Switch  bool   `json:"switch,omitempty"`  // the other end is a switch
}

// MIG is a part of a GPU.
type MIG struct {
	Parent          string `json:"parent,omitempty"` // UUID of the GPU
	GPUInstance     int    `json:"gpuInstance"`      // −1 if unknown
	ComputeInstance int    `json:"computeInstance"`  // −1 if unknown
}
