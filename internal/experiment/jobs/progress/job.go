// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/rawfiles"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Job is one job of an experiment directory, from its processes' shards: everything known without an archive and
// without reading events, while the job runs and after it has ended or died.
type Job struct {
	Processes     []*Process      // in world order
	Communicators []*Communicator // of more than one rank, in the order of their begin
	Deaths        []string        // of processes that did not end in order, in words, the first one first

	run *jobs.Run
}

// Instances returns the communicators whose members' sequences can be compared, see jobs.CompareSequences.
func (j *Job) Instances() []*jobs.Communicator {
	return slices.DeleteFunc(
		slices.Clone(j.run.Communicators), func(in *jobs.Communicator) bool { return in.Nranks < 2 || in.Unsized })
}

// Process is one process of a job. Times are nanoseconds since 1970 on the job's common clock.
type Process struct {
	Name      string // as in archives: "Rank 3"
	Host      string
	PID       int
	State     jobs.State
	Last      uint64 // time of its last event; 0 if there is none
	Ended     uint64 // when it had ended; 0 if it runs, or that was not observed
	How       string // how it ended, if that was not in order: "killed by SIGKILL"; else ""
	Lost      uint64 // events that could not be recorded
	Lossy     bool   // operations may be missing: an absent one may have been called
	Continued bool   // another collector took over: counts of operations may be off by those under way then
	Ends      bool   // the ends of operations were recorded, not only their calls
	Kernels   bool   // begins and ends of NCCL's kernels were recorded
	Paused    bool   // recording is paused, or parts were left out on request
	Snapshot  bool   // imported states of operations, without times
	Size      int    // processes of the job, as the launcher says; −1 if it does not
	Shard     string // uuid of its first shard
	Busy      bool   // operations are under way

	Losses map[string]uint64 // events that could not be recorded, by reason
}

// Communicator is a communicator of a job.
type Communicator struct {
	Name  string
	Size  int
	Ranks []*Rank // by rank; nil: no data of this rank was found
	// Names are those of the ranks, in the world: "Rank 3"; where there is no world order, or a process has several
	// GPUs without ranks of their own, what distinguishes them.
	Names []string
	World []int  // their ranks in the world, −1 if unknown
	ID    uint64 // NCCL's commId
}

// Rank is one rank of a communicator with its progress.
type Rank struct {
	Process   *Process
	Created   uint64 // when NCCL told the plugin of it, on the job's clock
	Finalized bool
	Unseen    bool // see description.Comm
	// Done are the operations that the rank has ended, one after the other, and Reached those that it has begun, by
	// the keys of description.Comm.Sequences.
	Done, Reached map[string]uint64
	Begun         uint64 // when the latest of them began, on the job's clock; 0 if there is none
	// Parts are where its operations are: one for each collector of its process, in their order.
	Parts []Part
	// Pending are the operations that it has begun and not ended, with ordinals that continue Done and times on the
	// job's clock.
	Pending []description.Pending
}

// Part is what one collector wrote of a rank.
type Part struct {
	Path  string               // the shard's folder
	Shard *description.Process // its description
	Comm  int                  // index into Shard.Comms

	part *jobs.Process
}

// At converts a time of the shard to the job's common clock.
func (p *Part) At(t uint64) uint64 { return p.part.At(t) }

// Describe describes the state of a process: "running", "ended" (in order), how it died ("killed by SIGKILL"), or
// "crashed": its collector died, too.
func (p *Process) Describe() string {
	switch p.State {
	case jobs.Running:
		return "running"
	case jobs.Crashed:
		return "crashed"
	}
	return cmp.Or(p.How, "ended")
}

// Last returns the time of the job's last event.
func (j *Job) Last() (last uint64) {
	for _, p := range j.Processes {
		last = max(last, p.Last)
	}
	return last
}

// Describe describes a job whose shards have been read.
func Describe(r *jobs.Run) *Job { return newJob(r) }

// List reads the shards of an experiment directory. Problems, one line each, name shards that could not be read. It
// returns fs.ErrNotExist if there are no shards.
func List(dir string) (all []*Job, problems []string, err error) {
	parts, left, err := jobs.Read(dir, 2, time.Now())
	problems = left.Problems
	if err != nil {
		return nil, problems, err
	}
	if raw := rawfiles.Find(dir); len(raw) > 0 {
		problems = append(problems, fmt.Sprintf(
			"%s hold raw data that has not been looked at: unify %s first", units.Plural(uint64(len(raw)), "file"),
			dir))
	}
	runs, err := jobs.Separate(parts)
	if err != nil {
		return nil, problems, err
	}
	for _, r := range runs {
		all = append(all, newJob(r))
	}
	return all, problems, nil
}

func newJob(r *jobs.Run) *Job {
	job := &Job{run: r}
	jobs.NameInstances(r.Communicators)
	_, kept := jobs.Arrange(r)
	numbers := jobs.NumberWorld(r)
	processes := make(map[*jobs.Process]*Process)
	ordered := slices.Clone(r.Processes)
	slices.SortFunc(ordered, func(a, b *jobs.Process) int { return a.Index - b.Index })
	for _, p := range ordered {
		jp := &Process{
			Name: p.Name, Host: p.Shard.Host, PID: p.Shard.PID, Size: p.Shard.Launcher.Size, Shard: p.Shard.UUID,
			State: p.State,
			Last:  p.At(p.Shard.LastTime), Ended: p.Ended(), How: jobs.HowEnded(p.Shard), Continued: p.Pieces != nil,
			Lossy: p.Shard.Lossy(), Snapshot: p.Shard.IsSnapshot(),
			Ends:    p.Shard.IsSnapshot() || regions.SeesEnds(p.Shard.Masks.Record),
			Kernels: p.Shard.IsSnapshot() || p.Shard.Masks.Record&(1<<shm.EventKernelCh) != 0,
			Losses:  make(map[string]uint64),
		}
		for reason, types := range p.Shard.Counts.Lost {
			for _, n := range types {
				jp.Losses[reason] += n
				jp.Lost += n
			}
		}
		jp.Busy = slices.ContainsFunc(p.Shard.Pending, func(o description.Pending) bool { return !o.Left })
		processes[p] = jp
		job.Processes = append(job.Processes, jp)
	}
	job.Deaths = jobs.DeathWords(jobs.Deaths(ordered))
	for _, in := range r.Communicators {
		if in.Nranks < 2 || in.Unsized {
			continue
		}
		c := &Communicator{Name: in.Name, Size: in.Nranks, Ranks: make([]*Rank, in.Nranks),
			Names: in.RankNames(&numbers, kept[in]), World: in.World, ID: in.ID}
		job.Communicators = append(job.Communicators, c)
		for m := range in.Present() {
			c.Ranks[m.Comm().Rank] = newJobRank(processes[m.Process], m)
		}
	}
	return job
}

// newJobRank returns the progress of a rank. A collector that took over does not know the operations that were under
// way; they count as done.
func newJobRank(process *Process, m *jobs.Rank) *Rank {
	c := m.Comm()
	j := &Rank{Process: process, Created: m.Process.At(c.InitTime), Finalized: c.FinalTime != 0, Unseen: c.Unseen,
		Done: make(map[string]uint64), Reached: make(map[string]uint64), Begun: m.Process.At(c.Begun)}
	process.Paused = process.Paused || len(c.Gaps) > 0
	for _, p := range m.Process.Shards() {
		if m.Index < len(p.Shard.Comms) {
			j.Parts = append(j.Parts, Part{Path: p.Dir, Shard: p.Shard, Comm: m.Index, part: m.Process})
		}
	}
	type open struct{ least, past, n uint64 } // pending ordinals
	pending := make(map[string]open)
	for _, p := range m.Process.Shard.Pending {
		if p.Comm != m.Index {
			continue
		}
		o, known := pending[p.Function]
		if !known || p.Ordinal < o.least {
			o.least = p.Ordinal
		}
		o.past = max(o.past, p.Ordinal+1)
		if p.Ordinal >= c.Sequences[p.Function].Count { // others have been written, too
			o.n++
		}
		pending[p.Function] = o
		p.Since = m.Process.At(p.Since)
		p.Transfers = slices.Clone(p.Transfers)
		for i := range p.Transfers {
			p.Transfers[i].Since = m.Process.At(p.Transfers[i].Since)
		}
		j.Pending = append(j.Pending, p)
	}
	functions := make(map[string]bool)
	for f := range c.Sequences {
		functions[f] = true
	}
	for f := range c.Held {
		functions[f] = true
	}
	for f := range pending {
		functions[f] = true
	}
	for f := range functions {
		written := c.Sequences[f].Count
		done, reached := written+c.Held[f], written+c.Held[f]
		if o, known := pending[f]; known {
			done = min(done, o.least)
			reached = max(reached+o.n, o.past)
		}
		j.Done[f], j.Reached[f] = done, reached
	}
	return j
}
