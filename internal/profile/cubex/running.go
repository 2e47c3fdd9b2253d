// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// Running sums up the jobs of an experiment directory while they run. Processes in profile mode have summed up
// themselves; of the others it follows the event files and keeps their sums between calls of Look.
type Running struct {
	dir       string
	followers map[string]*profile.Follower // by shard
}

// NewRunning returns a Running for a directory, which need not exist yet.
func NewRunning(dir string) *Running {
	return &Running{dir: dir, followers: make(map[string]*profile.Follower)}
}

// Sums is the activity of a job's processes so far.
type Sums struct {
	*scorep.Description
	Rows     []profile.RankRow // of communicator ranks; waits are estimated as for profiles
	Estimate Estimate
}

// Look sums up the events since the last call. left lists what could not be used. Errors are those of [FromShards].
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

// open returns a shard's sums.
func (r *Running) open(s *scorep.DescribedShard) (a *profile.Aggregate, instead, err error) {
	if s.Process.IsProfile() {
		return profile.OpenShard(s.Dir)
	}
	f := keyed.EntryMade(r.followers, s.Dir, func() *profile.Follower { return profile.Follow(s.Dir) })
	if damage := f.Read(s.Process); damage != nil {
		instead = fmt.Errorf("what is behind damage is missing: %w", damage)
	}
	return f.Aggregate(), instead, nil
}
