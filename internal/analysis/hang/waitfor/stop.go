// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// The results of the search through the graph, for all kinds of stops, and sentences about them. Ranks are ranks of
// the world.

// Stop is something that keeps a job from continuing, or that has corrupted its results.
type Stop struct {
	Kind verdict.Kind `json:"kind"`
	// Culprits are ranks of the world; empty if neither side can be called the one that deviates.
	Culprits []int  `json:"culprits"`
	Among    []int  `json:"among"`   // all ranks concerned
	Peer     *int   `json:"peer"`    // the rank at the other end of a transfer
	Text     string `json:"text"`    // one sentence
	Since    uint64 `json:"since"`   // ns since 1970 on the job's clock; 0: unknown
	Age      uint64 `json:"age_ns"`  // from Since to the end of the processes in it, or to now
	Victims  int    `json:"victims"` // members that are held up
	// Certain reports that the job could not have continued by itself. Otherwise only the stop's age suggests so.
	Certain bool `json:"certain"`
	// Passed reports that the job continued nevertheless.
	Passed bool `json:"passed"`
	// Seen reports that a source other than the shards confirms the stop, whatever its age.
	Seen bool `json:"seen,omitempty"`
	// Undated reports that it was found in imported snapshots, so that it is not known how long it lasted.
	Undated bool `json:"undated,omitempty"`

	of []*operation // the operations that it holds up
}

// Sentence says what the stop is, how long it has lasted, and who is responsible.
func (s *Stop) Sentence() string {
	return kinds[s.Kind] + ": " + s.Text + s.held() + "."
}

// held says how long it has lasted, or why that is not known; else "".
func (s *Stop) held() string {
	switch {
	case s.Undated:
		return ofSnapshot
	case s.Age > 0:
		return heldFor(s.Age)
	}
	return ""
}

// Margin says what speaks for the named ranks, where that is no confidence; else "".
func (s *Stop) Margin() string {
	switch {
	case len(s.Culprits) == 0 && len(s.Among) > 1:
		return "Which of them is at fault cannot be decided from what was recorded."
	case s.Kind == verdict.Order || s.Kind == verdict.Mismatch:
		return fmt.Sprintf("%d of %d ranks agree.", len(s.Among)-len(s.Culprits), len(s.Among))
	}
	return ""
}

// heldFor says how long it has lasted.
func heldFor(ns uint64) string { return " (for " + units.Time(float64(ns)) + ")" }

// kinds are the beginnings of sentences.
var kinds = map[verdict.Kind]string{
	verdict.Missing: "missing", verdict.Order: "order", verdict.Mismatch: "mismatch",
	verdict.SlowTransfer: "stuck transfer",
}

// Young is the age in ns below which an operation of a running job may simply be taking its time: shards are flushed
// every 2 s.
const Young = 5_000_000_000

// Find looks for whatever keeps a job from continuing. The ages of running processes are counted up to now.
func Find(j *progress.Job, now time.Time) []Stop {
	g := newGraph(j)
	stops := append(disagreements(g, j, now), contradictions(g)...)
	cycles, ends := g.cycles()
	add := func(s Stop, ok bool) {
		if ok && !slices.ContainsFunc(s.of, func(o *operation) bool { return explained(stops, o) }) {
			stops = append(stops, s)
		}
	}
	for _, c := range cycles {
		add(order(g, c))
	}
	for _, o := range g.operations {
		add(absent(o))
	}
	for _, c := range j.Communicators {
		add(uncreated(j, c))
	}
	for _, o := range ends {
		add(transfer(o))
		add(idle(o))
		add(leftBehind(o))
	}
	stops = withoutVague(g, stops)
	for i := range stops {
		stops[i].age(uint64(max(now.UnixNano(), 0)))
	}
	slices.SortStableFunc(stops, func(a, b Stop) int { return cmp.Compare(b.Age, a.Age) })
	return firstOfSnapshots(stops)
}

// withoutVague removes messages without a second end that a decided stop explains. Without one, it adds those of which
// less is known.
func withoutVague(g *graph, stops []Stop) []Stop {
	var decided []int
	for _, s := range stops {
		if !s.Passed {
			decided = append(decided, s.Culprits...)
		}
	}
	if len(decided) == 0 {
		return append(stops, unpaired(g)...)
	}
	return slices.DeleteFunc(stops, func(s Stop) bool {
		return s.Kind == verdict.Missing && len(s.Culprits) == 0 &&
			slices.ContainsFunc(s.Among, func(rank int) bool { return slices.Contains(decided, rank) })
	})
}

// explained reports whether one of the stops already holds up an operation.
func explained(stops []Stop, o *operation) bool {
	return slices.ContainsFunc(stops, func(s Stop) bool { return slices.Contains(s.of, o) })
}

// age sets Age: from the begin of the first operation held up to the end of the last process in one of them.
func (s *Stop) age(now uint64) {
	begin, end := uint64(math.MaxUint64), uint64(0)
	for _, o := range s.of {
		for i := range o.parts {
			p := &o.parts[i]
			if p.since == 0 {
				continue
			}
			s.Victims++
			s.Undated = s.Undated || p.member.Process.Snapshot
			begin = min(begin, p.since)
			switch q := p.member.Process; {
			case q.State == jobs.Running:
				end = max(end, now)
			default:
				end = max(end, q.Ended, q.Last)
			}
		}
	}
	switch {
	case s.Undated: // nor that the job could not go on
		s.Since, s.Certain = begin, false
	case end > 0:
		s.Since, s.Age = begin, end-min(begin, end)
	}
}

// worlds returns the ranks of parts in the world, ascending, without those that are unknown.
func worlds(o *operation, parts []*part) (ranks []int) {
	for _, p := range parts {
		if r := o.world(p); r >= 0 {
			ranks = append(ranks, r)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// world returns a member's rank in the world, −1 if unknown.
func (o *operation) world(p *part) int {
	if p.rank < len(o.comm.World) {
		return o.comm.World[p.rank]
	}
	return -1
}

// names joins the names of members: "Rank 2", "Ranks 0,2".
func names(o *operation, parts []*part) string {
	if w := worlds(o, parts); len(w) == len(parts) && len(w) > 0 {
		return units.RankNames(w)
	}
	var all []string
	for _, p := range parts {
		all = append(all, o.comm.Names[p.rank])
	}
	return units.NameList(all)
}

// with selects the members of an operation that are in one of the states.
func (o *operation) with(states ...state) (parts []*part) {
	for i := range o.parts {
		if slices.Contains(states, o.parts[i].state) {
			parts = append(parts, &o.parts[i])
		}
	}
	return parts
}
