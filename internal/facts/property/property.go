// SPDX-License-Identifier: Apache-2.0

package property

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Prefix begins the names of all properties of ours.
const Prefix = "NCCL_OTF2::"

// Complete is OTF2's own property of archives: whether every collective and message has all its parts.
const Complete = "OTF2::MPI_COMMUNICATION_COMPLETE"

// Name is the name of a property of an archive, of its definitions or of a profile, without Prefix. This is
// the one table of them; package scorep, which writes most, says what they mean.
type Name string

// Properties of archives: how many processes and communicators they are of, and in which state.
const (
	Processes          Name = "PROCESSES"
	ProcessesFinished  Name = "PROCESSES_FINISHED"
	ProcessesRunning   Name = "PROCESSES_RUNNING"
	ProcessesCrashed   Name = "PROCESSES_CRASHED"
	ProcessesContinued Name = "PROCESSES_CONTINUED"
	ProcessesDied      Name = "PROCESSES_DIED"
	ProcessesMissing   Name = "PROCESSES_MISSING"
	Communicators      Name = "COMMUNICATORS"
	RanksMissing       Name = "RANKS_MISSING"
	RanksUnsized       Name = "RANKS_OF_UNKNOWN_SIZE"
)

// Keys of ends, below Ends.
const (
	EarlyEnds = description.EarlyEnds
	MovedEnds = description.MovedEnds
)

// Properties of archives: what was counted.
const (
	Starts        Name = "STARTS"
	Stops         Name = "STOPS"
	States        Name = "STATES"
	Filtered      Name = "FILTERED"
	Paused        Name = "PAUSED"
	Lost          Name = "LOST"
	LostByProcess Name = "LOST_BY_PROCESS"
	NullHandles   Name = "NULL_HANDLES"
	Oddities      Name = "ODDITIES"
	Timing        Name = "TIMING"
	Ends          Name = "ENDS" // operations that end with a part of their kernel: EarlyEnds, MovedEnds
	EndsMoved     Name = Ends + "::" + MovedEnds
	Network       Name = "NETWORK"
	CUPTI         Name = "CUPTI"
	Scorep        Name = "SCOREP"
	Import        Name = "IMPORT"
	PXN           Name = "PXN"
	PXNUnresolved Name = "PXN_UNRESOLVED"
	TagCollisions Name = "TAG_COLLISIONS"
	MetricsLeft   Name = "GPU_METRICS_LEFT_OUT"
	Cost          Name = "COST" // COST::<CALLBACK>::<TYPE>:: and the next three
	CostSamples   Name = "SAMPLES"
	CostMean      Name = "MEAN_NS"
	CostMost      Name = "MOST_NS"
)

// Properties of archives: what is to be known of their data.
const (
	Died         Name = "DIED"
	Silent       Name = "SILENT"
	Uncounted    Name = "LOST_UNCOUNTED"
	Damaged      Name = "DAMAGED"
	Differ       Name = "SEQUENCES_DIFFER"
	Stopped      Name = "STOPPED"
	Missing      Name = "MISSING_CALLS" // of a location, see Missing
	Gaps         Name = "GAPS"
	GapsDiffer   Name = "GAPS_DIFFER"
	Hidden       Name = "HIDDEN"
	Parents      Name = "PARENTS"
	Merged       Name = "MERGED"
	MergedPairs  Name = Merged + "::PROCESSES"
	MergedLeft   Name = Merged + "::THREADS_LEFT_OUT"
	MergedMarked Name = Merged + "::THREADS_MARKED"
	ClockSync    Name = "CLOCK_SYNC"
	SyncHosts    Name = ClockSync + "::HOSTS"
	SyncExchange Name = ClockSync + "::EXCHANGES"
	SyncReadings Name = ClockSync + "::READINGS"
	SyncBroken   Name = ClockSync + "::BROKEN"
	SyncMost     Name = ClockSync + "::UNCERTAINTY_MOST_NS"
	SyncHost     Name = ClockSync + "::HOST"

	// Hosts by what was done to their clocks.
	SyncReference Name = ClockSync + "::REFERENCE"
	SyncOneSided  Name = ClockSync + "::ONE_SIDED"
	SyncUntied    Name = ClockSync + "::UNTIED"
)

// Properties of archives: with what the processes were recorded. Where they differ they are numbered, see
// Properties.Numbered.
const (
	Library        Name = "LIBRARY"
	LibraryVersion Name = "LIBRARY_VERSION"
	LibraryPath    Name = "LIBRARY_PATH"
	APIVersion     Name = "API_VERSION"
	EventMask      Name = "EVENT_MASK"
	Withheld       Name = "WITHHELD"
	RecordMask     Name = "RECORD_MASK"
	NetSteps       Name = "NETWORK_STEPS" // NetStepsSummed, where they are
	ClockSource    Name = "CLOCK_SOURCE"
	MemoryKind     Name = "MEMORY_KIND"
	CUPTIState     Name = "CUPTI_STATE"
	CUPTIVersion   Name = "CUPTI_VERSION"
	ScorepState    Name = "SCOREP_STATE"
	ImportedFrom   Name = "IMPORTED_FROM"
	ImportMissing  Name = "IMPORT_MISSING"
)

// NetStepsSummed is said of processes whose network steps were summed up by operation (NCCL_OTF2_EVENTS=net-sums).
const NetStepsSummed = "summed up by operation"

// Properties of definitions.
const (
	// NoData is of a location group that stands for processes without data: which ranks of the world they are,
	// "4-15,20", or UnknownRanks.
	NoData Name = "NO_DATA"
	PID    Name = "PID"     // of a process
	TID    Name = "TID"     // of a thread's row, and of a network's row the proxy thread
	Thread Name = "THREAD"  // the system's name of that thread
	CommID Name = "COMM_ID" // of a communicator rank's row: NCCL's commId
	NNodes Name = "NNODES"  // of a communicator rank's row: NCCL's number of nodes
	Owners Name = "OWNERS"  // of a row that several had, one after the other: how many
	// Rank is of a network's row: whose transfers it shows, by rank in the communicator.
	Rank Name = "RANK"
)

// Properties of what is made of archives: views, and profiles.
const (
	View Name = "VIEW"
	// Transfers names, below View, the communicator whose messages are transfers. Their arrival is not
	// recorded.
	Transfers   Name = View + "::TRANSFERS"
	FoldedNames Name = "FOLDED_NAMES"
	WaitStates  Name = "WAIT_STATES"
)

// Key is the property's name in archives.
func (p Name) Key() string { return Prefix + string(p) }

// Below is the property of a kind of what p is of.
func (p Name) Below(kind string) Name { return p + "::" + Name(kind) }

// Nth is the property of the n-th of several.
func (p Name) Nth(n int) Name { return p.Below(strconv.Itoa(n)) }

// Properties of archives: facts about their data.
type Properties map[string]string

// Read collects what an archive says of itself.
func Read(a *otf2.Anchor) Properties {
	ps := make(Properties, len(a.Properties))
	for _, p := range a.Properties {
		ps[p.Name] = p.Value
	}
	return ps
}

// Text is the value of a property, "" if the archive has none.
func (ps Properties) Text(p Name) string { return ps[p.Key()] }

// Has reports whether the archive has a property.
func (ps Properties) Has(p Name) bool {
	_, ok := ps[p.Key()]
	return ok
}

// Number returns the value of a counter; ok is false if the archive lacks it.
func (ps Properties) Number(p Name) (n uint64, ok bool) {
	n, err := strconv.ParseUint(ps.Text(p), 10, 64)
	return n, err == nil
}

// Below collects the counters of a kind, TIMING → {"GPU": 12}.
func (ps Properties) Below(p Name) map[string]uint64 {
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
func (ps Properties) Numbered(p Name) (all []string) {
	for i := 0; ps.Has(p.Nth(i)); i++ {
		all = append(all, ps.Text(p.Nth(i)))
	}
	return all
}

// Incomplete reports whether the archive states that it lacks parts of the job's communication.
func (ps Properties) Incomplete() bool { return ps[Complete] == "false" }

// NetworkRanks maps the rows of networks to the rank in their communicator whose transfers they show.
func NetworkRanks(defs *otf2.Definitions) map[otf2.LocationRef]int {
	return locationProperty(defs, Rank)
}

// NodesOf maps the rows of communicator ranks to the number of nodes of their communicators, as NCCL stated it. Rows of
// several communicators and rows without a statement are left out.
func NodesOf(defs *otf2.Definitions) map[otf2.LocationRef]int {
	return locationProperty(defs, NNodes)
}

// locationProperty gives the numbers that a property has at the locations with it.
func locationProperty(defs *otf2.Definitions, property Name) map[otf2.LocationRef]int {
	of := make(map[otf2.LocationRef]int)
	for _, p := range defs.LocationProperties {
		if defs.String(p.Name) == property.Key() {
			of[p.Location] = int(p.Value)
		}
	}
	return of
}

// NetStepsSummed reports whether some processes recorded network steps in sums.
func (ps Properties) NetStepsSummed() bool {
	return slices.ContainsFunc(append(ps.Numbered(NetSteps), ps.Text(NetSteps)), func(value string) bool {
		return strings.HasPrefix(value, NetStepsSummed)
	})
}
