// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
)

// Description is a job of an experiment directory as an archive of it would be defined, without event files.
type Description struct {
	// Dir is where what is made of the job belongs: the directory, or run-1, run-2, … in it if jobs share it.
	Dir        string
	Defs       *otf2.Definitions
	Properties []otf2.Property
	Shards     []DescribedShard
	Hosts      int
	Crashed    int // processes that ended without completing
	Running    int
	Missing    int // known only by their places in communicators
	Ended      int // processes that ended in order
}

// DescribedShard is a process of the job and what its locations are called in the definitions.
type DescribedShard struct {
	Dir      string
	Process  *experiment.Process
	Location func(number uint64) (otf2.LocationRef, bool)
	At       func(uint64) uint64 // from the process's clock to the job's, as far as the hosts' clocks agree
}

// MakeDir makes Dir unless it is there. A symbolic link is an error.
func (d *Description) MakeDir() error { return files.OwnFolder(d.Dir) }

// profiled returns the processes in profile mode, or the others.
func profiled(parts []*jobs.Process, mode bool) []*jobs.Process {
	return slices.DeleteFunc(parts, func(p *jobs.Process) bool { return p.Shard.IsProfile() != mode })
}

// Describe defines the jobs of an experiment directory whose processes were recorded in profile mode. Left is
// what could not be used. Errors: fs.ErrNotExist if there are no shards.
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

// DescribeRunning defines the jobs of an experiment directory in their current state, in any mode of their processes.
// Errors: as of Describe.
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
		d := &Description{Dir: experiment.JobFolder(dir, i, len(runs))}
		a, err := newArchive(r, opts, alone{})
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
