// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Imported snapshots (description.Import): the states of operations at one time of each rank, which nobody knows.

// ofSnapshot ends sentences about stops that were found in snapshots.
const ofSnapshot = " (from Flight Recorder dumps: order and state, no times)"

// leftBehind names the members that have not ended a collective that others have ended, although none of these could
// without them: their GPUs, or what watches these, had stopped before. ok is false if most members are so.
func leftBehind(o *operation) (s Stop, ok bool) {
	f := regions.CollectiveNamed(o.name)
	inside, ended := o.with(called, running), o.with(done)
	if f == nil || f.Rooted() || len(inside) == 0 || len(inside) > len(ended) || !inside[0].member.Process.Snapshot {
		return s, false
	}
	return Stop{Kind: verdict.Missing, Culprits: worlds(o, inside), Among: worlds(o, ended), of: []*operation{o},
		Text: fmt.Sprintf("%s %s not ended %s, which %s %s, though it takes all members%s", names(o, inside),
			has(len(inside)), o.words(), names(o, ended), has(len(ended)), callSite(inside))}, true
}

// callSite says where members called the operation that they are in, if that is one known line of the program.
func callSite(parts []*part) string {
	site := ""
	for _, p := range parts {
		if p.pending == nil || p.pending.CallSite == "" || site != "" && site != p.pending.CallSite {
			return ""
		}
		site = p.pending.CallSite
	}
	return ", called at " + site
}

// firstOfSnapshots removes stops that name only ranks that an earlier one names: who has not called an operation has
// not called those behind it either.
func firstOfSnapshots(stops []Stop) []Stop {
	slices.SortStableFunc(stops, func(a, b Stop) int {
		if !a.Undated || !b.Undated {
			return 0
		}
		return cmp.Compare(a.Since, b.Since)
	})
	named := make(map[int]bool)
	return slices.DeleteFunc(stops, func(s Stop) bool {
		if !s.Undated || s.Kind != verdict.Missing || len(s.Culprits) == 0 {
			return false
		}
		known := !slices.ContainsFunc(s.Culprits, func(rank int) bool { return !named[rank] })
		for _, rank := range s.Culprits {
			named[rank] = true
		}
		return known
	})
}

// contradictions lists the collectives of snapshots for which members asked differently in one place.
func contradictions(g *graph) (stops []Stop) {
	type place struct {
		comm    *progress.Communicator
		ordinal uint64
	}
	called := make(map[place][]*operation)
	for _, o := range g.operations {
		if o.ends == "" && !o.lone {
			at := place{o.comm, o.ordinal}
			called[at] = append(called[at], o)
		}
	}
	for _, o := range g.operations {
		at := place{o.comm, o.ordinal}
		var sides []side
		for _, p := range called[at] {
			sides = p.addRequests(sides)
		}
		if len(sides) > 1 {
			s := Stop{Kind: verdict.Mismatch, of: called[at]}
			s.Culprits, s.Among, s.Text = minority(sides)
			s.Text = fmt.Sprintf("as collective %d on %s, %s", o.ordinal, o.comm.Name, s.Text)
			stops = append(stops, s)
		}
		delete(called, at)
	}
	return stops
}

// addRequests adds what members of a snapshot asked for in the operation.
func (o *operation) addRequests(sides []side) []side {
	asked := make(map[string][]*part)
	var order []string
	for i := range o.parts {
		p := &o.parts[i]
		if p.pending == nil || !p.member.Process.Snapshot {
			continue
		}
		text := "called " + o.request(p.pending)
		if asked[text] == nil {
			order = append(order, text)
		}
		asked[text] = append(asked[text], p)
	}
	for _, text := range order {
		sides = append(sides, side{worlds(o, asked[text]), names(o, asked[text]) + " " + text})
	}
	return sides
}

// request says what a member asked for, as far as all must ask for the same.
func (o *operation) request(p *description.Pending) string {
	if f := regions.CollectiveNamed(o.name); f == nil || !f.Reduces && o.name != "Broadcast" || p.Count == 0 {
		return o.name
	}
	return fmt.Sprintf("%s of %s of %s", o.name, units.Plural(p.Count, "element"),
		strings.TrimPrefix(p.Datatype, "nccl"))
}
