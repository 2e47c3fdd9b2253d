// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// world is a run's processes in the order in which the archive numbers them.
type world struct {
	places []*place
}

// noData ends the names of places without data.
const noData = " (no data)"

// place is one PROCESS location group: a process with data, or one that is known only because a
// communicator has more ranks than data was found for.
type place struct {
	index int    // of its location group in the archive
	base  uint32 // added to the numbers of its locations there
	name  string
	part  *part // nil: no data
	rank  int   // in the world, −1 if unknown
	idle  int   // without data: number of communicator ranks kept on it, at most per communicator
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
func arrange(r *run) (w *world, kept map[*instance]map[int]slot) {
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
func (p *place) order() int {
	switch {
	case p.rank >= 0:
		return p.rank
	case p.part != nil:
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

// slot is where a communicator rank without data is kept: one of the empty locations of a place.
type slot struct {
	place *place
	n     int
}

// keepMissing makes places for the communicator ranks without data.
//
// Which process such a rank was is known only indirectly: ranks of a communicator usually follow the
// world's order, so the ranks missing between two present ones are the processes missing between
// those two, if their numbers agree. Where they do not, the rank gets a place of its own.
func (w *world) keepMissing(r *run, n *numbering) map[*instance]map[int]slot {
	kept := make(map[*instance]map[int]slot)
	byRank := make(map[int]*place)
	var absent []int // world ranks without data, ascending
	if n.size > 0 {
		present := make(map[int]bool, len(r.parts))
		for _, p := range r.parts {
			present[n.rank[p]] = true
		}
		if n.spanning != nil {
			absent = n.spanning.missing()
		} else {
			for rank := range n.size {
				if !present[rank] {
					absent = append(absent, rank)
				}
			}
		}
	}
	at := func(rank int) *place {
		p := byRank[rank]
		if p == nil {
			p = &place{rank: rank, name: fmt.Sprintf("Rank %d", rank) + noData}
			byRank[rank] = p
			w.places = append(w.places, p)
		}
		return p
	}
	for _, in := range r.instances {
		if in.nranks < 2 || len(in.missing()) == 0 {
			continue
		}
		slots := make(map[int]slot)
		kept[in] = slots
		for _, g := range in.gaps(n) {
			candidates := between(absent, g.after, g.before)
			for i, rank := range g.ranks {
				var s slot
				if k := len(candidates); g.ordered && k > 0 && len(g.ranks)%k == 0 {
					each := len(g.ranks) / k
					s = slot{at(candidates[i/each]), i % each}
				} else {
					s = slot{place: &place{rank: -1, name: fmt.Sprintf("%s rank %d", in.name, rank) + noData}}
					w.places = append(w.places, s.place)
				}
				s.place.idle = max(s.place.idle, s.n+1)
				slots[rank] = s
			}
		}
	}
	return kept
}

// gap is a stretch of missing ranks of a communicator.
type gap struct {
	ranks         []int // in the communicator
	after, before int   // world ranks of the neighbours with data
	ordered       bool  // the communicator follows the world's order
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
			gaps = append(gaps, gap{after: after, before: size, ordered: ordered})
			open = true
		}
		g := &gaps[len(gaps)-1]
		g.ranks = append(g.ranks, rank)
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
