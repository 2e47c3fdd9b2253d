// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"path/filepath"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep/ends"
	"github.com/nccl-otf2/nccl-otf2/scorep/files"
)

// moveEnds brings ends that are only those of parts of kernels to where other members show that they were, in the archive that was written
// to anchor, with its event files in the folder events. It reports whether there is anything to write anew. What cannot be moved stays, marked
// as it is.
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
	found, err := ends.Find(anchor, a.comparable(), func(done, total int) { a.opts.progress("ends of operations, events read", done, total) })
	if err != nil {
		a.problems = append(a.problems, fmt.Sprintf("ends of operations that are early by NCCL's stamps were left as they are: %v", err))
		return true
	}
	a.problems = append(a.problems, found.Problems...)
	var rows []otf2.LocationRef
	for _, l := range a.locations {
		if len(found.Moves[l.Self]) > 0 {
			rows = append(rows, l.Self)
		}
	}
	var failed atomic.Pointer[error]
	_ = jobs.ForEach(len(rows), a.opts.workers(), func(i int) error {
		if err := ends.Rewrite(filepath.Join(events, files.Name(rows[i], ".evt")), a.chunk, found.Moves[rows[i]]); err != nil {
			failed.Store(&err)
		}
		return nil
	})
	if err := failed.Load(); err != nil {
		a.problems = append(a.problems, fmt.Sprintf("some ends of operations that are early by NCCL's stamps were left as they are: %v", *err))
	}
	placed.Moved(len(rows))
	a.movedEnds = found.Operations
	a.describe()
	return true
}

// comparable tells how well times of two rows compare: those of one host's clock do, those of several where clocks were compared.
func (a *archive) comparable() ends.Clocks {
	of, _ := a.clocks()
	host := make(map[otf2.LocationRef]int, len(a.locations))
	for _, l := range a.locations {
		if l.part != nil {
			host[l.Self] = of[l.part]
		}
	}
	between, known := uint64(0), false
	if a.sync != nil {
		if c := facts.HostClocksOf(&otf2.Anchor{Properties: a.properties}); c != nil && c.Bounded() {
			between, known = c.Most, true
		}
	}
	return func(x, y otf2.LocationRef) (uint64, bool) {
		if host[x] == host[y] {
			return 0, true
		}
		return 2 * between, known // of each against the clock that both were brought to
	}
}
