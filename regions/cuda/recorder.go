// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/internal/bounded"
)

// Distribution of records by their kind. Facts: the activity kinds of CUPTI's documentation (CUpti_ActivityKind),
// parsed by package cupti.

// Options of a Recorder.
type Options struct {
	// Hold (ns) is how long an activity waits for earlier ones of its row and for its plan: longer than a plan waits
	// for it.
	Hold uint64
	// Functions are the names of NCCL's functions as they occur in the names of its kernels.
	Functions []string
}

// Recorder processes CUPTI's records of a process.
type Recorder struct {
	opts      Options
	timeline  Timeline
	functions map[string]bool
	active    bool
	imported  bool // kernels of an imported trace, whose operations have their times

	launches   bounded.Map[*Launch] // also those that have ended
	correlator *cupti.Correlator[*Activity]
	times      times

	streams streamQueues
	devices devices
	replays replays
	memory  memory

	counts [numCounts]uint64
}

const (
	// Waiting activities of any kind; at 10 000 a second, several seconds.
	maxActivities = 65536
	// Launches that CUPTI may still refer to, after and before its first record.
	maxLaunches   = 65536
	firstLaunches = 1024
)

// New returns a Recorder that draws on a timeline.
func New(t Timeline, opts Options) *Recorder {
	g := &Recorder{
		opts: opts, timeline: t, functions: make(map[string]bool), launches: bounded.New[*Launch](firstLaunches),
		streams: streamQueues{byID: make(map[Stream]*streamRows)},
		devices: devices{gpus: make(map[uint32]int), contexts: make(map[uint32]uint32)},
		replays: newReplays(),
	}
	for _, f := range opts.Functions {
		g.functions[f] = true
	}
	return g
}

// IsActive reports whether CUPTI has recorded anything, besides kernels of imported traces.
func (g *Recorder) IsActive() bool { return g.active && !g.imported }

// allocateOnce allocates memory for CUPTI's records at the first one.
func (g *Recorder) allocateOnce() {
	if !g.active {
		g.active = true
		// An activity that has been drawn is not linked any more, so nothing waits longer than that.
		g.correlator = cupti.NewCorrelator(&cupti.CorrelatorOptions{Age: g.opts.Hold}, g.judgeCall, g.countOutcome)
		g.launches.Widen(maxLaunches)
	}
}

// AddRecord takes an activity record as CUPTI, in a given version, wrote it; it came at time t. name is a kernel's
// mangled name.
func (g *Recorder) AddRecord(t uint64, record []byte, version uint32, name string) {
	g.allocateOnce()
	g.counts[countRecords]++
	rec, err := cupti.Parse(record, version)
	switch {
	case errors.Is(err, cupti.ErrKind):
		g.counts[countUnknown]++
		return
	case err != nil:
		g.counts[countBroken]++
		return
	}
	on := func(n count, device, context, stream uint32, start, stop uint64) *Activity {
		g.devices.contexts[context] = device
		g.counts[n]++
		return &Activity{Record: rec, Stream: Stream{Device: device, Context: context, Stream: stream}, arrived: t,
			start: start, stop: stop}
	}
	switch rec := rec.(type) {
	case *cupti.API:
		g.correlator.API(rec, t)
	case *cupti.External:
		if rec.ExternalKind == cupti.ExternalCustom2 {
			g.correlator.External(rec, t)
		}
	case *cupti.Kernel:
		a := on(countKernels, rec.Device, rec.Context, rec.Stream, rec.Start, rec.End)
		a.Name, a.nccl = name, IsNCCLKernel(name)
		g.placeActivity(a)
		switch {
		case rec.Graph != 0: // the ids are those of the call that launched the graph
		case name != "" && !a.nccl && !g.correlator.Identified(rec.Correlation):
			g.counts[countOther]++ // no id will come: only NCCL's launches have one
		default:
			g.correlator.Activity(rec.Correlation, a, t)
		}
	case *cupti.Copy:
		g.placeActivity(on(countCopies, rec.Device, rec.Context, rec.Stream, rec.Start, rec.End))
	case *cupti.Set:
		g.placeActivity(on(countSets, rec.Device, rec.Context, rec.Stream, rec.Start, rec.End))
	case *cupti.GraphTrace:
		g.placeActivity(on(countGraphs, rec.Device, rec.Context, rec.Stream, rec.Start, rec.End))
	case *cupti.Synchronization:
		g.counts[countWaits]++
		g.placeActivity(&Activity{Record: rec, Stream: Stream{Context: rec.Context, Stream: rec.Stream, Waits: true},
			arrived: t, start: rec.Start, stop: rec.End})
	case *cupti.Memory:
		g.counts[countMemory]++
		g.takeMemory(t, rec)
	case *cupti.MemoryPool:
		g.takePool(t, rec)
	}
}

// AddImported takes a kernel of the application from an imported trace: its times are on the process's line. It comes
// when it ends, in order.
func (g *Recorder) AddImported(k *cupti.Kernel, name string) {
	g.allocateOnce()
	g.imported = true
	g.devices.contexts[k.Context] = k.Device
	g.counts[countKernels]++
	g.counts[countOther]++
	g.queueActivity(&Activity{Record: k, Name: name, arrived: k.End, timed: true, begin: k.Start, end: k.End,
		Stream: Stream{Device: k.Device, Context: k.Context, Stream: k.Stream}})
}

// Advance states that all records before t have come: activities that have waited long enough are given up, and due
// ones drawn.
func (g *Recorder) Advance(t uint64) {
	if !g.active {
		return
	}
	g.correlator.Expire(t)
	for len(g.times.waiting) > 0 && g.times.waiting[0].arrived+clockLimit < t {
		g.loseUntimed()
	}
	g.writeRows(t)
}

// LinkRest links what can be linked when no more records will come.
func (g *Recorder) LinkRest() {
	if g.active {
		g.placeUntimed()
		g.correlator.End()
	}
}

// Finish draws all waiting activities.
func (g *Recorder) Finish() {
	if !g.active {
		return
	}
	for len(g.times.waiting) > 0 {
		g.loseUntimed()
	}
	g.writeRows(noTime)
	g.counts[countIdle] = g.correlator.Idle
}

// noTime is later than every time.
const noTime = 1<<64 - 1

// devices are the CUDA devices of the process.
type devices struct {
	gpus     map[uint32]int    // CUDA device → the timeline's GPU
	contexts map[uint32]uint32 // CUDA context → device
}

// gpuOf returns the timeline's GPU of a CUDA device: that of the communicator seen to run kernels there, else the
// timeline's own.
func (g *Recorder) gpuOf(device uint32) int {
	if i, ok := g.devices.gpus[device]; ok {
		return i
	}
	i := g.timeline.GPUOfDevice(int(device))
	g.devices.gpus[device] = i
	return i
}
