// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"errors"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/cupti"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// cuda is what CUPTI tells of a process: kernels, copies and waits on the streams of its GPUs, launches, and
// memory. CUPTI's records come in bursts, in any order and late, so everything here waits for what belongs to it,
// up to a limit in time and number.
type cuda struct {
	clock   cupti.Clock
	first   *clockReading // not in the clock yet: it takes a second one to know how long a tick is
	last    clockReading
	perTick float64 // ns

	correlator *cupti.Correlator[*activity]
	untimed    []untimed // records of times that the clock does not cover yet

	rows      map[rowID]*row
	order     []*row         // the same, as they came
	locations int            // of rows
	held      int            // activities in rows
	written   uint64         // when rows were written last: what was due then is gone
	forced    uint64         // latest end of those that were written before their time
	devices   map[uint32]int // CUDA device → index into process.GPUs
	contexts  map[uint32]uint32
	replays   replays
	buffers   buffers
	regions   kernelRegions

	counts [numCUPTICounts]uint64
}

// clockReading is a record of what CUPTI's clock said.
type clockReading struct{ cupti, line, ticks, width uint64 }

// untimed is a record whose times are to be brought to the process's line.
type untimed struct {
	arrived uint64
	last    uint64                        // CUPTI's
	place   func(m *Model, g *cuda) error // an error of cupti.Clock if it cannot be
	lost    func(m *Model)
}

const (
	// Activities that wait, of any kind; at 10 000 a second, several seconds.
	maxActivities = 65536
	// How long (ns) an activity waits for a clock reading. They come twice a second.
	clockLimit = 10e9
	// Launches that CUPTI may still name, once CUPTI has told anything, and before.
	maxKeptLaunches   = 65536
	firstKeptLaunches = 1024
)

// cuptiCount is something counted about CUPTI's records.
type cuptiCount int

const (
	cuptiRecords       cuptiCount = iota // activity records
	cuptiUnknown                         // of kinds that nothing is made of
	cuptiBroken                          // cut off
	cuptiKernels                         // kernels; what follows says what became of them, and adds up to this
	cuptiLinked                          // linked to their ncclKernelLaunch
	cuptiNoExternal                      // launched by a call that was not under any: the application's own
	cuptiNoCall                          // their API calls are not known
	cuptiAged                            // neither API call nor external id came in time
	cuptiImplausible                     // the external id cannot be that of their call
	cuptiAmbiguous                       // their correlation id was used twice
	cuptiGraphLinked                     // of a graph, linked to the replayed plan
	cuptiGraphUnlinked                   // NCCL's, of a graph, and not certain which plan's
	cuptiGraphOther                      // other ones of graphs
	cuptiUnlinked                        // NCCL's, of whatever reason, that are not linked
	cuptiReplays                         // replayed plans of which it is not certain which kernel theirs was
	cuptiNoPlan                          // linked to a launch without a plan that was waiting: no second source of times
	cuptiIdle                            // launches that no kernel came for: captured, or never run
	cuptiCopies
	cuptiSets
	cuptiWaits // synchronization
	cuptiGraphs
	cuptiNoTimes      // activities that CUPTI could not time, not drawn
	cuptiNoClock      // activities whose times could not be brought to the process's clock, not drawn
	cuptiNoDevice     // waits in contexts of unknown devices, not drawn
	cuptiNoRow        // activities of more streams than are drawn
	cuptiBeforeLaunch // kernels that began before their launch: their times are not taken for their plan's
	cuptiEarly        // activities written before their time because there were too many
	cuptiLate         // activities that came when later ones had been written: raised
	cuptiOverlaps     // activities beside others of their stream, drawn on rows of their own
	cuptiMoved        // of them, raised to the end of others because there were too many at a time
	cuptiClockJumps   // of CUPTI's clock
	cuptiForeignClock // readings that are not CLOCK_REALTIME: another client of CUPTI's has its own clock
	cuptiMemory       // allocations and releases of memory
	cuptiForgotten    // of them, no longer known because there were too many
	cuptiUndecided    // kernels of which it is not known yet what becomes of them; none at the end
	cuptiUndrawn      // records that are still to be drawn or understood; none at the end
	numCUPTICounts
)

// cuptiCountNames are the keys of shard.Counts.CUPTI.
var cuptiCountNames = [numCUPTICounts]string{
	"RECORDS", "UNKNOWN_RECORDS", "BROKEN_RECORDS",
	"KERNELS", "KERNELS_LINKED", "KERNELS_NO_EXTERNAL_ID", "KERNELS_NO_API_CALL", "KERNELS_AGED_OUT", "KERNELS_IMPLAUSIBLE",
	"KERNELS_AMBIGUOUS", "KERNELS_GRAPH_LINKED", "KERNELS_GRAPH_UNLINKED", "KERNELS_GRAPH_OTHER", "NCCL_KERNELS_UNLINKED",
	"REPLAYS_UNLINKED", "LINKED_WITHOUT_PLAN", "LAUNCHES_WITHOUT_KERNEL",
	"COPIES", "MEMSETS", "SYNCHRONIZATIONS", "GRAPHS", "WITHOUT_TIMES", "WITHOUT_CLOCK", "WITHOUT_DEVICE", "WITHOUT_ROW", "KERNELS_BEFORE_LAUNCH", "WRITTEN_EARLY", "WRITTEN_LATE",
	"OVERLAPS", "OVERLAPS_MOVED", "CLOCK_JUMPS", "FOREIGN_CLOCK_READINGS", "MEMORY_OPERATIONS", "MEMORY_FORGOTTEN",
	"KERNELS_UNDECIDED", "UNDRAWN",
}

// outcomes says which count an outcome of the correlator's is.
var outcomes = [cupti.NumOutcomes]cuptiCount{
	cupti.Linked: cuptiLinked, cupti.NoExternal: cuptiNoExternal, cupti.NoCall: cuptiNoCall, cupti.Aged: cuptiAged,
	cupti.Implausible: cuptiImplausible, cupti.Ambiguous: cuptiAmbiguous,
}

// foreignNs is how far CUPTI's default clock can be from CLOCK_REALTIME: both are read close to each other, but the
// reader may lose the CPU in between.
const foreignNs = 1e9

// startCUDA makes room for what CUPTI tells, once it tells anything.
func (m *Model) startCUDA() *cuda {
	if m.cuda == nil {
		g := &cuda{
			rows: make(map[rowID]*row), devices: make(map[uint32]int), contexts: make(map[uint32]uint32),
			replays: newReplays(), regions: newKernelRegions(),
		}
		// An activity that has been drawn is not linked any more, so nothing waits longer than that.
		g.correlator = cupti.NewCorrelator(&cupti.CorrelatorOptions{Age: m.activityHold()}, m.judgeCall, m.kernelCorrelated)
		m.kept.most = maxKeptLaunches
		m.cuda = g
	}
	return m.cuda
}

// takeActivity takes an activity record.
func (m *Model) takeActivity(t uint64, r *shm.Record) {
	g := m.startCUDA()
	g.counts[cuptiRecords]++
	rec, err := cupti.Parse(r.Activity, uint32(r.Arg))
	switch {
	case errors.Is(err, cupti.ErrKind):
		g.counts[cuptiUnknown]++
		return
	case err != nil:
		g.counts[cuptiBroken]++
		return
	}
	switch rec := rec.(type) {
	case *cupti.API:
		g.correlator.API(rec, t)
	case *cupti.External:
		if rec.ExternalKind == cupti.ExternalCustom2 {
			g.correlator.External(rec, t)
		}
	case *cupti.Kernel:
		g.contexts[rec.Context] = rec.Device
		g.counts[cuptiKernels]++
		m.takeKernel(g, t, rec, r.ActivityName)
	case *cupti.Copy:
		g.contexts[rec.Context] = rec.Device
		g.counts[cuptiCopies]++
		m.place(g, &activity{record: rec, arrived: t, id: rowID{rec.Device, rec.Context, rec.Stream, false}, start: rec.Start, stop: rec.End})
	case *cupti.Set:
		g.contexts[rec.Context] = rec.Device
		g.counts[cuptiSets]++
		m.place(g, &activity{record: rec, arrived: t, id: rowID{rec.Device, rec.Context, rec.Stream, false}, start: rec.Start, stop: rec.End})
	case *cupti.Synchronization:
		g.counts[cuptiWaits]++
		m.place(g, &activity{record: rec, arrived: t, id: rowID{0, rec.Context, rec.Stream, true}, start: rec.Start, stop: rec.End})
	case *cupti.GraphTrace:
		g.contexts[rec.Context] = rec.Device
		g.counts[cuptiGraphs]++
		m.place(g, &activity{record: rec, arrived: t, id: rowID{rec.Device, rec.Context, rec.Stream, false}, start: rec.Start, stop: rec.End})
	case *cupti.Memory:
		g.counts[cuptiMemory]++
		m.takeMemory(g, t, rec)
	case *cupti.MemoryPool:
		m.takePool(g, t, rec)
	}
}

// readCUPTIClock takes a reading of CUPTI's clock. How long the reading took is told in ticks; how long
// those are follows from two readings.
func (m *Model) readCUPTIClock(t uint64, r *shm.Record) {
	g := m.startCUDA()
	k := clockReading{cupti: r.Handle, line: t, ticks: r.Ticks, width: r.Arg}
	if d := int64(r.Handle - r.Real); d > foreignNs || -d > foreignNs {
		g.counts[cuptiForeignClock]++
	}
	if g.last.line != 0 && k.line > g.last.line && k.ticks > g.last.ticks {
		g.perTick = float64(k.line-g.last.line) / float64(k.ticks-g.last.ticks)
	}
	g.last = k
	if g.perTick == 0 {
		g.first = &k
		return
	}
	if g.first != nil {
		g.add(*g.first)
		g.first = nil
	}
	g.add(k)
	if n := g.clock.Segments(); n > 0 {
		g.counts[cuptiClockJumps] = uint64(n - 1)
	}
	m.placeUntimed(g)
}

func (g *cuda) add(k clockReading) {
	g.clock.Add(k.cupti, k.line, uint64(float64(k.width)*g.perTick))
}

// later keeps a record until the clock covers its times.
func (m *Model) later(g *cuda, u untimed) {
	if covered, ok := g.clock.Covered(); ok && u.last <= covered && u.place(m, g) == nil {
		return
	}
	if len(g.untimed) >= maxActivities {
		m.loseUntimed(g)
	}
	g.untimed = append(g.untimed, u)
}

// loseUntimed gives the oldest of those up that wait for the clock.
func (m *Model) loseUntimed(g *cuda) {
	g.untimed[0].lost(m)
	g.untimed[0] = untimed{}
	g.untimed = g.untimed[1:]
}

// placeUntimed tries again, when the clock covers more.
func (m *Model) placeUntimed(g *cuda) {
	g.untimed = slices.DeleteFunc(g.untimed, func(u untimed) bool { return u.place(m, g) == nil })
}

// advanceCUDA gives up what has waited long enough, and writes what is due.
func (m *Model) advanceCUDA(t uint64) {
	g := m.cuda
	if g == nil {
		return
	}
	g.correlator.Expire(t)
	for len(g.untimed) > 0 && g.untimed[0].arrived+clockLimit < t {
		m.loseUntimed(g)
	}
	m.writeRows(g, t)
}

// linkRest links what can be linked, as nothing more will come.
func (m *Model) linkRest() {
	if m.cuda != nil {
		m.placeUntimed(m.cuda)
		m.cuda.correlator.End()
	}
}

// finishCUDA writes what is left.
func (m *Model) finishCUDA() {
	g := m.cuda
	if g == nil {
		return
	}
	for len(g.untimed) > 0 {
		m.loseUntimed(g)
	}
	m.writeRows(g, noTime)
	g.counts[cuptiIdle] = g.correlator.Idle
}

// noTime is later than every time.
const noTime = 1<<64 - 1

// cuptiCounts gives the counts of what CUPTI told, by name, without those that are 0; nil if it told nothing.
func (m *Model) cuptiCounts() map[string]uint64 {
	if m.cuda == nil {
		return nil
	}
	g := m.cuda
	g.counts[cuptiUndecided] = g.counts[cuptiKernels] - g.decided()
	g.counts[cuptiUndrawn] = uint64(g.held + len(g.untimed))
	out := make(map[string]uint64)
	for i, n := range g.counts {
		if n > 0 {
			out[cuptiCountNames[i]] = n
		}
	}
	return out
}

// decided is the number of kernels that it is known of what became of them.
func (g *cuda) decided() uint64 {
	n := g.counts[cuptiGraphLinked] + g.counts[cuptiGraphUnlinked] + g.counts[cuptiGraphOther]
	for _, c := range outcomes {
		n += g.counts[c]
	}
	return n
}

// gpuOf is the index of a CUDA device of this process: the communicator's that was seen to run kernels there, else
// that of the same number, else one that no communicator uses.
func (m *Model) gpuOf(g *cuda, device uint32) int {
	if i, ok := g.devices[device]; ok {
		return i
	}
	i := m.deviceNumber(int(device))
	g.devices[device] = i
	return i
}
