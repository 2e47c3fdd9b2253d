// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// job is the input of a view: the archive's ranks, communicators, rows and phases.
type job struct {
	archive   *otf2.Archive
	locations []*location
	comms     []*comm
	rows      []*row
	phases    phases
	stretches map[stretchKey][]property.Stretch
	count     *Result
}

type stretchKey struct {
	comm     otf2.CommRef
	function string
}

// newJob finds the ranks of the view and the communicators among them.
func newJob(a *otf2.Archive, count *Result) *job {
	j := &job{archive: a, count: count, stretches: make(map[stretchKey][]property.Stretch)}
	stretches, unnamed := property.Stretches(a.Anchor)
	for _, s := range stretches {
		key := stretchKey{s.Comm, s.Function}
		j.stretches[key] = append(j.stretches[key], s)
	}
	if unnamed > 0 {
		count.problem(
			"the archive does not name %d of the places in which the ranks' recordings differ: their operations "+
				"cannot all be left out", unnamed)
	}

	ranks, of := placement.WorldRanks(a.Defs)
	comms := placement.Communicators(a.Defs)
	// In the view, a rank has one member of a communicator. Where GPUs are unknown, several members of a process seem
	// to be one rank.
	type place struct{ rank, nth int }
	at := make(map[place]*location)
	places := make(map[otf2.LocationRef]place)
	for _, c := range comms {
		seen := make(map[int]int)
		for _, l := range c.Members {
			r, ok := of[l]
			if !ok {
				continue
			}
			p := keyed.EntryMade(places, l, func() place { return place{r, seen[r]} })
			seen[r]++
			at[p] = nil
		}
	}
	order := slices.SortedFunc(maps.Keys(at), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.nth, b.nth))
	})
	for i, p := range order {
		rank := ranks[p.rank]
		l := &location{id: i, firstID: i, name: cmp.Or(rank.Together, rank.Name), host: rank.Host}
		if p.nth > 0 {
			l.name = fmt.Sprintf("%s #%d", l.name, p.nth+1)
		}
		j.locations = append(j.locations, l)
		at[p] = l
	}
	count.Ranks = len(j.locations)
	for _, c := range comms {
		j.addComm(&c, func(l otf2.LocationRef) *location {
			p, ok := places[l]
			if !ok {
				return nil
			}
			return at[p]
		})
	}
	return j
}

// addComm makes the rows of a communicator's members with data. Fewer than two rows show no communication.
func (j *job) addComm(def *placement.Communicator, locate func(otf2.LocationRef) *location) {
	c := &comm{ref: def.Ref, name: def.Name, rows: make([]*row, len(def.Members)),
		rank: make([]int32, len(def.Members)), view: otf2.UndefinedComm}
	taken := make(map[*location]bool)
	for rank, l := range def.Members {
		c.rank[rank] = -1
		d, at := j.archive.Defs.Location(l), locate(l)
		if d == nil || d.Events == 0 || at == nil || taken[at] {
			j.count.MembersWithoutData++
			continue
		}
		taken[at] = true
		c.rank[rank] = int32(len(c.present))
		r := &row{comm: c, rank: rank, source: l, location: at}
		c.rows[rank] = r
		c.present = append(c.present, r)
	}
	j.comms = append(j.comms, c)
	for _, r := range c.present {
		j.rows = append(j.rows, r)
		r.location.rows = append(r.location.rows, r)
	}
}

// differs reports whether, according to the archive, the members recorded the operation differently.
func (j *job) differs(c *comm, function string, ordinal uint64) bool {
	return slices.ContainsFunc(j.stretches[stretchKey{c.ref, function}], func(s property.Stretch) bool {
		return s.First <= ordinal && ordinal <= s.Last
	})
}
