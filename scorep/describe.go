// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobfolder"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
)

// Description holds the definitions and properties that an archive of a job would have. It needs no event files.
type Description struct {
	// Dir is the folder for the job's results: the experiment directory, or run-1, run-2, … in it if several jobs
	// share the directory.
	Dir        string
	Defs       *otf2.Definitions
	Properties []otf2.Property
	Shards     []DescribedShard
	Hosts      int
	Crashed    int // processes whose recording was not finished
	Running    int
	Missing    int // processes known only from their ranks in communicators
	Ended      int // processes whose recording was finished
}

// DescribedShard is a process's shard, with the mapping of its locations and times to the job's.
type DescribedShard struct {
	Dir      string
	Process  *description.Process
	Location func(number uint64) (otf2.LocationRef, bool)
	At       func(uint64) uint64 // converts the process's times to the job's, whose hosts' clocks are not synchronized
}

// MakeDir makes Dir unless it is there. A symbolic link is an error.
func (d *Description) MakeDir() error { return files.OwnFolder(d.Dir) }

// profiled returns the processes in profile mode, or all others if mode is false. It reuses parts.
func profiled(parts []*jobs.Process, mode bool) []*jobs.Process {
	return slices.DeleteFunc(parts, func(p *jobs.Process) bool { return p.Shard.IsProfile() != mode })
}

// Describe returns the jobs of an experiment directory whose processes were recorded in profile mode. left holds the
// shards that could not be used. The error is fs.ErrNotExist if there are none, or none in profile mode.
func Describe(dir string) (all []*Description, left jobs.Unused, err error) {
	opts := new(UnifyOptions)
	parts, left, err := jobs.Read(dir, opts.workers(), opts.now())
	if err != nil {
		return nil, left, err
	}
	if parts = profiled(parts, true); len(parts) == 0 {
		return nil, left, fmt.Errorf("no process of %s was in profile mode: %w", dir, fs.ErrNotExist)
	}
	all, err = describe(dir, parts, opts)
	return all, left, err
}

// DescribeRunning returns the jobs of an experiment directory in their current state, whatever the mode of their
// processes. The error is fs.ErrNotExist if there are no shards.
func DescribeRunning(dir string) (all []*Description, left jobs.Unused, err error) {
	opts := new(UnifyOptions)
	parts, left, err := jobs.Read(dir, opts.workers(), opts.now())
	if err != nil {
		return nil, left, err
	}
	all, err = describe(dir, parts, opts)
	return all, left, err
}

func describe(dir string, parts []*jobs.Process, opts *UnifyOptions) (all []*Description, err error) {
	runs, err := jobs.Separate(parts)
	if err != nil {
		return nil, err
	}
	for i, r := range runs {
		d := &Description{Dir: jobfolder.PathOf(dir, i, len(runs))}
		a, err := newArchive(r, opts, emptyTarget{})
		if err != nil {
			return nil, err
		}
		a.define()
		d.Defs, d.Properties = &a.Definitions, a.properties
		d.Defs.Reindex()
		d.Missing = a.missingProcesses()
		hosts := make(map[string]bool)
		for _, p := range r.Processes {
			hosts[p.Shard.Host+"\x00"+p.Shard.BootID] = true
			ids := a.ids[p]
			for _, s := range p.Shards() {
				d.Shards = append(d.Shards, DescribedShard{Dir: s.Dir, Process: s.Shard,
					Location: func(number uint64) (otf2.LocationRef, bool) {
						l, ok := ids[s.Number(uint32(number))]
						if !ok {
							return 0, false
						}
						return l.Self, true
					}, At: p.At})
			}
			switch p.State {
			case jobs.Crashed:
				d.Crashed++
			case jobs.Running:
				d.Running++
			default:
				d.Ended++
			}
		}
		d.Hosts = len(hosts)
		all = append(all, d)
	}
	return all, nil
}
