// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
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
	// Operations that all members ended (a collective is one), and their sizes together: what the
	// program moved, as nccl-tests counts it. Messages count once, at the sender.
	Operations uint64 `json:"operations"`
	Bytes      uint64 `json:"bytes"`
	Calls      uint64 `json:"calls"`      // parts of all ranks in them, both ends of messages
	Unfinished uint64 `json:"unfinished"` // collectives that not every member with data ended
	LeftOut    uint64 `json:"left_out"`   // parts in collectives that the members did not record alike
	Alone      uint64 `json:"alone"`      // operations on communicators of one rank

	Begin    otf2.Timestamp    `json:"begin"` // of the first event
	Duration uint64            `json:"duration_ns"`
	Complete bool              `json:"complete"` // the archive does not say that communication is missing
	Lost     map[string]uint64 `json:"lost"`     // "REASON::TYPE"
	Oddities map[string]uint64 `json:"oddities"`
	Timing   map[string]uint64 `json:"timing"` // operations by timing source, as the processes counted them
	Filtered map[string]uint64 `json:"filtered"`
	Network  map[string]uint64 `json:"network"` // PUTS, PUT_BYTES, RECEIVED_BYTES, …; empty if proxies were not recorded
	CUPTI    map[string]uint64 `json:"cupti"`   // KERNELS, KERNELS_LINKED, NCCL_KERNELS_UNLINKED, …; empty if CUPTI told nothing
	// CUPTIStates says what became of CUPTI in which processes; empty if none was to use it.
	CUPTIStates []SelfValue `json:"cupti_states,omitempty"`
	// Withheld says what was wanted and could not be asked of NCCL safely, by processes; empty if nothing was.
	Withheld []SelfValue       `json:"withheld,omitempty"`
	Paused   map[string]uint64 `json:"paused"` // starts that were not recorded on request, by type
	// Gaps are the operations that were not recorded on request, or could not be written. The archive names the first ones only;
	// GapCount is their number.
	Gaps     []Gap  `json:"gaps"`
	GapCount uint64 `json:"gap_count"`
	// Differences between the members' sequences, see package scorep.
	Differences uint64 `json:"sequence_differences"`
	// Hidden is what the library does not tell a profiler plugin, at least not on all processes.
	Hidden []hidden.Traffic `json:"hidden"`
}

// Gap is a run of a communicator's operations that were not recorded, on request or because they could not be written.
type Gap struct {
	Communicator string       `json:"communicator"`
	Comm         otf2.CommRef `json:"comm"`
	Replayed     bool         `json:"replayed"`       // operations of replayed graphs, which count by themselves
	First        uint64       `json:"first"`          // ordinal on the communicator, from 0, of any function
	Last         *uint64      `json:"last"`           // nil: up to the end
	Lost         bool         `json:"lost,omitempty"` // not on request
}

func (o *operations) summary(a *otf2.Archive, ps properties, comms map[otf2.CommRef]*facts.Communicator) Summary {
	defs := a.Defs
	s := Summary{
		Archive: a.Path(), Creator: a.Anchor.Creator, Locations: len(defs.Locations), Events: o.events,
		Unfinished: o.unfinished, Alone: o.alone, LeftOut: o.leftOut, Begin: o.first, Duration: uint64(o.last - o.first),
		Complete: !ps.Incomplete(), Lost: ps.Below(facts.PropLost), Oddities: ps.Below(facts.PropOddities),
		Timing: ps.Below(facts.PropTiming), Filtered: ps.Below(facts.PropFiltered),
		Network: ps.Below(facts.PropNetwork), CUPTI: ps.Below(facts.PropCUPTI), CUPTIStates: ps.values(facts.PropCUPTIState), Withheld: ps.values(facts.PropWithheld), Paused: ps.Below(facts.PropPaused), Gaps: ps.gaps(), Hidden: ps.hidden(),
	}
	s.Missing, _ = ps.Number(facts.PropProcessesMissing)
	s.Running, _ = ps.Number(facts.PropProcessesRunning)
	s.Crashed, _ = ps.Number(facts.PropProcessesCrashed)
	s.Died = append([]string{}, ps.Numbered(facts.PropDied)...)
	s.Differences, _ = ps.Number(facts.PropDiffer)
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
	s.Processes -= int(absentGroups(defs, s.Missing))
	s.Hosts = len(hosts)
	if s.Missing > 0 {
		s.Hosts-- // the node of those whose host is not known
	}
	for _, d := range defs.SystemTreeNodeDomains {
		if d.Domain == otf2.SystemTreeDomainAcceleratorDevice {
			s.GPUs++
		}
	}
	ranks, _ := worldRanks(defs, comms)
	s.Ranks = len(ranks)
	for _, c := range comms {
		if c.Size() > 1 {
			s.Communicators++
		}
	}
	for key, r := range o.rows {
		for _, n := range r.calls {
			s.Calls += n
		}
		if key.function == "Recv" {
			continue
		}
		s.Operations += r.times.Count
		s.Bytes += key.size * r.times.Count
	}
	return s
}
