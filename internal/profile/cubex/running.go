// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// Running sums up the jobs of an experiment directory while they run, in whatever mode their processes are: those in
// profile mode have done so themselves; of the others it follows the event files. It keeps the sums of these between
// looks.
type Running struct {
	dir       string
	followers map[string]*profile.Follower // by shard
}

// NewRunning makes what looks at a directory, which need not be there yet.
func NewRunning(dir string) *Running {
	return &Running{dir: dir, followers: make(map[string]*profile.Follower)}
}

// Sums is what the processes of a job have done so far.
type Sums struct {
	*scorep.Description
	Rows     []profile.RankRow // of communicator ranks; waits are estimated as for profiles
	Estimate Estimate
}

// Look sums up what has come since the last look. Left is what could not be used. Errors: as of [FromShards].
func (r *Running) Look() (all []Sums, left jobs.Unused, err error) {
	described, left, err := scorep.DescribeRunning(r.dir)
	if err != nil {
		return nil, left, err
	}
	for _, d := range described {
		s, _ := sumUp(d, r.open, &left)
		out := Sums{Description: d, Estimate: s.out}
		for i, a := range s.all {
			for j := range a.Rows {
				row := &a.Rows[j]
				ref, ok := s.locations[i](row.Location)
				if !ok || row.First == 0 {
					continue
				}
				one := profile.RankRow{Location: ref, Nodes: a.Nodes, Row: row}
				if e := s.rows[ref]; e != nil && e.Row == row {
					one.Caused = e.caused
				}
				out.Rows = append(out.Rows, one)
			}
		}
		all = append(all, out)
	}
	return all, left, nil
}

// open gives a shard's sums.
func (r *Running) open(s *scorep.DescribedShard) (a *profile.Aggregate, instead, err error) {
	if s.Process.IsProfile() {
		return profile.OpenShard(s.Dir)
	}
	f := r.followers[s.Dir]
	if f == nil {
		f = profile.Follow(s.Dir)
		r.followers[s.Dir] = f
	}
	if damage := f.Read(s.Process); damage != nil {
		instead = fmt.Errorf("what is behind damage is missing: %w", damage)
	}
	return f.Aggregate(), instead, nil
}
