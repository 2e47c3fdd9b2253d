// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"slices"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Summary is an archive in a few numbers.
type Summary struct {
	Archive   string `json:"archive"`
	Creator   string `json:"creator"`
	Processes int    `json:"processes"` // with data
	Missing   uint64 `json:"processes_missing"`
	Running   uint64 `json:"processes_running"`
	Crashed   uint64 `json:"processes_crashed"`
	// NotRecorded tells which are missing; nil if none is.
	NotRecorded *NotRecorded `json:"not_recorded,omitempty"`
	// Died tells of processes that did not end in order: how, and who was first.
	Died          []string `json:"died"`
	Ranks         int      `json:"ranks"` // processes or GPUs with communicators
	Hosts         int      `json:"hosts"`
	GPUs          int      `json:"gpus"`
	Communicators int      `json:"communicators"` // of more than one rank
	Locations     int      `json:"locations"`
	Events        uint64   `json:"events"`
	// Operations that all members with data have (a collective is one), and their sizes together: what the
	// program moved, as nccl-tests counts it. Messages count once, at the sender.
	Operations uint64 `json:"operations"`
	Open       uint64 `json:"open"` // of Operations, those that had not ended on some member when its data did
	Bytes      uint64 `json:"bytes"`
	Calls      uint64 `json:"calls"`      // parts of all ranks in them, both ends of messages
	Unfinished uint64 `json:"unfinished"` // collectives that not every member with data ended
	LeftOut    uint64 `json:"left_out"`   // parts in collectives that the members did not record alike
	Alone      uint64 `json:"alone"`      // operations on communicators of one rank

	Begin    otf2.Timestamp    `json:"begin"` // of the first event
	Duration uint64            `json:"duration_ns"`
	Complete bool              `json:"complete"` // the archive does not say that communication is missing
	Lost     map[string]uint64 `json:"lost"`     // "REASON::TYPE"
	// LostUncounted says, one line for each process of which more is missing and nobody knows how much, why that is so.
	LostUncounted []string `json:"lost_uncounted,omitempty"`
	// LostByProcess are the same by the process that lacks them, as far as the archive tells.
	LostByProcess []LostOf          `json:"lost_by_process,omitempty"`
	Oddities      map[string]uint64 `json:"oddities"`
	Timing        map[string]uint64 `json:"timing"` // operations by timing source, as the processes counted them
	// EARLY: operations whose GPU time ends with a part of their kernel, MOVED: brought to where others show that it
	// ended
	Ends     map[string]uint64 `json:"ends"`
	Filtered map[string]uint64 `json:"filtered"`
	// PUTS, PUT_BYTES, RECEIVED_BYTES, …; empty if proxies were not recorded
	Network map[string]uint64 `json:"network"`
	// KERNELS, KERNELS_LINKED, NCCL_KERNELS_UNLINKED, …; empty if CUPTI told nothing
	CUPTI map[string]uint64 `json:"cupti"`
	// CUPTIStates says what became of CUPTI in which processes; empty if none was to use it.
	CUPTIStates []analysis.SelfValue `json:"cupti_states,omitempty"`
	// Withheld says what was wanted and could not be asked of NCCL safely, by processes; empty if nothing was.
	Withheld []analysis.SelfValue `json:"withheld,omitempty"`
	// Untimed says why operations have no times on the GPU, if they have none, or what to record: a clause.
	Untimed string            `json:"-"`
	Paused  map[string]uint64 `json:"paused"` // starts that were not recorded on request, by type
	// Gaps are the operations that were not recorded on request, or could not be written. The archive names the first
	// ones only; GapCount is their number.
	Gaps     []analysis.Gap `json:"gaps"`
	GapCount uint64         `json:"gap_count"`
	// Differences between the members' sequences, see package scorep.
	Differences uint64 `json:"sequence_differences"`
	// Deviations are the first of them: what is left out, and who asked for what.
	Deviations []Deviation `json:"deviations"`
	// Hidden is what the library does not tell a profiler plugin, at least not on all processes.
	Hidden []hidden.Traffic `json:"hidden"`
	// Selection is what part of the archive the report is of; nil: everything. What the archive says of itself (losses,
	// times, network) is of all.
	Selection *selection.Description `json:"selection,omitempty"`
}

// Deviation is a run of a communicator's operations of one function that its members did not record alike.
type Deviation struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	Function     string       `json:"function"` // "Send 0>3" for the messages from rank 0 to 3 of the communicator
	First        uint64       `json:"first"`    // ordinal, from 0
	Last         uint64       `json:"last"`
	Detail       string       `json:"detail"` // which ranks of the world recorded what
}

// LostOf is how much was lost of a process.
type LostOf struct {
	Process string `json:"process"`
	Lost    uint64 `json:"lost"`
}

// lostByProcess names the processes that events, or operations, are missing of.
func lostByProcess(defs *otf2.Definitions, ps analysis.Properties) (all []LostOf) {
	lost := ps.Below(facts.PropLostByProcess)
	for i, g := range defs.LocationGroups {
		if n := lost[strconv.Itoa(i)]; n > 0 && g.Type == otf2.LocationGroupTypeProcess {
			all = append(all, LostOf{defs.String(g.Name), n})
		}
	}
	return all
}

// maxDeviations is how many of them a summary names.
const maxDeviations = 8

func deviationsOf(a *otf2.Archive) []Deviation {
	all := []Deviation{}
	stretches, _ := facts.Stretches(a.Anchor)
	for _, s := range stretches[:min(len(stretches), maxDeviations)] {
		all = append(all, Deviation{Communicator: s.Name, Comm: s.Comm, Function: s.Function, First: s.First,
			Last: s.Last, Detail: s.Detail})
	}
	return all
}

func (o *operations) summary(a *otf2.Archive, ps analysis.Properties,
	comms map[otf2.CommRef]*facts.Communicator) Summary {
	defs := a.Defs
	s := Summary{
		Archive: a.Path(), Creator: a.Anchor.Creator, Locations: len(defs.Locations), Events: o.events,
		Unfinished: o.unfinished, Open: o.open, Alone: o.alone, LeftOut: o.leftOut, Begin: o.begin,
		Selection: o.selected.Describe(), Duration: uint64(o.last - o.first),
		Complete: !ps.Incomplete(), Lost: ps.Below(facts.PropLost), LostUncounted: ps.Numbered(facts.PropUncounted),
		Oddities: ps.Below(facts.PropOddities),
		Timing:   ps.Below(facts.PropTiming), Ends: ps.Below(facts.PropEnds), Filtered: ps.Below(facts.PropFiltered),
		Network: ps.Below(facts.PropNetwork), CUPTI: ps.Below(facts.PropCUPTI),
		CUPTIStates: ps.Values(facts.PropCUPTIState), Withheld: ps.Values(facts.PropWithheld),
		Untimed: ps.Untimed(), Paused: ps.Below(facts.PropPaused), Gaps: ps.Gaps(), Hidden: ps.Hidden(),
	}
	s.Missing, _ = ps.Number(facts.PropProcessesMissing)
	s.Running, _ = ps.Number(facts.PropProcessesRunning)
	s.Crashed, _ = ps.Number(facts.PropProcessesCrashed)
	s.Died = append([]string{}, ps.Numbered(facts.PropDied)...)
	s.Differences, _ = ps.Number(facts.PropDiffer)
	s.Deviations = deviationsOf(a)
	s.LostByProcess = lostByProcess(defs, ps)
	s.GapCount, _ = ps.Number(facts.PropGaps)
	hosts := make(map[otf2.SystemTreeNodeRef]bool)
	for _, g := range defs.LocationGroups {
		if g.Type != otf2.LocationGroupTypeProcess {
			continue
		}
		s.Processes++
		hosts[g.SystemTreeParent] = true
	}
	s.NotRecorded = notRecorded(defs, s.Missing)
	s.Processes -= int(analysis.AbsentGroups(defs, s.Missing))
	s.Hosts = len(hosts)
	if s.Missing > 0 {
		s.Hosts-- // the node of those whose host is not known
	}
	for _, d := range defs.SystemTreeNodeDomains {
		if d.Domain == otf2.SystemTreeDomainAcceleratorDevice {
			s.GPUs++
		}
	}
	ranks, _ := analysis.Ranks(defs, comms)
	s.Ranks = len(ranks)
	for _, c := range comms {
		if c.Size() > 1 {
			s.Communicators++
		}
	}
	s.Calls, s.Operations, s.Bytes = o.rows.Totals()
	return s
}

// NotRecorded are the ranks that an archive has no data of.
type NotRecorded struct {
	// of those of which only the communicator is known, as many as one lacks at least
	Processes int    `json:"processes"`
	Ranks     string `json:"ranks"` // of the world: "4-15,20"; "" if that is not known of any

	Unknown bool `json:"without_rank"` // there are some of which only the communicator is known
}

// notRecorded collects the ranks without data. missing is how many processes the archive says have none.
func notRecorded(defs *otf2.Definitions, missing uint64) *NotRecorded {
	if missing == 0 {
		return nil
	}
	n := &NotRecorded{Processes: int(missing)}
	var all []int
	for _, ranks := range facts.AbsentRanks(defs) {
		all = append(all, ranks...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	n.Ranks, n.Unknown = units.Ranks(all), len(all) < n.Processes
	return n
}
