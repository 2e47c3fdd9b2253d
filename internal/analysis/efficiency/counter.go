// SPDX-License-Identifier: Apache-2.0

package efficiency

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lookup"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Places say which rank of the world the rows are of: those of communicators' members, and those of kernels by the GPU
// that they are on.
type Places struct {
	ranks    map[otf2.LocationRef]int
	members  map[otf2.LocationRef]bool
	kernels  *facts.Kernels
	unstated bool // the archive does not state sources of times: all are taken as they are
}

// NewPlaces makes them from the ranks of the world that members' rows belong to.
func NewPlaces(defs *otf2.Definitions, ranks map[otf2.LocationRef]int) *Places {
	p := &Places{ranks: make(map[otf2.LocationRef]int), members: make(map[otf2.LocationRef]bool)}
	p.unstated = !attribute.Find(defs).Has(regions.AttrTimingSource)
	p.kernels = facts.KernelsOf(defs)
	gpus := make(map[otf2.LocationGroupRef]int)
	groups := make(map[otf2.LocationRef]otf2.LocationGroupRef, len(defs.Locations))
	for _, l := range defs.Locations {
		groups[l.Self] = l.Group
	}
	for l, rank := range ranks {
		p.ranks[l], p.members[l] = rank, true
		if g := defs.LocationGroup(groups[l]); g != nil && g.Type == otf2.LocationGroupTypeAccelerator {
			gpus[groups[l]] = rank
		}
	}
	for l, group := range groups {
		if rank, known := gpus[group]; known && !p.members[l] && p.kernels.Known() {
			p.ranks[l] = rank
		}
	}
	return p
}

// Counter adds up the ranks' times from the regions of some of them, of whole processes and in the order of time.
type Counter struct {
	places *Places
	ranks  map[int]*rank
	rows   lookup.ByLocation[*row]
}

// row is a location.
type row struct {
	rank   *rank // nil: it is of none, or no row that counts
	member bool  // of a communicator
	open   []kind
}

// kind is what a region means to its rank.
type kind uint8

const (
	nothing kind = iota
	startUp
	operation
	untimed
	computation
	numKinds
)

// rank is one, with what is open on it.
type rank struct {
	begun   bool // its first operation has ended
	at, end otf2.Timestamp
	open    [numKinds]int
	times
	kept times // at the end of its last operation
}

// times are ns.
type times struct {
	useful, inOperations, startUp uint64
	computing, active             uint64
	operations, untimed, kernels  uint64
}

// NewCounter makes one.
func NewCounter(p *Places) *Counter {
	return &Counter{places: p, ranks: make(map[int]*rank)}
}

// Enter takes a region that begins.
func (c *Counter) Enter(r *facts.Region) {
	w := c.row(r)
	if w.rank == nil {
		return
	}
	k := c.kindOf(w, r)
	w.open = append(w.open, k)
	if k == nothing {
		return
	}
	w.rank.advance(r.Begin)
	w.rank.open[k]++
}

// Leave takes a region that ends.
func (c *Counter) Leave(r *facts.Region) {
	w := c.row(r)
	if w.rank == nil || len(w.open) == 0 {
		return
	}
	k := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	if k == nothing {
		return
	}
	t := w.rank
	t.advance(r.End)
	t.open[k]--
	switch k {
	case computation:
		t.kernels++
		return
	case operation:
		t.operations++
	case untimed:
		t.untimed++
	}
	if !t.begun {
		t.begun, t.at, t.times.useful = true, max(t.at, r.End), 0
		t.computing, t.active = 0, 0
	}
	t.end, t.kept = max(t.end, r.End), t.times
}

func (c *Counter) row(r *facts.Region) *row {
	w := c.rows.Get(r.Location)
	if w != nil {
		return w
	}
	w = &row{member: c.places.members[r.Location]}
	c.rows.Set(r.Location, w)
	if rank, known := c.places.ranks[r.Location]; known {
		w.rank = c.rank(rank)
	}
	return w
}

func (c *Counter) rank(at int) *rank {
	return keyed.Entry(c.ranks, at)
}

// kindOf tells what a region is. NCCL's own kernels are in its operations.
func (c *Counter) kindOf(w *row, r *facts.Region) kind {
	switch {
	case r.Number > 0 && w.member:
		switch {
		case !c.places.unstated && !r.Source.HasPlace():
			return untimed
		case r.Number == 1: // of the member on this communicator
			return startUp
		}
		return operation
	case c.places.kernels.Computes(r):
		return computation
	}
	return nothing
}

// advance adds up the time since the last change.
func (t *rank) advance(now otf2.Timestamp) {
	if now <= t.at {
		return
	}
	took := uint64(now - t.at)
	t.at = now
	switch {
	case !t.begun:
		return
	case t.open[startUp] > 0:
		t.startUp += took
		return
	case t.open[operation] > 0:
		t.inOperations += took
	default:
		t.useful += took
	}
	if t.open[computation] > 0 {
		t.computing += took
	}
	if t.open[computation]+t.open[operation] > 0 {
		t.active += took
	}
}

// Absorb takes over the ranks of another counter.
func (c *Counter) Absorb(o *Counter) {
	for at, r := range o.ranks {
		c.ranks[at] = r
	}
}
