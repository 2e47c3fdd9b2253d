// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex/cubextest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/internal/view"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
	"github.com/nccl-otf2/nccl-otf2/tests/scoutrules"
)

// withoutCalls is a job of NCCL 2.31 with NCCL_ENQUEUE_REARCH_ENABLE=1: rank 2 comes 2 ms late to each second
// operation.
func withoutCalls(stuck bool) *scenario.Scenario {
	s := scenario.New("without-calls", v7)
	s.Library, s.Rearch = "nccl", true
	ranks := s.Job(4, scenario.Comm{ID: 0x2e, Name: "dp"})
	for i := range 12 {
		late := []float64{0, 0, 0, 0}
		if i%2 == 1 {
			late[2] = 2000
		}
		s.All(ranks, scenario.Same(scenario.Op{Func: "AllReduce", Kernel: 3000}), late...)
		s.Advance(500)
	}
	s.All(ranks, func(rank int) []scenario.Op {
		return []scenario.Op{{Func: "Send", Peer: (rank + 1) % 4, Steps: 1},
			{Func: "Recv", Peer: (rank + 3) % 4, Steps: 1}}
	})
	if stuck { // rank 1 never comes, the others' kernels never end
		for i, r := range ranks {
			if i != 1 {
				r.Call(scenario.Op{Func: "AllReduce", NoKernel: true, Steps: 1, Open: true})
			}
		}
		return s
	}
	scenario.Leave(ranks)
	return s
}

// Without a single call of the application, everything is made of the operations.
func TestJobWithoutCalls(t *testing.T) {
	t.Parallel()
	o := playScenario(t, withoutCalls(false), env("NCCL_ENQUEUE_REARCH_ENABLE=1"))
	anchor := filepath.Join(o.dir, "traces.otf2")
	a := openArchive(t, anchor)
	r, err := operations.Observe(a, new(operations.Observer))
	testkit.Require(t, err == nil && len(r.Problems) == 0, "%v %v", err, r.Problems)
	o.want("operations", int(r.Summary.Operations), 12+4)
	w := r.WaitStates
	causedMost(t, w, "Rank 2")
	h := r.Summary.Hidden
	testkit.Check(t, len(h) != 0 && h[0].Key == "application-calls", "not visible: %+v", h)

	res := testkit.Value(view.Scalasca(anchor, filepath.Join(o.dir, "scalasca"), nil))(t)
	testkit.Check(t, res.Collectives == 12 && res.Messages == 4 && res.Lost() <= 0 && len(res.Problems) == 0,
		"view: %+v", res)
	found, err := scoutrules.Check(res.Archive, nil)
	testkit.Check(t, err == nil && len(found.Findings) == 0, "%v %v", err, found)

	p, report, err := cubex.FromArchive(a)
	testkit.Must(t, err)
	file := filepath.Join(o.dir, "profile.cubex")
	testkit.Must(t, p.Write(file, false))
	made := cubextest.Load(t, file)
	made.Sound(t)
	made.Agrees(t, report, tally.Read(a, nil))
}

func TestHangWithoutCalls(t *testing.T) {
	t.Parallel()
	o := playScenario(t, withoutCalls(true), env("NCCL_ENQUEUE_REARCH_ENABLE=1"))
	r, err := hang.Find(o.dir, time.Now(), nil)
	testkit.Require(t, err == nil && len(r.Jobs) == 1 && len(r.Jobs[0].Communicators) != 0, "%v %+v", err, r)
	c := &r.Jobs[0].Communicators[0]
	testkit.Check(t, c.Operation == "AllReduce" && c.Ordinal == 12 && c.Verdict == hang.NotReached, "%+v", c)
	for _, m := range c.Members {
		testkit.Equal(t, (m.Rank == 1), (m.State == "missing"), "rank %d: %+v", m.Rank, m)
	}
}

// causedMost says that half of all waiting, or more, was for a rank.
func causedMost(t *testing.T, w *waits.States, rank string) {
	t.Helper()
	i := slices.IndexFunc(w.Ranks, func(r waits.Row) bool { return r.Name == rank })
	testkit.Check(t, i >= 0 && w.Total.Waited != 0 && 2*w.Ranks[i].Caused >= w.Total.Waited,
		"%s did not make ranks wait the most: %+v", rank, w.Ranks)
}
