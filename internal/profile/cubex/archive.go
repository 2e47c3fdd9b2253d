// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/naming"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// archiveNames resolves the ids of an archive.
type archiveNames struct {
	facts.Names
	defs   *otf2.Definitions
	rows   *naming.Rows
	groups map[otf2.RegionRef]string
	ranks  map[otf2.LocationRef]profile.Location // of communicators
}

func newArchiveNames(defs *otf2.Definitions) *archiveNames {
	comms := membership.Communicators(defs)
	n := &archiveNames{
		Names: facts.ArchiveNames(defs, comms), defs: defs, rows: naming.RowsOf(defs, comms),
		groups: make(map[otf2.RegionRef]string), ranks: make(map[otf2.LocationRef]profile.Location),
	}
	for _, g := range defs.Groups {
		if g.Type != otf2.GroupTypeRegions {
			continue
		}
		for _, m := range g.Members {
			if _, known := n.groups[otf2.RegionRef(m)]; !known {
				n.groups[otf2.RegionRef(m)] = defs.String(g.Name)
			}
		}
	}
	for _, d := range defs.Comms { // of several that a location is in, the last counts
		c := comms[d.Self]
		if c == nil {
			continue
		}
		for rank, l := range c.Members {
			n.ranks[l] = profile.Location{Kind: description.KindRank, Ranks: len(c.Members), Rank: rank}
		}
	}
	return n
}

func (n *archiveNames) RegionOf(ref otf2.RegionRef) profile.Region {
	d := n.defs.Region(ref)
	if d == nil {
		return profile.Region{Name: n.defs.RegionName(ref)}
	}
	return profile.Region{Name: n.defs.String(d.Name), Group: n.groups[ref], Role: d.Role, Paradigm: d.Paradigm}
}

func (n *archiveNames) LocationOf(ref otf2.LocationRef) profile.Location {
	l := profile.Location{Kind: n.rows.Kind(ref)}
	if r, ok := n.ranks[ref]; ok && l.Kind == description.KindRank {
		return r
	} else if l.Kind == description.KindRank {
		l.Ranks = 1
	}
	return l
}

// FromArchive sums up an archive in one pass over its events. Files that cannot be read to their end are named in the
// report's problems; what was read of them counts.
func FromArchive(a *otf2.Archive) (*Profile, *operations.Report, error) {
	names := newArchiveNames(a.Defs)
	attributes := attribute.Find(a.Defs)
	var lanes []*profile.Aggregator
	waited := profile.NewAggregator(names, attributes)
	report, err := operations.Observe(a, &operations.Observer{
		Lane: func() func(*otf2.Event) {
			g := profile.NewAggregator(names, attributes)
			lanes = append(lanes, g)
			return g.Event
		},
		Waited: func(w *waits.Wait) {
			kind, ok := lateness.WaitKindNamed(w.Kind)
			if !ok || names.LocationOf(w.Place.Location).Kind != description.KindRank {
				return
			}
			if w.StartUp {
				kind = profile.WaitStartUp
			}
			at := &w.Place
			waited.Wait(&profile.Place{
				Location: at.Location, Region: at.Region, Grouped: at.Grouped, Source: facts.SourceOf(at.Source),
				Function: at.Function,
				Algo:     at.Algo, Proto: at.Proto, Variant: at.Variant, Size: at.Size,
			}, kind, w.Waited)
		},
	})
	if err != nil {
		return nil, nil, err
	}
	b := newBuilder(a.Defs)
	for _, g := range append(lanes, waited) {
		b.add(g.Aggregate(), func(id uint64) (otf2.LocationRef, bool) { return otf2.LocationRef(id), true })
	}
	p := b.build()
	p.Creator = a.Anchor.Creator
	p.Keep(a.Anchor.Properties...)
	for _, r := range b.rows {
		p.WaitsKnown = p.WaitsKnown || r.Kind == description.KindRank
	}
	return p, report, nil
}
