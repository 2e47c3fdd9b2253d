// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Profile is a job's profile: call paths in the order of the file, with values by location. Its size is at most
// proportional to ranks × call paths.
type Profile struct {
	Creator    string
	WaitsKnown bool      // wait states were looked for
	Folded     uint64    // names without a node of their own, because there were too many
	Estimate   *Estimate // nil: wait states are not estimated

	properties []cube.Attribute
	defs       *otf2.Definitions
	system     *system
	nodes      []*node // preorder
	stats      []locationStats
	first      uint64 // time of the first event, and of the last
	last       uint64
	hasEvents  bool
	hip        bool // AMD's GPUs
}

// node is a call path.
type node struct {
	profile.Node
	parent   int          // index into Profile.nodes, profile.None for roots
	tree     profile.Kind // of its root
	children map[profile.Node]*node
	cells    []located // by location
	total    []seconds // time with what is below, by location
}

// located is the values at one location.
type located struct {
	location cube.LocationID
	*profile.Cell
}

type seconds struct {
	location cube.LocationID
	ns       uint64
}

// locationStats are the operations of one function at one location.
type locationStats struct {
	location otf2.LocationRef
	*profile.Stats
}

// builder collects aggregates.
type builder struct {
	defs *otf2.Definitions
	rows map[otf2.LocationRef]*rowSum
	tops map[profile.Node]*node
	all  *Profile
}

// rowSum describes a location; its values are at the nodes, under its id.
type rowSum struct {
	profile.Row
	id int // index in the order of appearance
}

func newBuilder(defs *otf2.Definitions) *builder {
	return &builder{defs: defs, rows: make(map[otf2.LocationRef]*rowSum), tops: make(map[profile.Node]*node),
		all: &Profile{defs: defs}}
}

// add adds an aggregate; location maps its locations to ids in the definitions.
func (b *builder) add(a *profile.Aggregate, location func(uint64) (otf2.LocationRef, bool)) {
	nodes := make([]*node, len(a.Nodes))
	for i, n := range a.Nodes {
		into := b.tops
		if n.Parent != profile.None {
			into = nodes[n.Parent].children
		}
		key := n
		key.Parent = profile.None
		nodes[i] = keyed.EntryMade(into, key,
			func() *node { return &node{Node: key, children: make(map[profile.Node]*node)} })
	}
	for i := range a.Rows {
		in := &a.Rows[i]
		ref, ok := location(in.Location)
		if !ok {
			continue
		}
		r := b.rows[ref]
		if r == nil {
			r = &rowSum{id: len(b.rows)}
			b.rows[ref] = r
			r.Row = *in
			r.Cells, r.Stats = nil, nil
		} else if in.First != 0 {
			r.First, r.Last, r.Ended = in.First, max(in.Last, r.Last), in.Ended
		}
		for j := range in.Cells {
			c := &in.Cells[j]
			n := nodes[c.Node]
			n.cells = append(n.cells, located{cube.LocationID(r.id), &c.Cell})
		}
		for j := range in.Stats {
			b.all.stats = append(b.all.stats, locationStats{ref, &in.Stats[j]})
		}
	}
	b.all.Folded += a.Folded
}

// build sorts everything and returns the profile.
func (b *builder) build() *Profile {
	p := b.all
	p.system = newSystem(b.defs, b.rows)
	p.hip = slices.ContainsFunc(b.defs.Regions, func(r otf2.Region) bool { return r.Paradigm == otf2.ParadigmHIP })
	ids := make([]cube.LocationID, len(b.rows))
	for ref, r := range b.rows {
		ids[r.id] = p.system.ids[ref]
		if r.First == 0 {
			continue
		}
		if !p.hasEvents || r.First < p.first {
			p.first, p.hasEvents = r.First, true
		}
		p.last = max(p.last, r.Last)
	}
	for _, k := range profile.Roots() {
		key := profile.Node{Parent: profile.None, Kind: k}
		if n := b.tops[key]; n != nil {
			p.placeNode(n, profile.None, ids)
		} else if k == profile.Host { // every profile has a program
			p.placeNode(&node{Node: key}, profile.None, ids)
		}
	}
	p.sumUp()
	return p
}

// placeNode appends a node and those below it, with their values in the order of locations. Values of locations with
// the same id are added up.
func (p *Profile) placeNode(n *node, parent int, ids []cube.LocationID) {
	n.parent, n.tree = parent, n.Kind
	if parent != profile.None {
		n.tree = p.nodes[parent].tree
	}
	p.nodes = append(p.nodes, n)
	at := len(p.nodes) - 1
	for i := range n.cells {
		n.cells[i].location = ids[n.cells[i].location]
	}
	slices.SortStableFunc(n.cells, func(x, y located) int { return cmp.Compare(x.location, y.location) })
	kept := n.cells[:0]
	for _, c := range n.cells {
		if k := len(kept); k > 0 && kept[k-1].location == c.location {
			sum := *kept[k-1].Cell
			sum.Add(c.Cell)
			kept[k-1].Cell = &sum
			continue
		}
		kept = append(kept, c)
	}
	n.cells = kept
	below := slices.SortedFunc(maps.Values(n.children), func(x, y *node) int {
		return cmp.Or(cmp.Compare(profile.SizeOrder(x.Node), profile.SizeOrder(y.Node)), cmp.Compare(x.Name, y.Name),
			cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Role, y.Role), cmp.Compare(x.Paradigm, y.Paradigm))
	})
	n.children = nil
	for _, c := range below {
		p.placeNode(c, at, ids)
	}
}

// sumUp adds up times along the call tree.
func (p *Profile) sumUp() {
	for i := len(p.nodes) - 1; i >= 0; i-- {
		n := p.nodes[i]
		own := make([]seconds, 0, len(n.cells))
		for _, c := range n.cells {
			if c.Time > 0 {
				own = append(own, seconds{c.location, c.Time})
			}
		}
		n.total = mergeSeconds(own, n.total)
		if n.parent != profile.None {
			above := p.nodes[n.parent]
			above.total = mergeSeconds(above.total, n.total)
		}
	}
}

// mergeSeconds adds up two lists by location.
func mergeSeconds(a, b []seconds) []seconds {
	switch {
	case len(a) == 0:
		return slices.Clone(b)
	case len(b) == 0:
		return a
	}
	out := make([]seconds, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].location < b[0].location:
			out, a = append(out, a[0]), a[1:]
		case a[0].location > b[0].location:
			out, b = append(out, b[0]), b[1:]
		default:
			out = append(out, seconds{a[0].location, a[0].ns + b[0].ns})
			a, b = a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// Counts is the size of a profile.
type Counts struct {
	Processes, Locations, CallPaths int
	Visits                          uint64
}

// Count returns the size of the profile.
func (p *Profile) Count() Counts {
	c := Counts{Processes: p.system.processes, Locations: len(p.system.locations), CallPaths: len(p.nodes)}
	for _, n := range p.nodes {
		for _, at := range n.cells {
			c.Visits += at.Visits
		}
	}
	return c
}
