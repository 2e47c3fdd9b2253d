// SPDX-License-Identifier: Apache-2.0

package bandwidth_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Read returns the rows of the report: the same operations, times and bandwidths.
func TestRowsAreThoseOfTheReport(t *testing.T) {
	for name, path := range map[string]string{
		"plain": jobtest.Typical(t, nil), "waits": jobtest.WithWaits(t), "kernels": jobtest.WithKernels(t),
		"network": jobtest.WithNetwork(t),
	} {
		for _, first := range []bool{false, true} {
			r := jobtest.Operations(t, path)
			if first {
				r.KeepFirst()
			}
			rows, problems := bandwidth.Read(jobtest.Open(t, path), first, nil)
			diff := cmp.Diff(r.Operations, rows, cmpopts.IgnoreFields(bandwidth.Row{}, "Role", "CallTime"))
			testkit.Check(t, diff == "" && len(problems) == 0, "%s, first %t: %v\n%s", name, first, problems, diff)
		}
	}
}

func TestSidesStandInOneRow(t *testing.T) {
	yes, no, root := true, false, 1
	rows := []bandwidth.Row{
		{Operation: "AllReduce", Size: 8, Timed: 2, Time: analysis.Times{P50: 4}, AlgBW: 2, BusBW: 3, InPlace: &no},
		{Operation: "AllReduce", Size: 8, Timed: 2, Time: analysis.Times{P50: 8}, AlgBW: 1, BusBW: 1.5, InPlace: &yes},
		{Operation: "AllReduce", Size: 8, Timed: 2, Time: analysis.Times{P50: 8}, AlgBW: 1, BusBW: 1.5, InPlace: &yes,
			Replayed: true},
		{Operation: "Broadcast", Size: 8, Timed: 1, Time: analysis.Times{P50: 8}, AlgBW: 1, BusBW: 1, Root: &root},
		{Operation: "Broadcast", Size: 8, Timed: 1, Time: analysis.Times{P50: 8}, AlgBW: 1, BusBW: 1, Root: &root,
			Algorithms: []string{"RING"}},
		{Operation: "Broadcast", Size: 8, Timed: 1, Time: analysis.Times{P50: 8}, TimingSource: "enqueue", CallTime: 5},
	}
	tests := bandwidth.Tests(rows)
	testkit.Require(t, len(tests) == 4 && len(tests[0].Rows) == 1 && len(tests[2].Rows) == 2, "%+v", tests)
	r := tests[0].Rows[0]
	testkit.Check(t, r.OutOfPlace.Avg.Time == 4 && r.InPlace.Avg.Time == 8 && r.Unknown == nil, "%+v", r)
	testkit.Equal(t, *tests[0].Average.Avg, 2.25, "the average bus bandwidth")
	launched := tests[3].Rows[0].Unknown
	testkit.Check(t, launched.Avg == nil && tests[3].Average.Avg == nil && *launched.CallTime == 5,
		"of launches there are times of calls alone: %+v", launched)
}

func TestCurvesJoinRowsOfASize(t *testing.T) {
	yes, no := true, false
	rows := []bandwidth.Row{
		{Operation: "AllReduce", Size: 16, Timed: 1, Time: analysis.Times{P50: 4}, AlgBW: 4, BusBW: 6, InPlace: &no},
		{Operation: "AllReduce", Size: 8, Timed: 3, Time: analysis.Times{P50: 4}, AlgBW: 2, BusBW: 3, InPlace: &no},
		{Operation: "AllReduce", Size: 8, Timed: 1, Time: analysis.Times{P50: 8}, AlgBW: 1, BusBW: 1.5, InPlace: &yes},
		{Operation: "AllReduce", Size: 8, Timed: 1, Time: analysis.Times{P50: 8}, AlgBW: 1, BusBW: 1.5,
			Algorithms: []string{"TREE"}},
		{Operation: "Reduce", Size: 8, Timed: 1, Time: analysis.Times{P50: 8}, TimingSource: "enqueue"},
	}
	want := []bandwidth.Curve{
		{Operation: "AllReduce", Points: []bandwidth.Point{{Size: 8, Operations: 4, AlgBW: 1.6, BusBW: 1.6 * 1.5},
			{Size: 16, Operations: 1, AlgBW: 4, BusBW: 6}}},
		{Operation: "AllReduce", Algorithm: "TREE",
			Points: []bandwidth.Point{{Size: 8, Operations: 1, AlgBW: 1, BusBW: 1.5}}},
	}
	testkit.Same(t, want, bandwidth.Curves(rows), cmpopts.EquateApprox(1e-12, 0))
}
