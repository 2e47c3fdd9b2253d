// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// The parts that are passed on add up to the report.
func TestPartsAddUpToTheReport(t *testing.T) {
	a := jobtest.Open(t, jobtest.WithNetwork(t))
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	calls := make(map[string]uint64)
	for _, r := range report.Operations {
		calls[r.Operation] += r.Calls
	}
	got := make(map[string]uint64)
	var last *operations.Part
	problems, err := operations.EachPart(a, nil, analysis.Slice{}, func(p *operations.Part) error {
		got[p.Function]++
		if last != nil && (p.Location < last.Location || p.Location == last.Location && p.End < last.End) {
			t.Errorf("%s %d on location %d comes after location %d", p.Function, p.Ordinal, p.Location, last.Location)
		}
		kept := *p
		last = &kept
		return nil
	})
	testkit.Require(t, err == nil && len(problems) == 0, "%v %v", problems, err)
	testkit.Same(t, calls, got)

	var sum matrix.Traffic
	problems, err = matrix.EachTransfer(a, analysis.Slice{}, func(x *matrix.Transfer) error {
		sum.Add(x.Bytes)
		testkit.Check(t, x.From >= 0 && x.Comm == last.Comm && a.Defs.Location(x.Target) != nil, "transfer %+v", x)
		return nil
	})
	testkit.Require(t, err == nil && len(problems) == 0, "%v %v", problems, err)
	want := matrix.Traffic{}
	for _, n := range matrix.Read(a, nil).Networks {
		want.Transfers += n.Total.Transfers
		want.Bytes += n.Total.Bytes
	}
	testkit.Check(t, sum == want && sum.Transfers != 0, "transfers %+v, the matrix has %+v", sum, want)

	stop := errors.New("enough")
	n := 0
	_, err = operations.EachPart(a, nil, analysis.Slice{},
		func(*operations.Part) error { n++; return stop })
	testkit.Check(t, errors.Is(err, stop) && n == 1, "%d operations passed on, then %v", n, err)
}

// The waits that are passed on are those in the report, in the same order on every machine.
func TestWaitsAddUpToTheReport(t *testing.T) {
	a := jobtest.Open(t, jobtest.WithWaits(t))
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	gather := func() (all []waits.Wait) {
		problems := operations.EachMatch(a, &operations.Matches{Wait: func(w *waits.Wait) { all = append(all, *w) }})
		testkit.Require(t, len(problems) == 0, "%v", problems)
		return all
	}
	all := gather()
	var waited, startUp, waits uint64
	for _, w := range all {
		if w.StartUp {
			startUp += w.Waited
			continue
		}
		waited += w.Waited
		waits++
		testkit.Check(t, w.World != w.For && w.Waited <= w.Time, "%+v", w)
	}
	s := report.WaitStates
	testkit.Check(t, waited == s.Total.Waited && waits == s.Total.Waits && startUp == s.StartUp.Waited && waits != 0 &&
		startUp != 0, "%d waits of %d ns, %d ns starting up; the report has %d of %d, %d", waits, waited, startUp,
		s.Total.Waits, s.Total.Waited, s.StartUp.Waited)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	testkit.Check(t, slices.Equal(all, gather()), "another order on one processor")
}
