// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Summary describes an archive in a few numbers.
type Summary struct {
	Archive   string `json:"archive"`
	Creator   string `json:"creator"`
	Processes int    `json:"processes"` // processes with data
	Missing   uint64 `json:"processes_missing"`
	Running   uint64 `json:"processes_running"`
	Crashed   uint64 `json:"processes_crashed"`
	// NotRecorded describes the missing processes; nil if none is missing.
	NotRecorded *NotRecorded `json:"not_recorded,omitempty"`
	// Died has one sentence for each process that ended abnormally: how it ended, and which one was the first.
	Died []string `json:"died"`
	// Silent says since when ranks had recorded nothing, where processes died or run with nothing under way.
	Silent        string `json:"silent,omitempty"`
	Ranks         int    `json:"ranks"` // processes or GPUs with communicators
	Hosts         int    `json:"hosts"`
	GPUs          int    `json:"gpus"`
	Communicators int    `json:"communicators"` // of more than one rank
	Locations     int    `json:"locations"`
	Events        uint64 `json:"events"`
	// Operations counts the operations that all members with data have (a collective counts once), and Bytes sums up
	// their sizes: what the program moved, as nccl-tests counts it. Messages count once, at the sender.
	Operations uint64 `json:"operations"`
	Open       uint64 `json:"open"` // the Operations that had not ended on some member when its data did
	Bytes      uint64 `json:"bytes"`
	Calls      uint64 `json:"calls"`      // parts of all ranks in Operations, both ends of messages
	Unfinished uint64 `json:"unfinished"` // collectives that not every member with data ended
	LeftOut    uint64 `json:"left_out"`   // parts of collectives that the members recorded differently
	Alone      uint64 `json:"alone"`      // operations on communicators of one rank

	Begin    otf2.Timestamp    `json:"begin"` // time of the first event
	Duration uint64            `json:"duration_ns"`
	Complete bool              `json:"complete"` // the archive does not report missing communication
	Lost     map[string]uint64 `json:"lost"`     // "REASON::TYPE"
	// LostUncounted has one line for each process that lost an unknown number of further events, with the reason.
	LostUncounted []string `json:"lost_uncounted,omitempty"`
	// LostByProcess has the losses by process, if the archive has them.
	LostByProcess []LostOf          `json:"lost_by_process,omitempty"`
	Oddities      map[string]uint64 `json:"oddities"`
	Timing        map[string]uint64 `json:"timing"` // operations by timing source, as counted by the processes
	// Ends counts operations whose GPU time ends with a part of their kernel (EARLY), or was moved to the end that
	// others show (MOVED).
	Ends     map[string]uint64 `json:"ends"`
	Filtered map[string]uint64 `json:"filtered"`
	// Network has PUTS, PUT_BYTES, RECEIVED_BYTES, …; empty if proxies were not recorded.
	Network map[string]uint64 `json:"network"`
	// CUPTI has KERNELS, KERNELS_LINKED, NCCL_KERNELS_UNLINKED, …; empty if CUPTI reported nothing.
	CUPTI map[string]uint64 `json:"cupti"`
	// CUPTIStates says, by processes, what became of CUPTI; empty if no process was to use it.
	CUPTIStates []selfreport.Value `json:"cupti_states,omitempty"`
	// Withheld says, by processes, what was wanted but could not be asked of NCCL safely; empty if there was nothing.
	Withheld []selfreport.Value `json:"withheld,omitempty"`
	// Untimed is a clause that says why operations have no GPU times, or what to record to get them.
	Untimed string            `json:"-"`
	Paused  map[string]uint64 `json:"paused"` // starts that, on request, were not recorded, by type
	// Gaps are operations that, on request, were not recorded, or that could not be written. The archive names only
	// the first ones; GapCount is the number of all.
	Gaps     []selfreport.Gap `json:"gaps"`
	GapCount uint64           `json:"gap_count"`
	// Differences counts the differences between the members' sequences, see package scorep.
	Differences uint64 `json:"sequence_differences"`
	// Deviations are the first of them: what is left out of comparisons, and which ranks recorded what.
	Deviations []Deviation `json:"deviations"`
	// Hidden lists the traffic that the library does not report to a profiler plugin, at least not in all processes.
	Hidden []hidden.Traffic `json:"hidden"`
	// Selection describes the part of the archive in the report; nil: all of it. What the archive says about itself
	// (losses, times, network) always covers all of it.
	Selection *selection.Description `json:"selection,omitempty"`
}

// Deviation is a run of a communicator's operations of one function that its members recorded differently.
type Deviation struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	Function     string       `json:"function"` // "Send 0>3" for the messages from rank 0 to rank 3 of the communicator
	First        uint64       `json:"first"`    // ordinal, from 0
	Last         uint64       `json:"last"`
	Detail       string       `json:"detail"` // which ranks of the world recorded what
}

// LostOf is the number of events lost from a process.
type LostOf struct {
	Process string `json:"process"`
	Lost    uint64 `json:"lost"`
}

// lostByProcess names the processes that have lost events or operations.
func lostByProcess(defs *otf2.Definitions, ps selfreport.Properties) (all []LostOf) {
	lost := ps.Below(property.LostByProcess)
	for i, g := range defs.LocationGroups {
		if n := lost[strconv.Itoa(i)]; n > 0 && g.Type == otf2.LocationGroupTypeProcess {
			all = append(all, LostOf{defs.String(g.Name), n})
		}
	}
	return all
}

// maxDeviations limits the deviations in a summary.
const maxDeviations = 8

func deviationsOf(a *otf2.Archive) []Deviation {
	all := []Deviation{}
	stretches, _ := property.Stretches(a.Anchor)
	for _, s := range stretches[:min(len(stretches), maxDeviations)] {
		all = append(all, Deviation{Communicator: s.Name, Comm: s.Comm, Function: s.Function, First: s.First,
			Last: s.Last, Detail: s.Detail})
	}
	return all
}

func (o *operations) summary(a *otf2.Archive, ps selfreport.Properties,
	comms map[otf2.CommRef]*membership.Communicator) Summary {
	defs := a.Defs
	s := Summary{
		Archive: a.Path(), Creator: a.Anchor.Creator, Locations: len(defs.Locations), Events: o.events,
		Unfinished: o.unfinished, Open: o.open, Alone: o.alone, LeftOut: o.leftOut, Begin: o.begin,
		Selection: o.selected.Describe(), Duration: uint64(o.last - o.first),
		Complete: !ps.Incomplete(), Lost: ps.Below(property.Lost), LostUncounted: ps.Numbered(property.Uncounted),
		Oddities: ps.Below(property.Oddities),
		Timing:   ps.Below(property.Timing), Ends: ps.Below(property.Ends), Filtered: ps.Below(property.Filtered),
		Network: ps.Below(property.Network), CUPTI: ps.Below(property.CUPTI),
		CUPTIStates: ps.Values(property.CUPTIState), Withheld: ps.Values(property.Withheld),
		Untimed: ps.Untimed(), Paused: ps.Below(property.Paused), Gaps: ps.Gaps(), Hidden: ps.Hidden(),
	}
	s.Missing, _ = ps.Number(property.ProcessesMissing)
	s.Running, _ = ps.Number(property.ProcessesRunning)
	s.Crashed, _ = ps.Number(property.ProcessesCrashed)
	s.Died = append([]string{}, ps.Numbered(property.Died)...)
	s.Silent = ps.Text(property.Silent)
	s.Differences, _ = ps.Number(property.Differ)
	s.Deviations = deviationsOf(a)
	s.LostByProcess = lostByProcess(defs, ps)
	s.GapCount, _ = ps.Number(property.Gaps)
	hosts := make(map[otf2.SystemTreeNodeRef]bool)
	for _, g := range defs.LocationGroups {
		if g.Type != otf2.LocationGroupTypeProcess {
			continue
		}
		s.Processes++
		hosts[g.SystemTreeParent] = true
	}
	s.NotRecorded = notRecorded(defs, s.Missing)
	s.Processes -= int(selfreport.AbsentGroups(defs, s.Missing))
	s.Hosts = len(hosts)
	if s.Missing > 0 {
		s.Hosts-- // the node of those whose host is unknown
	}
	for _, d := range defs.SystemTreeNodeDomains {
		if d.Domain == otf2.SystemTreeDomainAcceleratorDevice {
			s.GPUs++
		}
	}
	ranks, _ := placement.Ranks(defs, comms)
	s.Ranks = len(ranks)
	for _, c := range comms {
		if c.Size() > 1 {
			s.Communicators++
		}
	}
	s.Calls, s.Operations, s.Bytes = o.rows.Totals()
	return s
}

// NotRecorded describes the ranks without data in an archive.
type NotRecorded struct {
	// Processes is a lower bound: of ranks for which only the communicator is known, it counts the largest number
	// missing in one communicator.
	Processes int    `json:"processes"`
	Ranks     string `json:"ranks"` // of the world: "4-15,20"; "" if unknown

	Unknown bool `json:"without_rank"` // for some of them only the communicator is known
}

// notRecorded collects the ranks without data; nil if missing, the archive's number of processes without data, is 0.
func notRecorded(defs *otf2.Definitions, missing uint64) *NotRecorded {
	if missing == 0 {
		return nil
	}
	n := &NotRecorded{Processes: int(missing)}
	var all []int
	for _, ranks := range property.AbsentRanks(defs) {
		all = append(all, ranks...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	n.Ranks, n.Unknown = units.Ranks(all), len(all) < n.Processes
	return n
}

// maxRanksText is the number of ranges of ranks that a line names.
const maxRanksText = 24

// Text names the processes without any record, in one line.
func (n *NotRecorded) Text() string {
	parts := strings.Split(n.Ranks, ",")
	text := "ranks " + n.Ranks
	if len(parts) == 1 && !strings.Contains(n.Ranks, "-") {
		text = "rank " + n.Ranks
	}
	switch {
	case n.Ranks == "":
		return fmt.Sprintf("nothing was recorded of %s whose ranks are not known",
			units.Count(n.Processes, "process", "processes"))
	case len(parts) > maxRanksText:
		text = fmt.Sprintf("ranks %s and %d more stretches", strings.Join(parts[:maxRanksText], ","),
			len(parts)-maxRanksText)
	}
	if n.Unknown {
		text += " and others"
	}
	return "nothing was recorded of " + text
}
