// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
)

// waitLimit is the greatest error of a wait of one rank in one collective.
const waitLimit = 100 * time.Microsecond

// In the straggler's recording rank 2 comes 15 ms late to every third all-reduce. The report names it, and what
// each rank waited is what it was on the pretended GPUs.
func TestWaitsAgainstTruth(t *testing.T) {
	rec := recording(t, "09-straggler-4p")
	dir, _ := play(t, rec)
	a := openArchive(t, filepath.Join(dir, "traces.otf2"))
	r, err := operations.Observe(a, new(operations.Observer))
	if err != nil || len(r.Problems) > 0 {
		t.Fatal(err, r.Problems)
	}
	w := r.WaitStates
	causedMost(t, w, "Rank 2")

	want := expect(rec)
	if len(want.ranks) != 1 {
		t.Fatalf("%d communicators", len(want.ranks))
	}
	const ranks = 4
	var ops [ranks][]*operation
	var truths [ranks]map[*replay.Event]ran
	for _, p := range rec.Processes {
		for _, ctx := range p.Contexts {
			truths[ctx.Rank], _ = planTruth(t, p, ctx)
		}
	}
	for m, of := range want.operations {
		ops[m.rank] = of["AllReduce"]
	}
	worst := make(map[uint64]waits.Instance)
	for _, i := range w.Worst {
		if i.Operation == "AllReduce" {
			worst[i.Ordinal] = i
		}
	}
	var waited [ranks]time.Duration
	compared, found, largest := 0, 0, time.Duration(0)
	for n := range ops[0] {
		var begin, end [ranks]uint64
		last, second := 0, uint64(0)
		for rank := range ranks {
			truth, ok := truths[rank][ops[rank][n].event.Group]
			if !ok {
				t.Fatalf("nobody knows when AllReduce %d ran on rank %d", n, rank)
			}
			begin[rank], end[rank] = truth.begin, truth.end
			if begin[rank] > begin[last] {
				last = rank
			}
		}
		if n == 0 {
			continue // starting up, not in the sums
		}
		compared++
		caused := time.Duration(0)
		for rank := range ranks {
			wait := min(begin[last], end[rank]) - begin[rank]
			waited[rank] += time.Duration(wait)
			caused += time.Duration(wait)
			if rank != last {
				second = max(second, begin[rank])
			}
		}
		i, ok := worst[uint64(n)]
		if !ok {
			continue
		}
		found++
		off := (time.Duration(i.Caused) - caused).Abs()
		largest = max(largest, off/(ranks-1))
		bound := (ranks - 1) * waitLimit
		if i.Uncertainty != nil && time.Duration(*i.Uncertainty) < bound {
			bound = time.Duration(*i.Uncertainty)
		}
		if off > bound {
			t.Errorf("AllReduce %d: others waited %v, in truth %v; ± %v", n, time.Duration(i.Caused), caused, bound)
		}
		if margin := begin[last] - second; i.Rank != fmt.Sprintf("Rank %d", last) && time.Duration(margin) > waitLimit {
			t.Errorf("AllReduce %d waited for %s, in truth for %d by %v", n, i.Rank, last, time.Duration(margin))
		}
	}
	if uint64(compared) != w.Collectives || found != len(w.Worst) || found < 10 {
		t.Errorf("%d AllReduces in the recording, %d compared; %d of the %d worst found", compared, w.Collectives,
			found, len(w.Worst))
	}
	for rank := range ranks {
		got := time.Duration(w.Ranks[rank].Waited)
		bound := time.Duration(compared) * waitLimit
		if s := w.Ranks[rank].Sums; s.Unstated == 0 && time.Duration(s.Uncertainty) < bound {
			bound = time.Duration(s.Uncertainty)
		}
		t.Logf("rank %d waited %v, in truth %v; ± %v", rank, got, waited[rank], bound)
		if (got - waited[rank]).Abs() > bound {
			t.Errorf("rank %d waited %v, in truth %v; ± %v", rank, got, waited[rank], bound)
		}
	}
	t.Logf("greatest error of a wait, mean of a collective's three: %v", largest)
}

// causedMost says that half of all waiting, or more, was for a rank.
func causedMost(t *testing.T, w *waits.States, rank string) {
	t.Helper()
	i := slices.IndexFunc(w.Ranks, func(r waits.Row) bool { return r.Name == rank })
	if i < 0 || w.Total.Waited == 0 || 2*w.Ranks[i].Caused < w.Total.Waited {
		t.Errorf("%s did not make ranks wait the most: %+v", rank, w.Ranks)
	}
}
