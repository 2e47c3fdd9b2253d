// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/placement"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Occurrence is one run through a phase, from its begin to its end on one thread.
type Occurrence struct {
	Location   otf2.LocationRef
	Process    otf2.LocationGroupRef
	Path       string // names of the phases around it and its own: "step 17 / forward"
	Kind       string // Path with "*" for numbers at the ends of names: "step * / forward"
	Depth      int    // number of phases around it
	Begin, End otf2.Timestamp
	NCCL       uint64 // ns that the thread spent in NCCL's API
}

// Each passes the phases that have ended to f, for each process in the order of their ends. It leaves out marks
// without duration and phases that were open at the end of the data, like the times of Row. An occurrence is valid
// until f returns. problems names files that cannot be read to their end.
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

// Ended sets the function that receives each phase whose end is known, as from Each; nil: none.
func (c *Counter) Ended(f func(*Occurrence)) { c.ended = f }

// tell passes on a phase whose end is known.
func (c *Counter) tell(r *facts.Region, f *phaseFrame, took uint64) {
	if c.ended == nil || r.Unfinished || took == 0 {
		return
	}
	o := Occurrence{
		Location: r.Location, Process: placement.ProcessAt(c.defs, r.Location), Path: f.within.Path(),
		Kind: f.within.kind(), Begin: r.Begin, End: r.End, NCCL: f.nccl,
	}
	for at := f.within.around; at != nil; at = at.around {
		o.Depth++
	}
	c.ended(&o)
}

// kind returns the path with "*" for numbers at the ends of names.
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
