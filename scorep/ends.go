// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"path/filepath"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/ends"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
)

// moveEnds corrects ends of operations that NCCL stamped too early, where other members' times prove a later end. It
// reads the archive at anchor and rewrites event files in the folder events. It reports whether the definitions must be
// written again. Ends that cannot be moved stay as they are; a problem says so.
func (a *archive) moveEnds(anchor, events string, placed *files.Events) bool {
	early := uint64(0)
	for _, p := range a.run.Processes {
		for _, n := range p.Shard.Counts.Ends {
			early += n
		}
	}
	if early == 0 {
		return false
	}
	found, err := ends.Find(anchor, a.comparable(),
		func(done, total int) { a.opts.progress("ends of operations, events read", done, total) })
	if err != nil {
		a.problems = append(a.problems, fmt.Sprintf(
			"ends of operations that are early by NCCL's stamps were left as they are: %v", err))
		a.describe()
		return true
	}
	a.problems = append(a.problems, found.Problems...)
	var rows []*location
	for _, l := range a.locations {
		if len(found.Moves[l.Self]) > 0 {
			rows = append(rows, l)
		}
	}
	failed := make([]error, len(rows))
	_ = jobs.ForEach(len(rows), a.opts.workers(), func(i int) error {
		failed[i] = ends.Rewrite(filepath.Join(events, files.Name(rows[i].Self, ".evt")), a.chunk,
			found.Moves[rows[i].Self])
		return nil
	})
	moved := 0
	for i, l := range rows {
		if err := failed[i]; err != nil {
			a.problems = append(a.problems, fmt.Sprintf(
				"%s, location %d: ends of operations that are early by NCCL's stamps were left as they are: %v",
				l.owner(), l.number, err))
			continue
		}
		moved++
		for _, m := range found.Moves[l.Self] {
			a.movedEnds += m.Operations
		}
	}
	placed.Moved(moved)
	a.describe()
	return true
}

// comparable returns which locations share a host's clock, and by how much synchronized clocks of two hosts may differ.
func (a *archive) comparable() *ends.Clocks {
	of, _ := a.clocks()
	c := &ends.Clocks{Host: make(map[otf2.LocationRef]int, len(a.locations))}
	for _, l := range a.locations {
		if l.part != nil {
			c.Host[l.Self] = of[l.part]
		}
	}
	if a.sync != nil {
		if h := property.HostClocksOf(&otf2.Anchor{Properties: a.properties}); h != nil && h.Bounded() {
			c.Between, c.Known = 2*h.Most, true // Most is each clock's uncertainty against the common reference
		}
	}
	return c
}
