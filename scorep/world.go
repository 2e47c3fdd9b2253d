// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// world is a run's processes in the order in which the archive numbers them.
type world struct {
	places  []*place
	unknown *place // where ranks stand of which nothing is known but their communicator; nil: there are none
}

// noData ends the names of places without data.
const noData = " (no data)"

// place is one PROCESS location group: a process with data, or all those together that are known only because a
// communicator has more ranks than data was found for, and between which there is none with data. They have one
// location: readers want a file for each, and a job of 16 384 ranks of which four are recorded has no use for so many.
type place struct {
	index int    // of its location group in the archive
	base  uint32 // added to the numbers of its locations there
	name  string
	part  *part // nil: no data
	rank  int   // in the world, −1 if unknown; of several the first
	// Without data:
	ranks []int // in the world, ascending; nil: nobody knows which
	per   int   // communicator ranks on each of them, at most per communicator
	idle  int   // entries in the list of all locations: for each rank as many
	// missing is the number of processes that it stands for. Of those that nobody knows there are as many at least as
	// one communicator lacks, but those of a world whose size is known are among its ranks, as far as it has so many.
	missing int
}

// numbering says how the processes of a run are ranked in its world.
type numbering struct {
	rank map[*part]int
	size int // of the world, 0 if there is no numbering
	// spanning is the communicator that gives the ranks, nil if the launcher did; device then ranks
	// each of its GPUs.
	spanning *instance
	device   map[device]int
}

// device is a GPU of a process: an index into its GPUs.
type device struct {
	part *part
	gpu  int
}

// numberWorld ranks the processes by the launcher, or else by the largest communicator that has a
// rank in every process. It may fail: then there are no ranks.
func numberWorld(r *run) numbering {
	n := numbering{rank: make(map[*part]int)}
	if numbered(r.parts) {
		taken := make(map[int]bool)
		for _, p := range r.parts {
			n.rank[p] = p.process.Launcher.Rank
			taken[p.process.Launcher.Rank] = true
		}
		if len(taken) == len(r.parts) {
			n.size = r.parts[0].process.Launcher.Size
			return n
		}
	}
	for _, in := range r.instances {
		ranks := make(map[*part]int)
		for m := range in.present() {
			if _, ok := ranks[m.part]; !ok {
				ranks[m.part] = m.shard().Rank
			}
		}
		if len(ranks) == len(r.parts) && in.nranks > n.size {
			n.rank, n.size, n.spanning = ranks, in.nranks, in
		}
	}
	if n.spanning == nil {
		return numbering{}
	}
	n.device = make(map[device]int)
	for m := range n.spanning.present() {
		n.device[device{m.part, m.shard().GPU}] = m.shard().Rank
	}
	return n
}

// of ranks a communicator member in the world.
func (n *numbering) of(m *member) int {
	if rank, ok := n.device[device{m.part, m.shard().GPU}]; ok {
		return rank
	}
	return n.rank[m.part]
}

// arrange puts the processes of a run in world order: by rank if they are numbered, else by host,
// process id and device. Processes without data get the place of their rank if that is known, else
// one behind the others. kept gives, for each missing communicator rank, where it is kept.
func arrange(r *run) (w *world, kept map[*instance][]slot) {
	n := numberWorld(r)
	w = new(world)
	for _, p := range r.parts {
		pl := &place{part: p, rank: -1, name: fmt.Sprintf("Process %s:%d", p.process.Host, p.process.PID)}
		if n.size > 0 {
			pl.rank = n.rank[p]
			pl.name = n.processName(p)
		}
		w.places = append(w.places, pl)
	}
	kept = w.keepMissing(r, &n)
	slices.SortStableFunc(w.places, func(a, b *place) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), compareParts(a.part, b.part))
	})
	named := make(map[string]int)
	for i, pl := range w.places {
		named[pl.name]++
		if k := named[pl.name]; k > 1 { // such as those of two containers on one machine
			pl.name = fmt.Sprintf("%s #%d", pl.name, k)
		}
		pl.index = i
		if pl.part != nil {
			pl.part.index, pl.part.name = i, pl.name
		}
	}
	return w, kept
}

// processName is "Rank r", or the ranks that the process holds in the spanning communicator.
func (n *numbering) processName(p *part) string {
	if n.spanning == nil {
		return fmt.Sprintf("Rank %d", n.rank[p])
	}
	var ranks []int
	for m := range n.spanning.present() {
		if m.part == p {
			ranks = append(ranks, m.shard().Rank)
		}
	}
	if len(ranks) == 1 {
		return fmt.Sprintf("Rank %d", ranks[0])
	}
	return "Ranks " + formatRanks(ranks)
}

// order puts unranked processes with data by host and pid, and those without data last.
func (pl *place) order() int {
	switch {
	case pl.rank >= 0:
		return pl.rank
	case pl.part != nil:
		return 0
	}
	return math.MaxInt
}

func compareParts(a, b *part) int {
	if a == nil || b == nil {
		return 0 // several without data and rank: in the order in which they were missed
	}
	return cmp.Or(
		cmp.Compare(a.process.Host, b.process.Host),
		cmp.Compare(a.process.BootID, b.process.BootID),
		cmp.Compare(a.process.PID, b.process.PID),
		cmp.Compare(a.process.PIDStart, b.process.PIDStart),
		cmp.Compare(firstDevice(a), firstDevice(b)),
		cmp.Compare(a.process.UUID, b.process.UUID))
}

func firstDevice(p *part) int {
	if len(p.process.GPUs) == 0 {
		return -1
	}
	return p.process.GPUs[0].Device
}

// slot is where a communicator rank without data is kept: an entry of a place's in the list of all locations.
type slot struct {
	place *place // nil: the rank has data
	n     int
}

// world is the rank in the world, −1 if it is not known.
func (s slot) world() int {
	if s.place.ranks == nil {
		return -1
	}
	return s.place.ranks[s.n/s.place.per]
}

// keepMissing makes places for the communicator ranks without data. What it returns is by rank.
//
// Which process such a rank was is known only indirectly: ranks of a communicator usually follow the
// world's order, so the ranks missing between two present ones are the processes missing between
// those two, if their numbers agree. Where they do not, nobody knows.
func (w *world) keepMissing(r *run, n *numbering) map[*instance][]slot {
	present, absent := n.split(r)
	type found struct{ world, n int } // world −1: nobody knows
	all := make(map[*instance][]found)
	per := make(map[int]int) // by rank in the world
	unknown := 0
	for _, in := range r.instances {
		gaps := in.gaps(n)
		if in.nranks < 2 || len(gaps) == 0 {
			continue
		}
		list, lost := make([]found, in.nranks), 0
		for _, g := range gaps {
			candidates := between(absent, g.after, g.before)
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
		w.addUnknown(unknown)
		if n.size > 0 {
			w.unknown.missing = min(unknown, len(absent)-len(at)) + max(0, unknown-len(absent))
		}
	}
	kept := make(map[*instance][]slot, len(all))
	for in, list := range all {
		slots := make([]slot, in.nranks)
		for rank, f := range list {
			switch {
			case in.members[rank] != nil:
			case f.world < 0:
				slots[rank] = slot{w.unknown, f.n}
			default:
				s := at[f.world]
				slots[rank] = slot{s.place, s.n*s.place.per + f.n}
			}
		}
		kept[in] = slots
	}
	return kept
}

// split lists the ranks of the world with data and those without, ascending.
func (n *numbering) split(r *run) (present, absent []int) {
	if n.size == 0 {
		return nil, nil
	}
	has := make(map[int]bool, len(r.parts))
	for _, p := range r.parts {
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

// addMissing makes the places of ranks of the world without data: one for those that no rank with data lies between. per
// is how many communicator ranks each holds. It tells where each rank is kept.
func (w *world) addMissing(present []int, per map[int]int) map[int]slot {
	at := make(map[int]slot, len(per))
	var last *place
	behind := -1 // how many ranks with data are before the last place
	for _, rank := range slices.Sorted(maps.Keys(per)) {
		if i, _ := slices.BinarySearch(present, rank); last == nil || i != behind {
			last, behind = &place{rank: rank}, i
			w.places = append(w.places, last)
		}
		at[rank] = slot{last, len(last.ranks)}
		last.ranks = append(last.ranks, rank)
		last.per = max(last.per, per[rank])
	}
	for _, p := range w.places {
		switch len(p.ranks) {
		case 0:
			continue
		case 1:
			p.name = fmt.Sprintf("Rank %d", p.rank) + noData
		default:
			p.name = "Ranks " + formatRanks(p.ranks) + noData
		}
		p.idle, p.missing = p.per*len(p.ranks), len(p.ranks)
	}
	return at
}

// addUnknown makes the place of those that nobody knows, with n entries.
func (w *world) addUnknown(n int) *place {
	w.unknown = &place{rank: -1, name: "Unknown ranks" + noData, idle: n, missing: n}
	w.places = append(w.places, w.unknown)
	return w.unknown
}

// gap is a stretch of missing ranks of a communicator.
type gap struct {
	first, ranks  int  // in the communicator: the first one, and how many
	after, before int  // world ranks of the neighbours with data
	ordered       bool // the communicator follows the world's order
}

func (in *instance) gaps(n *numbering) []gap {
	size := n.size
	ordered := size > 0
	last := -1
	if ordered {
		for m := range in.present() {
			w := n.of(m)
			ordered = ordered && w >= last
			last = w
		}
	}
	var gaps []gap
	after, open := -1, false
	for rank, m := range in.members {
		if m != nil {
			if size > 0 {
				after = n.of(m)
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

// between selects the values of an ascending list that lie strictly between two bounds.
func between(list []int, after, before int) []int {
	i, _ := slices.BinarySearch(list, after+1)
	j, _ := slices.BinarySearch(list, before)
	return list[i:max(i, j)]
}

// formatRanks writes an ascending list with its runs as ranges: "0-3,7".
func formatRanks(ranks []int) string {
	var out []byte
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if i > 0 {
			out = append(out, ',')
		}
		if j > i {
			out = fmt.Appendf(out, "%d-%d", ranks[i], ranks[j])
		} else {
			out = fmt.Appendf(out, "%d", ranks[i])
		}
		i = j + 1
	}
	return string(out)
}
