// SPDX-License-Identifier: Apache-2.0

// Package property has the names of the properties of archives, and reads them: what does an archive say of itself, of
// its communicators' parents, of its hosts' clocks, of ranks that recorded different operations?
package property

import (
	"cmp"
	"fmt"
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

// UnknownRanks is the value of NoData when the ranks are unknown.
const UnknownRanks = "unknown"

// AbsentRanks lists, for each location group that stands for ranks without data (see NoData), their ranks in the
// world, ascending. The list is empty where the ranks are unknown.
func AbsentRanks(defs *otf2.Definitions) map[otf2.LocationGroupRef][]int {
	all := make(map[otf2.LocationGroupRef][]int)
	for _, p := range defs.LocationGroupProperties {
		if g := defs.LocationGroup(p.LocationGroup); p.Type == otf2.TypeString &&
			defs.String(p.Name) == NoData.Key() &&
			g != nil && g.Type == otf2.LocationGroupTypeProcess {
			all[p.LocationGroup] = parseRanks(defs.String(otf2.StringRef(p.Value)))
		}
	}
	for _, g := range defs.LocationGroups {
		if g.Type == otf2.LocationGroupTypeAccelerator {
			delete(all, g.Creator) // who has a GPU has data
		}
	}
	return all
}

// parseRanks parses an ascending list of ranks such as "0-3,7". It returns an empty list for malformed text and for too
// many ranks.
func parseRanks(text string) (ranks []int) {
	next := 0
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < next || last < first || last-first >= description.MaxRanks-len(ranks) {
			return nil
		}
		for r := first; r <= last; r++ {
			ranks = append(ranks, r)
		}
		next = last + 1
	}
	return ranks
}

// Birth is how a communicator came from its parent (otf2.Comm.Parent).
type Birth struct {
	Comm   otf2.CommRef
	Parent otf2.CommRef
	// Split is 1, 2, … for the parent's splits in order, 0 for a shrink.
	Split uint32
	Color uint32 // of a split
}

// String is the value of a property: "comm 5 of 2 split 1 color 0", "comm 6 of 2 shrink".
func (b Birth) String() string { return fmt.Sprintf("comm %d of %d %s", b.Comm, b.Parent, b.Words()) }

// Words are how it came to be: "split 1 color 0", "shrink".
func (b Birth) Words() string {
	if b.Split == 0 {
		return "shrink"
	}
	return fmt.Sprintf("split %d color %d", b.Split, b.Color)
}

// Births reads how the communicators of an archive came from their parents.
func Births(a *otf2.Anchor) map[otf2.CommRef]Birth {
	all := make(map[otf2.CommRef]Birth)
	for _, value := range Read(a).Numbered(Parents) {
		var b Birth
		head, how, _ := strings.Cut(value, " s")
		if n, err := fmt.Sscanf(head, "comm %d of %d", &b.Comm, &b.Parent); n != 2 || err != nil {
			continue
		}
		if n, err := fmt.Sscanf(how, "plit %d color %d", &b.Split, &b.Color); how == "hrink" || n == 2 && err == nil {
			all[b.Comm] = b
		}
	}
	return all
}

// HostClocks states how accurately the clocks of an archive's hosts were synchronized.
type HostClocks struct {
	// Most is the largest error (ns) of a corrected clock against its reference clock.
	Most     uint64 `json:"uncertainty_most_ns"`
	OneSided uint64 `json:"one_sided"` // hosts whose clocks are bounded from one side only
	Untied   uint64 `json:"untied"`    // hosts without common events with others; their clocks are as recorded
	Groups   uint64 `json:"groups"`    // of synchronized hosts; times of different groups do not compare
}

// HostClocksOf returns nil if the hosts' clocks are as recorded.
func HostClocksOf(a *otf2.Anchor) *HostClocks {
	ps := Read(a)
	if !ps.Has(ClockSync) {
		return nil
	}
	c := new(HostClocks)
	for p, to := range map[Name]*uint64{
		SyncMost: &c.Most, SyncOneSided: &c.OneSided, SyncUntied: &c.Untied, SyncReference: &c.Groups,
	} {
		*to, _ = ps.Number(p)
	}
	return c
}

// Bounded reports whether times of any two hosts compare to within Most.
func (c *HostClocks) Bounded() bool { return c.OneSided == 0 && c.Untied == 0 && c.Groups <= 1 }

// Stretch is a range of operations that the members of a communicator recorded differently, as unify found. Comparing
// them would match different operations.
type Stretch struct {
	Comm        otf2.CommRef
	Function    string // "AllReduce", or "Send 0>3" for the messages from rank 0 to 3
	First, Last uint64 // ordinals, inclusive
	Name        string // of the communicator
	Detail      string // which ranks of the world recorded what
	Unsure      bool   // nothing may be missing: ranks' times contradict each other; not in properties
}

// String says which operations they are, and what is the matter with them.
func (s Stretch) String() string {
	which := fmt.Sprintf("%s %d", s.Function, s.First)
	if s.Last != s.First {
		which += fmt.Sprintf("-%d", s.Last)
	}
	return fmt.Sprintf("%s of %s: %s", which, cmp.Or(s.Name, "–"), s.Detail)
}

// Stretches reads these ranges from the archive's properties (Differ): comm 3 AllReduce 64-127 "name": …. unnamed
// is the number of further ranges, which the archive does not list.
func Stretches(a *otf2.Anchor) (all []Stretch, unnamed uint64) {
	ps := Read(a)
	for _, value := range ps.Numbered(Differ) {
		head, rest, _ := strings.Cut(value, " \"")
		words := strings.Fields(head)
		if len(words) < 4 || words[0] != "comm" {
			continue
		}
		var s Stretch
		comm, err := strconv.ParseUint(words[1], 10, 32)
		if err != nil {
			continue
		}
		if _, err := fmt.Sscanf(words[len(words)-1], "%d-%d", &s.First, &s.Last); err != nil {
			continue
		}
		if quoted, err := strconv.QuotedPrefix("\"" + rest); err == nil {
			s.Name, _ = strconv.Unquote(quoted)
			s.Detail = strings.TrimPrefix(("\"" + rest)[len(quoted):], ": ")
		}
		s.Comm, s.Function = otf2.CommRef(comm), strings.Join(words[2:len(words)-1], " ")
		all = append(all, s)
	}
	n, _ := ps.Number(Differ)
	return all, n - min(n, uint64(len(all)))
}

// Excluded reports whether an operation lies in one of the stretches.
func Excluded(all []Stretch, comm otf2.CommRef, function string, ordinal uint64) bool {
	return slices.ContainsFunc(all, func(s Stretch) bool {
		return s.Comm == comm && s.Function == function && s.First <= ordinal && ordinal <= s.Last
	})
}
