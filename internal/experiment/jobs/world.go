// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// World is a run's processes in the order in which the archive numbers them.
type World struct {
	Places  []*Place
	Unknown *Place // for ranks known only by their communicator; nil: none
}

// Place is one PROCESS location group: a process with data, or a run of processes without data, known only because a
// communicator has more ranks than were recorded. A run has one location, because readers open a file for each
// location, and a job of 16 384 ranks may have only four recorded ones.
type Place struct {
	Index   int    // of its location group in the archive
	Base    uint32 // added to the numbers of its locations there
	Name    string
	Process *Process // nil: no data
	rank    int      // in the world, −1 if unknown; of several the first
	// Without data:
	Ranks []int // in the world, ascending; nil: unknown
	per   int   // communicator ranks on each of them, at most per communicator
	Idle  int   // entries in the list of all locations: for each rank as many
	// Missing is the number of processes that it stands for. Unknown processes are at least as many as one communicator
	// lacks; ranks of a world of known size are counted among that world's.
	Missing int
}

// Numbering describes how the processes of a run are ranked in its world.
type Numbering struct {
	rank map[*Process]int
	size int // of the world, 0 if there is no numbering
	// spanning is the communicator that gives the ranks, nil if the launcher did; device then ranks
	// each of its GPUs.
	spanning *Communicator
	device   map[Device]int
}

// Device is a GPU of a process: an index into its GPUs.
type Device struct {
	Process *Process
	GPU     int
}

// NumberWorld ranks the processes by the launcher, or else by the largest communicator that has a
// rank in every process. It may fail: then there are no ranks.
func NumberWorld(r *Run) Numbering {
	n := Numbering{rank: make(map[*Process]int)}
	if numbered(r.Processes) {
		taken := make(map[int]bool)
		for _, p := range r.Processes {
			n.rank[p] = p.Shard.Launcher.Rank
			taken[p.Shard.Launcher.Rank] = true
		}
		if len(taken) == len(r.Processes) {
			n.size = r.Processes[0].Shard.Launcher.Size
			return n
		}
	}
	for _, in := range r.Communicators {
		ranks := make(map[*Process]int)
		for m := range in.Present() {
			if _, ok := ranks[m.Process]; !ok {
				ranks[m.Process] = m.Comm().Rank
			}
		}
		if len(ranks) == len(r.Processes) && in.Nranks > n.size {
			n.rank, n.size, n.spanning = ranks, in.Nranks, in
		}
	}
	if n.spanning == nil {
		return Numbering{}
	}
	n.device = make(map[Device]int)
	for m := range n.spanning.Present() {
		n.device[Device{m.Process, m.Comm().GPU}] = m.Comm().Rank
	}
	return n
}

// rankOf returns the rank of a member in the world.
func (n *Numbering) rankOf(m *Rank) int {
	if rank, ok := n.device[Device{m.Process, m.Comm().GPU}]; ok {
		return rank
	}
	return n.rank[m.Process]
}

// Arrange puts the processes of a run in world order: by rank if they are numbered, else by host, process id and
// device. Processes without data get the place of their rank if that is known, else one after the others. kept returns,
// for each missing communicator rank, its slot.
func Arrange(r *Run) (w *World, kept map[*Communicator][]Slot) {
	n := NumberWorld(r)
	w = new(World)
	for _, p := range r.Processes {
		pl := &Place{Process: p, rank: -1, Name: fmt.Sprintf("Process %s:%d", p.Shard.Host, p.Shard.PID)}
		if n.size > 0 {
			pl.rank = n.rank[p]
			pl.Name = n.processName(p)
		}
		w.Places = append(w.Places, pl)
	}
	kept = w.keepMissing(r, &n)
	slices.SortStableFunc(w.Places, func(a, b *Place) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), compareParts(a.Process, b.Process))
	})
	named := make(map[string]int)
	for i, pl := range w.Places {
		named[pl.Name]++
		if k := named[pl.Name]; k > 1 { // such as those of two containers on one machine
			pl.Name = fmt.Sprintf("%s #%d", pl.Name, k)
		}
		pl.Index = i
		if pl.Process != nil {
			pl.Process.Index, pl.Process.Name = i, pl.Name
		}
	}
	for _, in := range r.Communicators {
		in.World = in.inWorld(&n, kept[in])
	}
	return w, kept
}

// inWorld returns the ranks in the world, by rank of the communicator.
func (in *Communicator) inWorld(n *Numbering, kept []Slot) []int {
	world := make([]int, len(in.Members))
	for rank, m := range in.Members {
		world[rank] = -1
		switch {
		case n.size == 0:
		case m != nil:
			world[rank] = n.rankOf(m)
		case rank < len(kept) && kept[rank].Place != nil:
			world[rank] = kept[rank].world()
		}
	}
	return world
}

// processName returns "Rank r", or the ranks that the process holds in the spanning communicator.
func (n *Numbering) processName(p *Process) string {
	if n.spanning == nil {
		return units.RankName(n.rank[p])
	}
	var ranks []int
	for m := range n.spanning.Present() {
		if m.Process == p {
			ranks = append(ranks, m.Comm().Rank)
		}
	}
	if len(ranks) == 1 {
		return units.RankName(ranks[0])
	}
	return "Ranks " + units.Ranks(ranks)
}

// order sorts unranked processes with data by host and pid, and those without data last.
func (pl *Place) order() int {
	switch {
	case pl.rank >= 0:
		return pl.rank
	case pl.Process != nil:
		return 0
	}
	return math.MaxInt
}

func compareParts(a, b *Process) int {
	if a == nil || b == nil {
		return 0 // several without data and rank: in the order in which they were missed
	}
	return cmp.Or(
		cmp.Compare(a.Shard.Host, b.Shard.Host),
		cmp.Compare(a.Shard.BootID, b.Shard.BootID),
		cmp.Compare(a.Shard.PID, b.Shard.PID),
		cmp.Compare(a.Shard.PIDStart, b.Shard.PIDStart),
		cmp.Compare(firstDevice(a), firstDevice(b)),
		cmp.Compare(a.Shard.UUID, b.Shard.UUID))
}

func firstDevice(p *Process) int {
	if len(p.Shard.GPUs) == 0 {
		return -1
	}
	return p.Shard.GPUs[0].Device
}

// Slot is the place of a communicator rank without data: an entry of the place in the list of all locations.
type Slot struct {
	Place *Place // nil: the rank has data
	N     int
}

// world returns the rank in the world, −1 if it is not known.
func (s Slot) world() int {
	if s.Place.Ranks == nil {
		return -1
	}
	return s.Place.Ranks[s.N/s.Place.per]
}

// keepMissing makes places for the communicator ranks without data. What it returns is by rank.
//
// Which process such a rank was is known only indirectly: ranks of a communicator usually follow the world's order, so
// the ranks missing between two present ones are the processes missing between those two, if their numbers agree.
// Otherwise it is unknown.
func (w *World) keepMissing(r *Run, n *Numbering) map[*Communicator][]Slot {
	present, absent := n.split(r)
	type found struct{ world, n int } // world −1: unknown
	all := make(map[*Communicator][]found)
	per := make(map[int]int) // by rank in the world
	unknown := 0
	for _, in := range r.Communicators {
		gaps := in.gaps(n)
		if in.Nranks < 2 || len(gaps) == 0 {
			continue
		}
		list, lost := make([]found, in.Nranks), 0
		for _, g := range gaps {
			candidates := valuesBetween(absent, g.after, g.before)
			each := 0
			if k := len(candidates); g.ordered && k > 0 && g.ranks%k == 0 {
				each = g.ranks / k
			}
			for i := range g.ranks {
				f := found{-1, lost}
				if each > 0 {
					f = found{candidates[i/each], i % each}
					per[f.world] = max(per[f.world], f.n+1)
				} else {
					lost++
				}
				list[g.first+i] = f
			}
		}
		all[in] = list
		unknown = max(unknown, lost)
	}
	at := w.addMissing(present, per)
	if unknown > 0 {
		w.AddUnknown(unknown)
		if n.size > 0 {
			w.Unknown.Missing = min(unknown, len(absent)-len(at)) + max(0, unknown-len(absent))
		}
	}
	kept := make(map[*Communicator][]Slot, len(all))
	for in, list := range all {
		slots := make([]Slot, in.Nranks)
		for rank, f := range list {
			switch {
			case in.Members[rank] != nil:
			case f.world < 0:
				slots[rank] = Slot{w.Unknown, f.n}
			default:
				s := at[f.world]
				slots[rank] = Slot{s.Place, s.N*s.Place.per + f.n}
			}
		}
		kept[in] = slots
	}
	return kept
}

// split lists the ranks of the world with data and those without, ascending.
func (n *Numbering) split(r *Run) (present, absent []int) {
	if n.size == 0 {
		return nil, nil
	}
	has := make(map[int]bool, len(r.Processes))
	for _, p := range r.Processes {
		has[n.rank[p]] = true
	}
	for _, rank := range n.device {
		has[rank] = true
	}
	for rank := range n.size {
		if has[rank] {
			present = append(present, rank)
		} else {
			absent = append(absent, rank)
		}
	}
	return present, absent
}

// addMissing makes the places of ranks of the world without data: one for those that no rank with data lies between.
// per is how many communicator ranks each holds. It returns the slot of each rank.
func (w *World) addMissing(present []int, per map[int]int) map[int]Slot {
	at := make(map[int]Slot, len(per))
	var last *Place
	behind := -1 // how many ranks with data are before the last place
	for _, rank := range slices.Sorted(maps.Keys(per)) {
		if i, _ := slices.BinarySearch(present, rank); last == nil || i != behind {
			last, behind = &Place{rank: rank}, i
			w.Places = append(w.Places, last)
		}
		at[rank] = Slot{last, len(last.Ranks)}
		last.Ranks = append(last.Ranks, rank)
		last.per = max(last.per, per[rank])
	}
	for _, p := range w.Places {
		switch len(p.Ranks) {
		case 0:
			continue
		case 1:
			p.Name = units.RankName(p.rank) + " " + units.NoData
		default:
			p.Name = "Ranks " + units.Ranks(p.Ranks) + " " + units.NoData
		}
		p.Idle, p.Missing = p.per*len(p.Ranks), len(p.Ranks)
	}
	return at
}

// AddUnknown makes the place of unknown processes, with n entries.
func (w *World) AddUnknown(n int) *Place {
	w.Unknown = &Place{rank: -1, Name: "Unknown ranks " + units.NoData, Idle: n, Missing: n}
	w.Places = append(w.Places, w.Unknown)
	return w.Unknown
}

// gap is a stretch of missing ranks of a communicator.
type gap struct {
	first, ranks  int  // in the communicator: the first one, and how many
	after, before int  // world ranks of the neighbors with data
	ordered       bool // the communicator follows the world's order
}

func (in *Communicator) gaps(n *Numbering) []gap {
	size := n.size
	ordered := size > 0
	last := -1
	if ordered {
		for m := range in.Present() {
			w := n.rankOf(m)
			ordered = ordered && w >= last
			last = w
		}
	}
	var gaps []gap
	after, open := -1, false
	for rank, m := range in.Members {
		if m != nil {
			if size > 0 {
				after = n.rankOf(m)
			}
			if open {
				gaps[len(gaps)-1].before = after
			}
			open = false
			continue
		}
		if !open {
			gaps = append(gaps, gap{first: rank, after: after, before: size, ordered: ordered})
			open = true
		}
		gaps[len(gaps)-1].ranks++
	}
	return gaps
}

// valuesBetween selects the values of an ascending list that lie strictly between two bounds.
func valuesBetween(list []int, after, before int) []int {
	i, _ := slices.BinarySearch(list, after+1)
	j, _ := slices.BinarySearch(list, before)
	return list[i:max(i, j)]
}
