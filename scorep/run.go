// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/experiment"
)

// run is one job: processes that get one archive.
type run struct {
	parts     []*part
	instances []*instance // in the order of their begin
	damaged   []string    // what of the directory is, one line each: it may be of this job
}

func (r *run) begin() uint64 {
	first := uint64(math.MaxUint64)
	for _, p := range r.parts {
		first = min(first, p.begin())
	}
	return first
}

func (r *run) end() uint64 {
	last := uint64(0)
	for _, p := range r.parts {
		last = max(last, p.end())
	}
	return last
}

func (r *run) overlaps(o *run) bool {
	return lifespan{r.begin(), r.end()}.meets(lifespan{o.begin(), o.end()}, clockSlack)
}

// separateRuns finds the jobs whose processes share the directory, in the order of their begin.
//
// Processes with a communicator in common belong together. So do processes that the launcher
// numbered differently within a world of one size, even if they never communicated: a rank that is
// there twice, however, belongs to another run. Processes that the launcher says nothing of, and
// which have no communicator (they ended before they made one), join the run they overlap with.
//
// The error tells of more ranks without data than can be shown.
func separateRuns(parts []*part) ([]*run, error) {
	parts = joinLives(parts)
	alignClocks(parts)
	instances, err := findInstances(parts)
	if err != nil {
		return nil, err
	}
	components := connect(parts, instances)
	slices.SortStableFunc(components, func(a, b *run) int { return cmp.Compare(a.begin(), b.begin()) })

	var runs, strays []*run
	for _, c := range components {
		switch home := sameJob(runs, c); {
		case home != nil:
			home.join(c)
		case len(c.instances) == 0 && c.parts[0].process.Launcher.Rank < 0:
			strays = append(strays, c)
		default:
			runs = append(runs, c)
		}
	}
	for _, s := range strays {
		i := slices.IndexFunc(runs, s.overlaps)
		if i < 0 {
			runs = append(runs, s)
			continue
		}
		runs[i].join(s)
	}
	slices.SortStableFunc(runs, func(a, b *run) int { return cmp.Compare(a.begin(), b.begin()) })
	for _, r := range runs {
		r.settle()
	}
	return runs, nil
}

// settle brings the clocks of the run's processes together, and its communicators into order. The reference must not
// depend on other jobs in the directory.
func (r *run) settle() {
	alignClocks(r.parts)
	slices.SortStableFunc(r.instances, func(a, b *instance) int {
		return cmp.Or(cmp.Compare(a.begin(), b.begin()), cmp.Compare(a.id, b.id), cmp.Compare(a.nranks, b.nranks))
	})
}

func (r *run) join(o *run) {
	r.parts = append(r.parts, o.parts...)
	r.instances = append(r.instances, o.instances...)
}

// connect returns the connected components of processes under "has a communicator in common".
func connect(parts []*part, instances []*instance) []*run {
	parent := make(map[*part]*part, len(parts))
	var root func(p *part) *part
	root = func(p *part) *part {
		if parent[p] == nil {
			return p
		}
		r := root(parent[p])
		parent[p] = r
		return r
	}
	for _, in := range instances {
		var first *part
		for m := range in.present() {
			if first == nil {
				first = root(m.part)
			} else if r := root(m.part); r != first {
				parent[r] = first
			}
		}
	}
	byRoot := make(map[*part]*run)
	var runs []*run
	for _, p := range parts {
		r := byRoot[root(p)]
		if r == nil {
			r = new(run)
			byRoot[root(p)] = r
			runs = append(runs, r)
		}
		r.parts = append(r.parts, p)
	}
	for _, in := range instances {
		for m := range in.present() {
			r := byRoot[root(m.part)]
			r.instances = append(r.instances, in)
			break
		}
	}
	return runs
}

// sameJob finds the run to which the launcher's numbering assigns component c: the newest that
// overlaps with it in time, else the newest.
func sameJob(runs []*run, c *run) *run {
	if !numbered(c.parts) {
		return nil
	}
	var fits *run
	for _, r := range slices.Backward(runs) {
		if !numbered(r.parts) || !distinctRanks(r.parts, c.parts) {
			continue
		}
		if r.overlaps(c) {
			return r
		}
		if fits == nil {
			fits = r
		}
	}
	return fits
}

// numbered tells whether a launcher gave all processes a rank in a world of one known size.
func numbered(parts []*part) bool {
	for _, p := range parts {
		l, first := p.process.Launcher, parts[0].process.Launcher
		if l.Rank < 0 || l.Size <= 0 || l.Size > experiment.MaxRanks || l.Rank >= l.Size || l.Size != first.Size || l.Name != first.Name {
			return false
		}
	}
	return true
}

func distinctRanks(a, b []*part) bool {
	x, y := a[0].process.Launcher, b[0].process.Launcher
	if x.Size != y.Size || x.Name != y.Name {
		return false
	}
	taken := make(map[int]bool, len(a))
	for _, p := range a {
		taken[p.process.Launcher.Rank] = true
	}
	return !slices.ContainsFunc(b, func(p *part) bool { return taken[p.process.Launcher.Rank] })
}
