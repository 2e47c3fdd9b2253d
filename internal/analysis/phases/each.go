// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Occurrence is one time that a phase was run through: from its begin to its end on one thread.
type Occurrence struct {
	Location   otf2.LocationRef
	Process    otf2.LocationGroupRef
	Path       string // its name behind those of the phases around it: "step 17 / forward"
	Kind       string // the same with "*" for the numbers at the names' ends: "step * / forward"
	Depth      int    // phases around it
	Begin, End otf2.Timestamp
	NCCL       uint64 // ns that the thread spent in NCCL's API
}

// Each passes the phases that have ended to f, those of all processes in the order of their ends. Marks without
// duration and phases that were open at the end of the data are left out, as in the times of Row. What f gets is valid
// until it returns. Files that cannot be read to their end are named in problems.
func Each(a *otf2.Archive, f func(*Occurrence)) (problems []string) {
	c := NewCounter(a.Defs)
	if !c.Wanted() {
		return nil
	}
	c.Ended(f)
	lanes := [][]otf2.LocationRef{slices.Concat(analysis.LanesOf(a.Defs)...)}
	slices.Sort(lanes[0])
	return analysis.ReadRegions(a, lanes, func(
		_ int, r *facts.Reader) {
		r.Enter, r.Leave, r.Begun = c.Enter, c.Leave, c.Begun
	})
}

// Ended has f told of each phase whose end is known, as Each tells of them; nil: nobody asks.
func (c *Counter) Ended(f func(*Occurrence)) { c.ended = f }

// tell passes on a phase whose end is known.
func (c *Counter) tell(r *facts.Region, f *phaseFrame, took uint64) {
	if c.ended == nil || r.Unfinished || took == 0 {
		return
	}
	o := Occurrence{
		Location: r.Location, Process: analysis.ProcessAt(c.defs, r.Location), Path: f.within.Path(),
		Kind: f.within.kind(), Begin: r.Begin, End: r.End, NCCL: f.nccl,
	}
	for at := f.within.around; at != nil; at = at.around {
		o.Depth++
	}
	c.ended(&o)
}

// kind is the path with the numbers at the names' ends taken off.
func (o *occasion) kind() string {
	name := o.name
	if n := phaseNameOf(name); n.numbered {
		name = n.stem + "*"
	}
	if o.around == nil {
		return name
	}
	return o.around.kind() + " / " + name
}
