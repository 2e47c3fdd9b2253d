// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
)

// Run is one job: the processes that get one archive.
type Run struct {
	Processes     []*Process
	Communicators []*Communicator // in the order of their begin
	Damaged       []string        // damaged files of the directory, one line each: they may be of this job
}

// Begin returns when the first of its processes began, archive time in ns.
func (r *Run) Begin() uint64 {
	first := uint64(math.MaxUint64)
	for _, p := range r.Processes {
		first = min(first, p.Begin())
	}
	return first
}

// compareRuns orders jobs by their begin, and for equal program clocks by the starts of their processes.
func compareRuns(r, o *Run) int {
	first := func(r *Run) uint64 {
		return slices.MinFunc(r.Processes, func(a, b *Process) int {
			return cmp.Compare(a.Shard.PIDStart, b.Shard.PIDStart)
		}).Shard.PIDStart
	}
	return cmp.Or(cmp.Compare(r.Begin(), o.Begin()), cmp.Compare(first(r), first(o)))
}

func (r *Run) end() uint64 {
	last := uint64(0)
	for _, p := range r.Processes {
		last = max(last, p.End())
	}
	return last
}

func (r *Run) overlaps(o *Run) bool {
	return Lifespan{r.Begin(), r.end()}.Overlaps(Lifespan{o.Begin(), o.end()}, clockSlack)
}

// Separate finds the jobs whose processes share the directory, in the order of their begin.
//
// Processes with a communicator in common belong together. So do processes that the launcher numbered differently
// within a world of one size, even if they never communicated: a rank that is there twice, however, belongs to another
// run. Processes without launcher and communicator (they ended before they made one) join the run that they overlap
// with.
//
// The error reports more ranks without data than MaxAbsent.
func Separate(parts []*Process) ([]*Run, error) {
	parts = joinLives(parts)
	alignClocks(parts)
	measureLeads(parts)
	instances, err := findInstances(parts)
	if err != nil {
		return nil, err
	}
	components := connect(parts, instances)
	slices.SortStableFunc(components, compareRuns)

	var runs, strays []*Run
	for _, c := range components {
		switch home := sameJob(runs, c); {
		case home != nil:
			home.Join(c)
		case len(c.Communicators) == 0 && c.Processes[0].Shard.Launcher.Rank < 0:
			strays = append(strays, c)
		default:
			runs = append(runs, c)
		}
	}
	for _, s := range strays {
		i := slices.IndexFunc(runs, s.overlaps)
		if i < 0 && len(runs) == 1 && !s.Processes[0].tied { // its times are no evidence
			i = 0
		}
		if i < 0 {
			runs = append(runs, s)
			continue
		}
		runs[i].Join(s)
	}
	slices.SortStableFunc(runs, compareRuns)
	for _, r := range runs {
		r.Settle()
	}
	return runs, nil
}

// Settle aligns the clocks of the run's processes, and orders its communicators. The reference must not depend on other
// jobs in the directory.
func (r *Run) Settle() {
	alignClocks(r.Processes)
	slices.SortStableFunc(r.Communicators, func(a, b *Communicator) int {
		return cmp.Or(cmp.Compare(a.beginTime(), b.beginTime()), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Nranks, b.Nranks))
	})
}

// Join adds another job's processes and communicators.
func (r *Run) Join(o *Run) {
	r.Processes = append(r.Processes, o.Processes...)
	r.Communicators = append(r.Communicators, o.Communicators...)
}

// connect returns the connected components of processes under "has a communicator in common".
func connect(parts []*Process, instances []*Communicator) []*Run {
	parent := make(map[*Process]*Process, len(parts))
	var root func(p *Process) *Process
	root = func(p *Process) *Process {
		if parent[p] == nil {
			return p
		}
		r := root(parent[p])
		parent[p] = r
		return r
	}
	for _, in := range instances {
		var first *Process
		for m := range in.Present() {
			if first == nil {
				first = root(m.Process)
			} else if r := root(m.Process); r != first {
				parent[r] = first
			}
		}
	}
	byRoot := make(map[*Process]*Run)
	var runs []*Run
	for _, p := range parts {
		r := byRoot[root(p)]
		if r == nil {
			r = new(Run)
			byRoot[root(p)] = r
			runs = append(runs, r)
		}
		r.Processes = append(r.Processes, p)
	}
	for _, in := range instances {
		for m := range in.Present() {
			r := byRoot[root(m.Process)]
			r.Communicators = append(r.Communicators, in)
			break
		}
	}
	return runs
}

// sameJob returns the run to which the launcher's numbering assigns component c: the newest that overlaps with it in
// time, else the newest.
func sameJob(runs []*Run, c *Run) *Run {
	if !numbered(c.Processes) {
		return nil
	}
	var fits *Run
	for _, r := range slices.Backward(runs) {
		if !numbered(r.Processes) || !distinctRanks(r.Processes, c.Processes) {
			continue
		}
		if r.overlaps(c) {
			return r
		}
		fits = cmp.Or(fits, r)
	}
	return fits
}

// numbered reports whether a launcher gave all processes a rank in a world of one known size.
func numbered(parts []*Process) bool {
	for _, p := range parts {
		l, first := p.Shard.Launcher, parts[0].Shard.Launcher
		if l.Rank < 0 || l.Size <= 0 || l.Size > description.MaxRanks || l.Rank >= l.Size || l.Size != first.Size ||
			l.Name != first.Name {
			return false
		}
	}
	return true
}

func distinctRanks(a, b []*Process) bool {
	x, y := a[0].Shard.Launcher, b[0].Shard.Launcher
	if x.Size != y.Size || x.Name != y.Name {
		return false
	}
	taken := make(map[int]bool, len(a))
	for _, p := range a {
		taken[p.Shard.Launcher.Rank] = true
	}
	return !slices.ContainsFunc(b, func(p *Process) bool { return taken[p.Shard.Launcher.Rank] })
}
