// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/loss"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
)

// placeEvents places every location's event file in dir, and records its event count, the archive's first and last
// time, and the problems and losses found.
func (a *archive) placeEvents(dir string) (*files.Events, error) {
	out := files.New(a.chunk)
	times := make([]jobs.Lifespan, len(a.locations))
	var done atomic.Int64
	err := jobs.ForEach(len(a.locations), a.opts.workers(), func(i int) error {
		l := a.locations[i]
		to := filepath.Join(dir, files.Name(l.Self, ".evt"))
		row := &files.Row{Process: l.part, Number: l.number, Source: l.source}
		times[i] = jobs.Lifespan{Begin: math.MaxUint64, End: 0}
		if err := out.Place(i, row, to, &times[i]); err != nil {
			return fmt.Errorf("event file of %s, location %d: %w", l.owner(), l.number, err)
		}
		l.Events = row.Events
		a.opts.progress("event files", int(done.Add(1)), len(a.locations))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, t := range times {
		if t.Begin <= t.End {
			a.spans = append(a.spans, span{a.locations[i].part, t})
		}
	}
	for _, p := range a.run.Processes {
		for _, s := range p.Shards() {
			out.LeaveBehind(p, s)
		}
	}
	for i := range a.locations {
		if text := out.Problems[i]; text != "" {
			a.problems = append(a.problems, text)
		}
	}
	a.problems = append(a.problems, out.Others...)
	a.damaged = append(a.damaged, out.Damaged...)
	slices.Sort(a.damaged)
	for p, n := range out.Lost {
		if n > 0 {
			lost := maps.Clone(p.Shard.Counts.Lost)
			if lost == nil {
				lost = make(map[string]map[string]uint64)
			}
			lost[loss.FromDisk] = map[string]uint64{loss.Records: n}
			p.Shard.Counts.Lost = lost
		}
	}
	for _, p := range a.run.Processes {
		if p.State == jobs.Finished && p.Shard.FirstTime != 0 {
			a.spans = append(a.spans, span{p, jobs.Lifespan{Begin: p.Shard.FirstTime, End: p.Shard.LastTime}})
		}
	}
	a.measure()
	return out, nil
}

func (l *location) owner() string {
	if l.part == nil {
		return "a process without data"
	}
	return l.part.ID()
}
