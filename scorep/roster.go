// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
)

// roster holds the processes of a run, their places in the world, and the communicators.
type roster struct {
	run       *jobs.Run
	world     *jobs.World
	seats     seats
	instances []*jobs.Communicator // those that get definitions: known size, more than one rank
}

func newRoster(run *jobs.Run) *roster {
	r := &roster{run: run}
	var others []*jobs.Communicator
	for _, in := range run.Communicators {
		if in.Nranks > 1 && !in.Unsized {
			r.instances = append(r.instances, in)
		} else {
			others = append(others, in)
		}
	}
	jobs.FindParents(run.Communicators)
	r.instances = jobs.ParentsFirst(r.instances)
	jobs.NameInstances(slices.Concat(r.instances, others))
	r.world, r.seats = jobs.Arrange(run)
	return r
}

// ordered returns the processes with data, in world order.
func (r *roster) ordered() []*jobs.Process {
	var parts []*jobs.Process
	for _, pl := range r.world.Places {
		if pl.Process != nil {
			parts = append(parts, pl.Process)
		}
	}
	return parts
}

// ranksOfUnknownSize counts the ranks of communicators that get no definition because NCCL never reported their size.
func (r *roster) ranksOfUnknownSize() (n uint64) {
	for _, in := range r.run.Communicators {
		if in.Unsized {
			for range in.Present() {
				n++
			}
		}
	}
	return n
}

func (r *roster) continuedProcesses() (n uint64) {
	for _, p := range r.run.Processes {
		n += uint64(max(len(p.Pieces), 1) - 1)
	}
	return n
}

func (r *roster) missingProcesses() int {
	n := 0
	for _, pl := range r.world.Places {
		n += pl.Missing
	}
	return n
}

func (r *roster) missingRanks() (n int) {
	for _, in := range r.instances {
		n += len(in.Missing())
	}
	return n
}

// uncounted returns a line for each process that lost more than the counts of losses show, with the reason.
func (r *roster) uncounted() (lines []string) {
	for _, p := range r.ordered() {
		if text := p.Uncounted(); text != "" {
			lines = append(lines, text)
		}
	}
	return lines
}
