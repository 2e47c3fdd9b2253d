// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"maps"
	"slices"

	"ncclotf2/otf2"
)

// Waits tells who waited for whom at the beginning of collectives.
//
// The last member to begin on its GPU is the one the others waited for: each of them waited from its
// own begin to that one's, at most to its own end. Only members whose times are the GPU's count (all,
// in archives that do not know TIMING_SOURCE), and collectives in which at least two have them; of a
// plan of several collectives on a communicator the first counts, because they have one time. Clocks
// of different hosts are compared as they are in the archive.
//
// Who comes late to the first collective of a communicator was late with starting up, often by more than
// by everything that follows. These waits are kept apart, in StartUp, wherever more collectives follow.
type Waits struct {
	Collectives uint64     `json:"collectives"` // that were looked at
	LeftOut     uint64     `json:"left_out"`    // without GPU times of two members, unfinished, or not recorded alike
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
	Caused      uint64 `json:"caused_ns"` // what others waited for this rank
	Last        uint64 `json:"last"`      // collectives in which it began last
	MaxCaused   uint64 `json:"max_caused_ns"`
	// WorstAt is when the collective of MaxCaused began on this rank, archive time; 0 if it caused none.
	WorstAt otf2.Timestamp `json:"worst_at"`
}

// Culprit is the index of the rank that the others waited for most, −1 if nobody waited.
func (w *Waits) Culprit() int {
	best := -1
	for i := range w.Ranks {
		if c := w.Ranks[i].Caused; c > 0 && (best < 0 || c > w.Ranks[best].Caused) {
			best = i
		}
	}
	return best
}

// waitCounter sums up waiting, rank by rank.
type waitCounter struct {
	ranks   []RankWait
	of      map[otf2.LocationRef]int
	counted uint64
	leftOut uint64
	hosts   int
	wanted  source // of the times

	first   map[otf2.CommRef]*arrival // of each communicator, until a second follows
	startUp []arrival
}

// arrival is how the members of one collective came to it.
type arrival struct {
	parts  []part
	last   int // index into parts: who came last
	caused uint64
}

// part is one timed member's share.
type part struct {
	rank        int // index into waitCounter.ranks
	begin       otf2.Timestamp
	time, waits uint64
}

func newWaitCounter(defs *otf2.Definitions, comms map[otf2.CommRef]*communicator) *waitCounter {
	ranks, of := worldRanks(defs, comms)
	w := &waitCounter{of: of, wanted: sourceUnknown, first: make(map[otf2.CommRef]*arrival)}
	if findAttribute(defs, "TIMING_SOURCE", otf2.TypeString).found {
		w.wanted = sourceGPU
	}
	hosts := make(map[string]bool)
	for _, r := range ranks {
		w.ranks = append(w.ranks, RankWait{Rank: r.name, Host: r.host})
		hosts[r.host] = true
	}
	w.hosts = len(hosts)
	return w
}

// collective takes a collective that all its members have ended.
func (w *waitCounter) collective(comm otf2.CommRef, members []memberPart) {
	last := -1
	a := arrival{}
	leads := true
	for i := range members {
		m := &members[i]
		leads = leads && (m.leads || !m.grouped)
		if m.source != w.wanted {
			continue
		}
		if last < 0 || m.begin > members[last].begin || m.begin == members[last].begin && m.rank < members[last].rank {
			last, a.last = i, len(a.parts)
		}
		a.parts = append(a.parts, part{rank: w.of[m.location], begin: m.begin, time: uint64(m.end - m.begin)})
	}
	if !leads {
		return // its plan has been counted with its first collective
	}
	if len(a.parts) < 2 {
		w.leftOut++
		return
	}
	for i := range a.parts {
		p := &a.parts[i]
		p.waits = min(uint64(members[last].begin-p.begin), p.time)
		a.caused += p.waits
	}
	first, seen := w.first[comm]
	switch {
	case !seen:
		w.first[comm] = &a
		return
	case first != nil:
		w.startUp = append(w.startUp, *first)
		w.first[comm] = nil
	}
	w.count(&a)
}

func (w *waitCounter) count(a *arrival) {
	w.counted++
	for _, p := range a.parts {
		r := &w.ranks[p.rank]
		r.Collectives++
		r.Time += p.time
		r.Waited += p.waits
	}
	if a.caused == 0 {
		return
	}
	r := &w.ranks[a.parts[a.last].rank]
	r.Last++
	r.Caused += a.caused
	if a.caused > r.MaxCaused {
		r.MaxCaused, r.WorstAt = a.caused, a.parts[a.last].begin
	}
}

func (w *waitCounter) result() Waits {
	for _, comm := range slices.Sorted(maps.Keys(w.first)) {
		if only := w.first[comm]; only != nil { // the one collective of a communicator is not its start-up
			w.count(only)
		}
	}
	clear(w.first)
	out := Waits{Collectives: w.counted, LeftOut: w.leftOut, Hosts: w.hosts, Ranks: w.ranks, StartUp: w.startUpWaits()}
	for i := range w.ranks {
		out.Total += w.ranks[i].Waited
	}
	return out
}

func (w *waitCounter) startUpWaits() StartUp {
	s := StartUp{Collectives: uint64(len(w.startUp))}
	caused := make([]uint64, len(w.ranks))
	for _, a := range w.startUp {
		s.Waited += a.caused
		caused[a.parts[a.last].rank] += a.caused
	}
	for i, c := range caused {
		if c > s.Caused {
			s.Rank, s.Host, s.Caused = w.ranks[i].Rank, w.ranks[i].Host, c
		}
	}
	return s
}

// worldRank is a process, or a GPU of a process with communicator ranks on several.
type worldRank struct {
	name, host     string
	process, group otf2.LocationGroupRef
}

// worldRanks lists the ranks of the archive in world order, and which rank a communicator's location
// belongs to.
func worldRanks(defs *otf2.Definitions, comms map[otf2.CommRef]*communicator) ([]worldRank, map[otf2.LocationRef]int) {
	type unit struct{ process, group otf2.LocationGroupRef }
	units := make(map[otf2.LocationRef]unit)
	gpus := make(map[otf2.LocationGroupRef]map[otf2.LocationGroupRef]bool) // of processes
	for _, c := range comms {
		for _, l := range c.members {
			d := defs.Location(l)
			if d == nil {
				continue
			}
			u := unit{processOf(defs, d.Group), d.Group}
			units[l] = u
			if gpus[u.process] == nil {
				gpus[u.process] = make(map[otf2.LocationGroupRef]bool)
			}
			gpus[u.process][u.group] = true
		}
	}
	index := make(map[unit]int)
	var ranks []worldRank
	for _, u := range units {
		if _, ok := index[u]; ok {
			continue
		}
		index[u] = 0
		named := u.process
		if len(gpus[u.process]) > 1 {
			named = u.group
		}
		r := worldRank{process: u.process, group: u.group, host: hostOf(defs, u.process)}
		if g := defs.LocationGroup(named); g != nil {
			r.name = defs.String(g.Name)
		}
		ranks = append(ranks, r)
	}
	slices.SortFunc(ranks, func(a, b worldRank) int {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.group, b.group))
	})
	for i, r := range ranks {
		index[unit{r.process, r.group}] = i
	}
	of := make(map[otf2.LocationRef]int, len(units))
	for l, u := range units {
		of[l] = index[u]
	}
	return ranks, of
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
