// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// Names of the files made of a job in profile mode, in its experiment directory.
const (
	FileName    = "profile" + cube.Suffix
	SummaryName = "profile.json"
)

// Job is a job in profile mode.
type Job struct {
	*Profile
	description               *scorep.Description
	Dir                       string // for its profile
	Running, Crashed, Missing int    // processes; missing ones left no data
}

// FromShards merges what the processes of the jobs in an experiment directory have summed up so far. left lists what
// could not be used. A job without a readable process is left out, so that a profile made before stays. Errors:
// fs.ErrNotExist if no process was in profile mode; the reason if no job can be read.
func FromShards(dir string) (jobs []*Job, left jobs.Unused, err error) {
	described, left, err := scorep.Describe(dir)
	if err != nil {
		return nil, left, err
	}
	var unreadable error
	for _, d := range described {
		sums, broken := sumUp(d, func(s *scorep.DescribedShard) (
			*profile.Aggregate, error, error) {
			return profile.OpenShard(s.Dir)
		}, &left)
		if len(sums.all) == 0 && broken != nil {
			unreadable = fmt.Errorf("of %s nothing can be read: %w", d.Dir, broken)
			continue
		}
		b, e := newBuilder(d.Defs), sums.estimator
		for i, a := range sums.all {
			b.add(a, sums.locations[i])
		}
		p := b.build()
		p.Estimate = &e.out
		p.Keep(d.Properties...)
		jobs = append(jobs, &Job{Profile: p, description: d, Dir: d.Dir, Running: d.Running, Crashed: d.Crashed,
			Missing: d.Missing})
	}
	if len(jobs) == 0 && unreadable != nil {
		return nil, left, unreadable
	}
	return jobs, left, nil
}

// summedUp is the merged sums of a job's processes, with the waits estimated from them.
type summedUp struct {
	all       []*profile.Aggregate
	locations []func(uint64) (otf2.LocationRef, bool) // the locations of each process
	*estimator
}

// sumUp merges the sums that open returns for each shard; open may instead return earlier sums with the reason, or an
// error. broken is the last error of a shard, unless left explains it.
func sumUp(d *scorep.Description, open func(s *scorep.DescribedShard) (a *profile.Aggregate, instead, err error),
	left *jobs.Unused) (s summedUp, broken error) {
	e := &estimator{rows: make(map[otf2.LocationRef]*sampledRow), out: Estimate{Hosts: d.Hosts}}
	e.stretches, _ = property.Stretches(&otf2.Anchor{Properties: d.Properties})
	s.estimator = e
	for i := range d.Shards {
		one := &d.Shards[i]
		a, instead, err := open(one)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the process has just started
		} else if err != nil {
			left.Add(true, "process %s:%d is left out: %v", one.Process.Host, one.Process.PID, err)
			broken = err
			continue
		} else if instead != nil {
			left.Add(true, "process %s:%d: what it summed up last is missing, an earlier profile was used: %v",
				one.Process.Host, one.Process.PID, instead)
		}
		e.addRows(a, one.Location, one.At)
		s.all, s.locations = append(s.all, a), append(s.locations, one.Location)
	}
	e.estimate(d.Defs)
	return s, broken
}

// WriteSummary writes a summary as JSON. An older file is replaced once the new one is complete.
func WriteSummary(path string, s *Summary) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	f, err := atomicfile.Output(path, regular.File)
	if err != nil {
		return err
	}
	defer f.Abandon()
	if _, err := f.Write(append(text, '\n')); err != nil {
		return err
	}
	return f.Commit(atomicfile.Durable)
}

// MakeFiles writes profile and summary of each job in profile mode of an experiment directory. creator is the program's
// name.
func MakeFiles(dir, creator string) (jobs []*Job, left jobs.Unused, err error) {
	jobs, left, err = FromShards(dir)
	if err != nil {
		return nil, left, err
	}
	for _, j := range jobs {
		j.Creator = creator
		if len(jobs) > 1 {
			if err := j.description.MakeDir(); err != nil {
				return nil, left, err
			}
		}
		if err := j.Write(filepath.Join(j.Dir, FileName), false); err != nil {
			return nil, left, err
		}
		if err := WriteSummary(filepath.Join(j.Dir, SummaryName), j.Summary()); err != nil {
			return nil, left, err
		}
	}
	return jobs, left, nil
}
