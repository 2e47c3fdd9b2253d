// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// PropertyPrefix begins the names of all properties of ours.
const PropertyPrefix = "NCCL_OTF2::"

// CompleteProperty is OTF2's own property of archives: whether every collective and message has all its parts.
const CompleteProperty = "OTF2::MPI_COMMUNICATION_COMPLETE"

// Property is the name of a property of an archive, of its definitions or of a profile, without PropertyPrefix. This is
// the one table of them; package scorep, which writes most, says what they mean.
type Property string

// Properties of archives: how many processes and communicators they are of, and in which state.
const (
	PropProcesses          Property = "PROCESSES"
	PropProcessesFinished  Property = "PROCESSES_FINISHED"
	PropProcessesRunning   Property = "PROCESSES_RUNNING"
	PropProcessesCrashed   Property = "PROCESSES_CRASHED"
	PropProcessesContinued Property = "PROCESSES_CONTINUED"
	PropProcessesDied      Property = "PROCESSES_DIED"
	PropProcessesMissing   Property = "PROCESSES_MISSING"
	PropCommunicators      Property = "COMMUNICATORS"
	PropRanksMissing       Property = "RANKS_MISSING"
	PropRanksUnsized       Property = "RANKS_OF_UNKNOWN_SIZE"
)

// Keys of ends, below PropEnds.
const (
	EndsEarly = experiment.EarlyEnds
	EndsMoved = experiment.MovedEnds
)

// Properties of archives: what was counted.
const (
	PropStarts        Property = "STARTS"
	PropStops         Property = "STOPS"
	PropStates        Property = "STATES"
	PropFiltered      Property = "FILTERED"
	PropPaused        Property = "PAUSED"
	PropLost          Property = "LOST"
	PropLostByProcess Property = "LOST_BY_PROCESS"
	PropNullHandles   Property = "NULL_HANDLES"
	PropOddities      Property = "ODDITIES"
	PropTiming        Property = "TIMING"
	PropEnds          Property = "ENDS" // operations that end with a part of their kernel: EndsEarly, EndsMoved
	PropEndsMoved     Property = PropEnds + "::" + EndsMoved
	PropNetwork       Property = "NETWORK"
	PropCUPTI         Property = "CUPTI"
	PropScorep        Property = "SCOREP"
	PropImport        Property = "IMPORT"
	PropPXN           Property = "PXN"
	PropPXNUnresolved Property = "PXN_UNRESOLVED"
	PropTagCollisions Property = "TAG_COLLISIONS"
	PropMetricsLeft   Property = "GPU_METRICS_LEFT_OUT"
	PropCost          Property = "COST" // COST::<CALLBACK>::<TYPE>:: and the next three
	PropCostSamples   Property = "SAMPLES"
	PropCostMean      Property = "MEAN_NS"
	PropCostMost      Property = "MOST_NS"
)

// Properties of archives: what is to be known of their data.
const (
	PropDied         Property = "DIED"
	PropSilent       Property = "SILENT"
	PropUncounted    Property = "LOST_UNCOUNTED"
	PropDamaged      Property = "DAMAGED"
	PropDiffer       Property = "SEQUENCES_DIFFER"
	PropStopped      Property = "STOPPED"
	PropMissing      Property = "MISSING_CALLS" // of a location, see Missing
	PropGaps         Property = "GAPS"
	PropGapsDiffer   Property = "GAPS_DIFFER"
	PropHidden       Property = "HIDDEN"
	PropParents      Property = "PARENTS"
	PropMerged       Property = "MERGED"
	PropMergedPairs  Property = PropMerged + "::PROCESSES"
	PropMergedLeft   Property = PropMerged + "::THREADS_LEFT_OUT"
	PropMergedMarked Property = PropMerged + "::THREADS_MARKED"
	PropClockSync    Property = "CLOCK_SYNC"
	PropSyncHosts    Property = PropClockSync + "::HOSTS"
	PropSyncExchange Property = PropClockSync + "::EXCHANGES"
	PropSyncReadings Property = PropClockSync + "::READINGS"
	PropSyncBroken   Property = PropClockSync + "::BROKEN"
	PropSyncMost     Property = PropClockSync + "::UNCERTAINTY_MOST_NS"
	PropSyncHost     Property = PropClockSync + "::HOST"

	// Hosts by what was done to their clocks.
	PropSyncReference Property = PropClockSync + "::REFERENCE"
	PropSyncOneSided  Property = PropClockSync + "::ONE_SIDED"
	PropSyncUntied    Property = PropClockSync + "::UNTIED"
)

// Properties of archives: with what the processes were recorded. Where they differ they are numbered, see
// Properties.Numbered.
const (
	PropLibrary        Property = "LIBRARY"
	PropLibraryVersion Property = "LIBRARY_VERSION"
	PropLibraryPath    Property = "LIBRARY_PATH"
	PropAPIVersion     Property = "API_VERSION"
	PropEventMask      Property = "EVENT_MASK"
	PropWithheld       Property = "WITHHELD"
	PropRecordMask     Property = "RECORD_MASK"
	PropNetSteps       Property = "NETWORK_STEPS" // NetStepsSummed, where they are
	PropClockSource    Property = "CLOCK_SOURCE"
	PropMemoryKind     Property = "MEMORY_KIND"
	PropCUPTIState     Property = "CUPTI_STATE"
	PropCUPTIVersion   Property = "CUPTI_VERSION"
	PropScorepState    Property = "SCOREP_STATE"
	PropImportedFrom   Property = "IMPORTED_FROM"
	PropImportMissing  Property = "IMPORT_MISSING"
)

// NetStepsSummed is said of processes whose network steps were summed up by operation (NCCL_OTF2_EVENTS=net-sums).
const NetStepsSummed = "summed up by operation"

// Properties of definitions.
const (
	// PropNoData is of a location group that stands for processes without data: which ranks of the world they are,
	// "4-15,20", or UnknownRanks.
	PropNoData Property = "NO_DATA"
	PropPID    Property = "PID"     // of a process
	PropTID    Property = "TID"     // of a thread's row, and of a network's row the proxy thread
	PropThread Property = "THREAD"  // the system's name of that thread
	PropCommID Property = "COMM_ID" // of a communicator rank's row: NCCL's commId
	PropNNodes Property = "NNODES"  // of a communicator rank's row: NCCL's number of nodes
	PropOwners Property = "OWNERS"  // of a row that several had, one after the other: how many
	// PropRank is of a network's row: whose transfers it shows, by rank in the communicator.
	PropRank Property = "RANK"
)

// Properties of what is made of archives: views, and profiles.
const (
	PropView Property = "VIEW"
	// PropTransfers names, below PropView, the communicator whose messages are transfers. Their arrival is not
	// recorded.
	PropTransfers   Property = PropView + "::TRANSFERS"
	PropFoldedNames Property = "FOLDED_NAMES"
	PropWaitStates  Property = "WAIT_STATES"
)

// Key is the property's name in archives.
func (p Property) Key() string { return PropertyPrefix + string(p) }

// Below is the property of a kind of what p is of.
func (p Property) Below(kind string) Property { return p + "::" + Property(kind) }

// Nth is the property of the n-th of several.
func (p Property) Nth(n int) Property { return p.Below(strconv.Itoa(n)) }

// Properties of archives: facts about their data.
type Properties map[string]string

// PropertiesOf collects what an archive says of itself.
func PropertiesOf(a *otf2.Anchor) Properties {
	ps := make(Properties, len(a.Properties))
	for _, p := range a.Properties {
		ps[p.Name] = p.Value
	}
	return ps
}

// Text is the value of a property, "" if the archive has none.
func (ps Properties) Text(p Property) string { return ps[p.Key()] }

// Has reports whether the archive has a property.
func (ps Properties) Has(p Property) bool {
	_, ok := ps[p.Key()]
	return ok
}

// Number returns the value of a counter; ok is false if the archive lacks it.
func (ps Properties) Number(p Property) (n uint64, ok bool) {
	n, err := strconv.ParseUint(ps.Text(p), 10, 64)
	return n, err == nil
}

// Below collects the counters of a kind, TIMING → {"GPU": 12}.
func (ps Properties) Below(p Property) map[string]uint64 {
	all := make(map[string]uint64)
	for name := range ps {
		if kind, ok := strings.CutPrefix(name, p.Below("").Key()); ok {
			if n, ok := ps.Number(p.Below(kind)); ok {
				all[kind] = n
			}
		}
	}
	return all
}

// Numbered lists the values of NAME::0, NAME::1, ….
func (ps Properties) Numbered(p Property) (all []string) {
	for i := 0; ps.Has(p.Nth(i)); i++ {
		all = append(all, ps.Text(p.Nth(i)))
	}
	return all
}

// Incomplete reports whether the archive states that it lacks parts of the job's communication.
func (ps Properties) Incomplete() bool { return ps[CompleteProperty] == "false" }

// NetworkRanks maps the rows of networks to the rank in their communicator whose transfers they show.
func NetworkRanks(defs *otf2.Definitions) map[otf2.LocationRef]int {
	return locationProperty(defs, PropRank)
}

// NodesOf maps the rows of communicator ranks to the number of nodes of their communicators, as NCCL stated it. Rows of
// several communicators and rows without a statement are left out.
func NodesOf(defs *otf2.Definitions) map[otf2.LocationRef]int {
	return locationProperty(defs, PropNNodes)
}

// locationProperty gives the numbers that a property has at the locations with it.
func locationProperty(defs *otf2.Definitions, property Property) map[otf2.LocationRef]int {
	of := make(map[otf2.LocationRef]int)
	for _, p := range defs.LocationProperties {
		if defs.String(p.Name) == property.Key() {
			of[p.Location] = int(p.Value)
		}
	}
	return of
}
