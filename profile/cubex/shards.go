// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/profile"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// Names of what is made of a job in profile mode, in its experiment directory.
const (
	FileName    = "profile" + cube.Suffix
	SummaryName = "profile.json"
)

// Job is a job in profile mode.
type Job struct {
	*Profile
	description               *scorep.Description
	Dir                       string // where its profile belongs
	Running, Crashed, Missing int    // processes; missing ones left nothing
}

// FromShards puts together what the processes of the jobs in an experiment directory have summed up, as far as they have come.
// Left is what could not be used; a job of which no process can be read is none, so that a profile made before stays. Errors:
// fs.ErrNotExist if no process was in profile mode, and why not if no job can be read.
func FromShards(dir string) (jobs []*Job, left jobs.Unused, err error) {
	described, left, err := scorep.Describe(dir)
	if err != nil {
		return nil, left, err
	}
	var unreadable error
	for _, d := range described {
		b := newBuilder(d.Defs)
		e := &estimator{rows: make(map[otf2.LocationRef]*sampledRow), out: Estimate{Hosts: d.Hosts}}
		e.stretches, _ = facts.Stretches(&otf2.Anchor{Properties: d.Properties})
		var broken error
		var all []*profile.Aggregate
		var locations []func(uint64) (otf2.LocationRef, bool)
		for _, s := range d.Shards {
			a, instead, err := profile.OpenShard(s.Dir)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has just begun
			} else if err != nil {
				left.Add(true, "process %s:%d is left out: %v", s.Process.Host, s.Process.PID, err)
				broken = err
				continue
			} else if instead != nil {
				left.Add(true, "process %s:%d: what it summed up last is missing, an earlier profile was used: %v", s.Process.Host, s.Process.PID, instead)
			}
			e.addRows(a, s.Location, s.At)
			all, locations = append(all, a), append(locations, s.Location)
		}
		if len(all) == 0 && broken != nil {
			unreadable = fmt.Errorf("of %s nothing can be read: %w", d.Dir, broken)
			continue
		}
		e.estimate(d.Defs)
		for i, a := range all {
			b.add(a, locations[i])
		}
		p := b.build()
		p.Estimate = &e.out
		p.Keep(d.Properties...)
		jobs = append(jobs, &Job{Profile: p, description: d, Dir: d.Dir, Running: d.Running, Crashed: d.Crashed, Missing: d.Missing})
	}
	if len(jobs) == 0 && unreadable != nil {
		return nil, left, unreadable
	}
	return jobs, left, nil
}

// WriteSummary writes a summary as JSON. It replaces an older file when it is whole.
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

// MakeFiles makes profile and summary of each job of an experiment directory in profile mode. creator is who does so.
func MakeFiles(dir, creator string) (jobs []*Job, left jobs.Unused, err error) {
	jobs, left, err = FromShards(dir)
	if err != nil {
		return nil, left, err
	}
	for _, j := range jobs {
		j.Creator = creator
		if err := j.description.MakeDir(); err != nil {
			return nil, left, err
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
