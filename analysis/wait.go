// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Waits tells who waited for whom at the beginning of collectives.
//
// These are the waits of WaitStates in collectives, by rank. Clocks of different hosts are compared as they are in the archive.
//
// Who comes late to the first collective of a communicator was late with starting up, often by more than
// by everything that follows. These waits are kept apart, in StartUp, wherever more collectives follow.
type Waits struct {
	Collectives uint64     `json:"collectives"` // that were looked at
	LeftOut     uint64     `json:"left_out"`    // without times of two members that can be compared, or not ended by all
	Hosts       int        `json:"hosts"`       // whose clocks are compared
	Total       uint64     `json:"total_ns"`    // of all ranks
	Ranks       []RankWait `json:"ranks"`
	StartUp     StartUp    `json:"start_up"`
}

// StartUp is the waiting in the first collectives of communicators; it is not part of the other figures.
type StartUp struct {
	Collectives uint64 `json:"collectives"`
	Waited      uint64 `json:"waited_ns"` // of all ranks
	Rank        string `json:"rank"`      // that the others waited for most, "" if nobody waited
	Host        string `json:"host"`      // of that rank
	Caused      uint64 `json:"caused_ns"` // what others waited for it
}

// RankWait is one rank's waiting. A rank is a process, or one GPU of a process that has several.
type RankWait struct {
	Rank        string `json:"rank"`
	Host        string `json:"host"`
	Collectives uint64 `json:"collectives"`
	Time        uint64 `json:"time_ns"`   // in these collectives
	Waited      uint64 `json:"waited_ns"` // of that
	Blame

	NoData bool `json:"no_data,omitempty"` // nothing was recorded of it
}

// Blame is what others waited for a rank, GPU or host.
type Blame struct {
	Caused    uint64         `json:"caused_ns"`
	Last      uint64         `json:"last"` // operations in which it was waited for
	MaxCaused uint64         `json:"max_caused_ns"`
	WorstAt   otf2.Timestamp `json:"worst_at"` // when the operation of MaxCaused began on it, archive time; 0 if it caused none
}

func (b *Blame) blame(caused uint64, at otf2.Timestamp) { b.merge(&Blame{caused, 1, caused, at}) }

func (b *Blame) merge(o *Blame) {
	b.Caused += o.Caused
	b.Last += o.Last
	if o.MaxCaused > b.MaxCaused {
		b.MaxCaused, b.WorstAt = o.MaxCaused, o.WorstAt
	}
}

// Culprit is the index of the rank that the others waited for most, −1 if nobody waited.
func (ws *Waits) Culprit() int {
	best := -1
	for i := range ws.Ranks {
		if c := ws.Ranks[i].Caused; c > 0 && (best < 0 || c > ws.Ranks[best].Caused) {
			best = i
		}
	}
	return best
}

// startUpOf sums up the first collectives of communicators.
func startUpOf(ranks []RankWait, first []arrival) StartUp {
	s := StartUp{Collectives: uint64(len(first))}
	caused := make([]uint64, len(ranks))
	for i := range first {
		a := &first[i]
		s.Waited += a.caused
		if a.caused > 0 {
			caused[a.culprit] += a.caused
		}
	}
	for i, c := range caused {
		if c > s.Caused {
			s.Rank, s.Host, s.Caused = ranks[i].Rank, ranks[i].Host, c
		}
	}
	return s
}

// worldRank is a process, or a GPU of a process with communicator ranks on several.
type worldRank struct {
	name, host     string
	gpu            string // "" if it is not known to have one
	process, group otf2.LocationGroupRef
	nth            int  // of those that the group stands for
	absent         bool // nothing was recorded of it
}

// worldRanks lists the ranks of the archive in world order, and which rank a communicator's location
// belongs to: of one that stands for several ranks without data the first, see facts.Communicator.Place.
func worldRanks(defs *otf2.Definitions, comms map[otf2.CommRef]*facts.Communicator) ([]worldRank, map[otf2.LocationRef]int) {
	type unit struct{ process, group otf2.LocationGroupRef }
	units := make(map[otf2.LocationRef]unit)
	gpus := make(map[otf2.LocationGroupRef]map[otf2.LocationGroupRef]bool) // of processes
	for _, c := range comms {
		for _, l := range c.Members {
			d := defs.Location(l)
			if d == nil {
				continue
			}
			u := unit{processOf(defs, d.Group), d.Group}
			units[l] = u
			if u.group == u.process {
				continue
			}
			if gpus[u.process] == nil {
				gpus[u.process] = make(map[otf2.LocationGroupRef]bool)
			}
			gpus[u.process][u.group] = true
		}
	}
	for l, u := range units { // a process with threads in communicators of MPI and one GPU in those of NCCL
		if u.group == u.process && len(gpus[u.process]) == 1 {
			for gpu := range gpus[u.process] {
				units[l] = unit{u.process, gpu}
			}
		}
	}
	index := make(map[unit]int)
	var ranks []worldRank
	absent := facts.AbsentRanks(defs)
	for _, u := range units {
		if _, ok := index[u]; ok {
			continue
		}
		index[u] = 0
		named := u.process
		if len(gpus[u.process]) > 1 {
			named = u.group
		}
		r := worldRank{process: u.process, group: u.group, host: hostOf(defs, u.process), gpu: gpuOf(defs, u.group)}
		if g := defs.LocationGroup(named); g != nil {
			r.name = defs.String(g.Name)
		}
		of, isAbsent := absent[u.process]
		r.absent = isAbsent
		if len(of) < 2 {
			ranks = append(ranks, r)
			continue
		}
		for i, rank := range of {
			r.name, r.nth = fmt.Sprintf("Rank %d (no data)", rank), i
			ranks = append(ranks, r)
		}
	}
	slices.SortFunc(ranks, func(a, b worldRank) int {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.group, b.group), cmp.Compare(a.nth, b.nth))
	})
	for i, r := range ranks {
		if r.nth == 0 {
			index[unit{r.process, r.group}] = i
		}
	}
	of := make(map[otf2.LocationRef]int, len(units))
	for l, u := range units {
		of[l] = index[u]
	}
	return ranks, of
}

// gpuOf names the device of an accelerator group, "" if the group is none.
func gpuOf(defs *otf2.Definitions, group otf2.LocationGroupRef) string {
	g := defs.LocationGroup(group)
	if g == nil || g.Type != otf2.LocationGroupTypeAccelerator {
		return ""
	}
	if n := defs.SystemTreeNode(g.SystemTreeParent); n != nil {
		for _, d := range defs.SystemTreeNodeDomains {
			if d.Node == g.SystemTreeParent && d.Domain == otf2.SystemTreeDomainAcceleratorDevice {
				return defs.String(n.Name)
			}
		}
	}
	return defs.String(g.Name)
}

// processOf is the process that a location group is or belongs to.
func processOf(defs *otf2.Definitions, group otf2.LocationGroupRef) otf2.LocationGroupRef {
	if g := defs.LocationGroup(group); g != nil && g.Type == otf2.LocationGroupTypeAccelerator {
		return g.Creator
	}
	return group
}

// hostOf is the name of the machine a process runs on: the nearest node of class "node", else the
// nearest at all.
func hostOf(defs *otf2.Definitions, process otf2.LocationGroupRef) string {
	g := defs.LocationGroup(process)
	if g == nil {
		return ""
	}
	name := ""
	for ref, steps := g.SystemTreeParent, 0; steps < len(defs.SystemTreeNodes); steps++ {
		n := defs.SystemTreeNode(ref)
		if n == nil {
			break
		}
		if name == "" {
			name = defs.String(n.Name)
		}
		if defs.String(n.Class) == "node" {
			return defs.String(n.Name)
		}
		ref = n.Parent
	}
	return name
}
