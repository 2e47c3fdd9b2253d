// SPDX-License-Identifier: Apache-2.0

package cuda

import "github.com/nccl-otf2/nccl-otf2/cupti"

// Counters of CUPTI's records: each kernel is counted once by its fate.

// count is a counter of CUPTI's records.
type count int

const (
	countRecords       count = iota // activity records
	countUnknown                    // of kinds that are not used
	countBroken                     // cut off
	countKernels                    // kernels; the following counts add up to this
	countLinked                     // linked to their ncclKernelLaunch
	countOther                      // not NCCL's, launched under no external id: the application's own
	countNoExternal                 // NCCL's, launched by a call without an external id
	countNoCall                     // their API calls are not known
	countAged                       // NCCL's, and neither API call nor external id came in time
	countImplausible                // the external id cannot be that of their call
	countAmbiguous                  // their correlation id was used twice
	countGraphLinked                // of a graph, linked to the replayed plan
	countGraphUnlinked              // NCCL's, of a graph, and not certain which plan's
	countGraphOther                 // other ones of graphs
	countUnlinked                   // NCCL's that are not linked, for any reason
	countReplays                    // replayed plans whose kernel is not certain
	countNoPlan                     // linked to a launch without a plan that was waiting: no second source of times
	countIdle                       // launches without a kernel: captured, or never run
	countCopies
	countSets
	countWaits // synchronization
	countGraphs
	countNoTimes      // activities that CUPTI could not time, not drawn
	countNoClock      // activities whose times could not be brought to the process's clock, not drawn
	countNoDevice     // waits in contexts of unknown devices, not drawn
	countNoRow        // activities of streams beyond those that are drawn
	countBeforeLaunch // kernels that began before their launch: their times are not taken for their plan's
	countEarly        // activities written before their time because there were too many
	countLate         // activities that came when later ones had been written: raised
	countOverlaps     // activities beside others of their stream, drawn on rows of their own
	countMoved        // of them, raised to the end of others because too many ran at one time
	countClockJumps   // of CUPTI's clock
	countForeignClock // readings that are not CLOCK_REALTIME: another client of CUPTI's has its own clock
	countMemory       // allocations and releases of memory
	countForgotten    // of them, dropped because there were too many
	countUndecided    // kernels not classified yet; none at the end
	countUndrawn      // records not drawn or decoded yet; none at the end
	numCounts
)

// Keys of Counts that reports have sentences for.
const (
	CountRecords     = "RECORDS"
	CountKernels     = "KERNELS"
	CountLinked      = "KERNELS_LINKED"
	CountOther       = "KERNELS_OTHER"
	CountGraphLinked = "KERNELS_GRAPH_LINKED"
	CountUnlinked    = "NCCL_KERNELS_UNLINKED"
	CountNoTimes     = "WITHOUT_TIMES"
	CountNoClock     = "WITHOUT_CLOCK"
	CountNoDevice    = "WITHOUT_DEVICE"
	CountNoRow       = "WITHOUT_ROW"
	CountUndecided   = "KERNELS_UNDECIDED"
	CountUndrawn     = "UNDRAWN"
)

// CountNames are the keys of Counts; docs/gpu.md explains them.
var CountNames = [numCounts]string{
	CountRecords, "UNKNOWN_RECORDS", "BROKEN_RECORDS",
	CountKernels, CountLinked, CountOther, "KERNELS_NO_EXTERNAL_ID", "KERNELS_NO_API_CALL", "KERNELS_AGED_OUT",
	"KERNELS_IMPLAUSIBLE",
	"KERNELS_AMBIGUOUS", CountGraphLinked, "KERNELS_GRAPH_UNLINKED", "KERNELS_GRAPH_OTHER", CountUnlinked,
	"REPLAYS_UNLINKED", "LINKED_WITHOUT_PLAN", "LAUNCHES_WITHOUT_KERNEL",
	"COPIES", "MEMSETS", "SYNCHRONIZATIONS", "GRAPHS", CountNoTimes, CountNoClock, CountNoDevice, CountNoRow,
	"KERNELS_BEFORE_LAUNCH", "WRITTEN_EARLY", "WRITTEN_LATE",
	"OVERLAPS", "OVERLAPS_MOVED", "CLOCK_JUMPS", "FOREIGN_CLOCK_READINGS", "MEMORY_OPERATIONS", "MEMORY_FORGOTTEN",
	CountUndecided, CountUndrawn,
}

// outcomes says which count an outcome of the correlator's is.
var outcomes = [cupti.NumOutcomes]count{
	cupti.Linked: countLinked, cupti.NoExternal: countNoExternal, cupti.NoCall: countNoCall, cupti.Aged: countAged,
	cupti.Implausible: countImplausible, cupti.Ambiguous: countAmbiguous,
}

// withoutID are the outcomes of activities that no external id came for. Those of kernels that are not NCCL's are what
// is to be expected: most are launched by calls of the CUDA runtime, which CUPTI does not report to who asks for calls
// of the driver.
var withoutID = [cupti.NumOutcomes]bool{cupti.NoExternal: true, cupti.Aged: true}

// Counts gives the counts of what CUPTI told, by name, without those that are 0; nil if it told nothing.
func (g *Recorder) Counts() map[string]uint64 {
	if !g.active {
		return nil
	}
	g.counts[countUndecided] = g.counts[countKernels] - g.countDecided()
	g.counts[countUndrawn] = uint64(g.streams.held + len(g.times.waiting))
	out := make(map[string]uint64)
	for i, n := range g.counts {
		if n > 0 {
			out[CountNames[i]] = n
		}
	}
	return out
}

// countDecided is the number of kernels that it is known of what became of them.
func (g *Recorder) countDecided() uint64 {
	n := g.counts[countGraphLinked] + g.counts[countGraphUnlinked] + g.counts[countGraphOther] + g.counts[countOther]
	for _, c := range outcomes {
		n += g.counts[c]
	}
	return n
}
