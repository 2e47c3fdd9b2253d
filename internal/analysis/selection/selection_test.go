// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/overlap"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/tally"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

func jobs(t *testing.T) map[string]string {
	return map[string]string{
		"plain": jobtest.Typical(t, nil), "waits": jobtest.WithWaits(t), "kernels": jobtest.WithKernels(t),
		"network": jobtest.WithNetwork(t),
	}
}

func selected(t *testing.T, path string, spec selection.Spec) *selection.Selection {
	t.Helper()
	s := testkit.Value(selection.Resolve(jobtest.Open(t, path), spec))(t)
	return s
}

func reportOf(t *testing.T, path string, s *selection.Selection) *operations.Report {
	t.Helper()
	r := testkit.Value(operations.Observe(jobtest.Open(t, path), &operations.Observer{Selection: s}))(t)
	return r
}

func text(t *testing.T, values ...any) string {
	t.Helper()
	b := testkit.Value(json.MarshalIndent(values, "", " "))(t)
	return string(b)
}

// whole has selections that leave nothing out.
var whole = []selection.Spec{{From: "0s"}, {To: "1h"}, {From: "-1s", To: "30m"}, {Ranks: "0-1"}, {Comm: "*"},
	{Ranks: "0,1", Comm: "*", From: "0s"}}

func TestASelectionOfEverythingIsNone(t *testing.T) {
	for name, path := range jobs(t) {
		ranks := len(reportOf(t, path, nil).WaitStates.Ranks)
		all := func(s *selection.Selection) string {
			r := reportOf(t, path, s)
			r.Summary.Selection, r.CriticalPath = nil, nil   // critical paths cover whole runs only
			r.Efficiency, r.WaitStates.Efficiency = nil, nil // and so do efficiencies
			a := jobtest.Open(t, path)
			rows, _ := bandwidth.Read(a, false, s)
			return text(t, r, r.WaitStates, r.Causes.Waited, r.Causes.Ranks[0].Worked, rows, tally.Read(a, s),
				matrix.Read(a, s), overlap.Read(a, s))
		}
		want := all(nil)
		for _, spec := range whole {
			if spec.Ranks != "" {
				spec.Ranks = fmt.Sprintf("0-%d", ranks-1)
			}
			diff := cmp.Diff(want, all(selected(t, path, spec)))
			testkit.Check(t, diff == "", "%s, %s:\n%s", name, spec.String(), diff)
		}
	}
}

// sums has figures that add up over the parts of a run.
type sums struct{ operations, calls, bytes, time, waited, waits, regions, regionTime, transfers, causes float64 }

func sumsOf(t *testing.T, path string, s *selection.Selection) (x sums) {
	r := reportOf(t, path, s)
	x.operations, x.calls, x.bytes = float64(r.Summary.Operations), float64(r.Summary.Calls), float64(r.Summary.Bytes)
	for _, o := range r.Operations {
		x.time += o.Time.Total
	}
	x.waited = float64(r.WaitStates.Total.Waited + r.WaitStates.StartUp.Waited)
	x.waits = float64(r.WaitStates.Total.Waits)
	for _, g := range tally.Read(jobtest.Open(t, path), s).Groups {
		x.regions += float64(g.Calls)
		x.regionTime += float64(g.Total)
	}
	for _, n := range matrix.Read(jobtest.Open(t, path), s).Networks {
		x.transfers += float64(n.Total.Bytes)
	}
	x.causes = r.Causes.Waited + r.Causes.StartUp
	return x
}

// Wherever a run is divided, its parts add up to the whole, also if the members of an operation begin it on different
// sides.
func TestTheHalvesOfARunAreTheRun(t *testing.T) {
	for name, path := range jobs(t) {
		want := sumsOf(t, path, nil)
		divided := 0
		for at := 5; at < 900; at += 37 {
			when := fmt.Sprintf("%dus", at)
			before, errBefore := selection.Resolve(jobtest.Open(t, path), selection.Spec{To: when})
			after, errAfter := selection.Resolve(jobtest.Open(t, path), selection.Spec{From: when})
			if errBefore != nil || errAfter != nil {
				continue // there is nothing before it, or nothing after it
			}
			divided++
			a, b := sumsOf(t, path, before), sumsOf(t, path, after)
			got := sums{
				a.operations + b.operations, a.calls + b.calls, a.bytes + b.bytes, a.time + b.time, a.waited + b.waited,
				a.waits + b.waits,
				a.regions + b.regions, a.regionTime + b.regionTime, a.transfers + b.transfers, a.causes + b.causes,
			}
			near := cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) <= 1e-6*max(math.Abs(x), math.Abs(y)) })
			testkit.Equal(t, cmp.Diff(want, got, cmp.AllowUnexported(sums{}), near), "", "%s, at %s:\n", name, when)
		}
		testkit.Check(t, divided >= 5, "%s was divided at %d places", name, divided)
	}
}

// Ranks restrict the rows; times of operations still include all members.
func TestRanksRestrictRowsAndNotFacts(t *testing.T) {
	path := jobtest.WithWaits(t)
	all, some := reportOf(t, path, nil), reportOf(t, path, selected(t, path, selection.Spec{Ranks: "1"}))
	n := len(some.WaitStates.Ranks)
	testkit.Require(t, n == 1 && len(some.Waits.Ranks) == 1, "%d rows of ranks", n)
	testkit.Same(t, text(t, all.WaitStates.Ranks[1]), text(t, some.WaitStates.Ranks[0]))
	for _, o := range some.Operations {
		for _, of := range all.Operations {
			testkit.Check(t, o.Operation != of.Operation || o.Size != of.Size || o.Operation == "Send" ||
				o.Operation == "Recv" || o.Root != nil || o.Time == of.Time, "%s took %v, among all ranks %v",
				o.Operation, o.Time, of.Time)
		}
	}
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	path := jobtest.WithKernels(t)
	for _, c := range []struct {
		spec selection.Spec
		want string
	}{
		{selection.Spec{Comm: "none"}, "there is no such communicator; there are second, world"},
		{selection.Spec{Ranks: "5"}, "there is no rank 5, the job has ranks 0-1"},
		{selection.Spec{Phase: "step"}, "the program marked no phases"},
		{selection.Spec{From: "1h"}, "no operation begins in that time: the first begins after"},
		{selection.Spec{From: "2s", To: "1s"}, "nothing is between them"},
		{selection.Spec{From: "soon"}, `"soon" is not a time`},
		{selection.Spec{Ranks: "3-1"}, `"3-1" is not a list of ranks`},
	} {
		_, err := selection.Resolve(jobtest.Open(t, path), c.spec)
		testkit.Check(t, err != nil && strings.Contains(err.Error(), c.want), "%s: %v, not %s", c.spec.String(), err,
			c.want)
	}
}

// Points in time are accepted in all the forms in which outputs show them.
func TestTimesAreReadAsTheyAreShown(t *testing.T) {
	path := jobtest.WithKernels(t)
	a := jobtest.Open(t, path)
	begin := uint64(reportOf(t, path, nil).Summary.Begin)
	for _, at := range []string{"300us", "0.0003s", "0.000300 s", fmt.Sprintf("@%dns", begin+300_000)} {
		s := testkit.Value(selection.Resolve(a, selection.Spec{From: at}))(t)
		d := s.Describe()
		testkit.Check(t, *d.From == 300_000 && d.To == nil, "%s is %d ns after the begin", at, *d.From)
	}
}

// withPhases makes a job of three steps on two ranks, at different times, with two operations in each.
func withPhases(t *testing.T) string {
	at := func(us int) uint64 { return jobtest.T0 + uint64(us)*jobtest.Microsecond }
	return jobtest.Make(t, 2, 1, func(r int, p *shardtest.Process) {
		world, thread := p.World(), p.Writer(0)
		p.AllReduce(world, at(10+r), at(20), 100)
		for i := range 3 {
			step := p.Region(fmt.Sprint("step ", i+1), regions.GroupApplication, otf2.RegionRoleCode)
			p.Shard.Regions[step].Paradigm = otf2.ParadigmUser
			begin := 200*(i+1) + 100*r
			testkit.Must(t, thread.Enter(otf2.Timestamp(at(begin)), nil, step))
			p.AllReduce(world, at(begin+10), at(200*(i+1)+120), 100)
			p.AllReduce(world, at(200*(i+1)+130+r), at(200*(i+1)+140), 100)
			testkit.Must(t, thread.Leave(otf2.Timestamp(at(200*(i+1)+150)), nil, step))
		}
		p.Destroy(world, at(1000))
	})
}

func TestPhasesAreSelected(t *testing.T) {
	path := withPhases(t)
	for phase, want := range map[string]float64{"step *": 6, "step *:1": 2, "step 2": 2, "step *:3": 2} {
		got := sumsOf(t, path, selected(t, path, selection.Spec{Phase: phase})).operations
		testkit.Check(t, got == want, "%s has %v operations, not %v", phase, got, want)
	}
	_, err := selection.Resolve(jobtest.Open(t, path), selection.Spec{Phase: "step *:99"})
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "the most that one has is 3"), "%v", err)
	_, err = selection.Resolve(jobtest.Open(t, path), selection.Spec{Phase: "epoch"})
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "there are step 1, step 2, step 3"), "%v", err)
}

// MPI messages are selected by their begin, whatever their tags: messages with different tags form different
// sequences.
func TestMessagesOfSeveralTagsAreSelected(t *testing.T) {
	a := testkit.Value(otf2.Open("../../../tests/jobtest/testdata/scorep-mpi/traces.otf2",
		&otf2.ReadOptions{Nanoseconds: true}))(t)
	defer a.Close()
	type message struct {
		comm     otf2.CommRef
		src, dst int
		ordinal  uint64
	}
	of := func(s *selection.Selection) map[message]otf2.Timestamp { // begin of the earlier end
		all := make(map[message]otf2.Timestamp)
		_, err := operations.EachPart(a, s, analysis.Slice{}, func(p *operations.Part) error {
			if p.Peer < 0 {
				return nil
			}
			m := message{p.Comm, p.Rank, p.Peer, p.Ordinal}
			if p.Function != "Send" {
				m.src, m.dst = p.Peer, p.Rank
			}
			if begin, known := all[m]; !known || p.Begin < begin {
				all[m] = p.Begin
			}
			return nil
		})
		testkit.Require(t, err == nil, "%v", err)
		return all
	}
	all, tags := of(nil), make(map[uint64]bool)
	for m := range all {
		tags[m.ordinal>>32] = true
	}
	testkit.Require(t, len(tags) >= 2, "the messages have %d tags", len(tags))
	const steps = 10
	chosen := 0
	begin, length := a.Defs.Clock.Offset, a.Defs.Clock.Length
	for step := range uint64(steps) {
		at := func(step uint64) string { return fmt.Sprintf("@%dns", begin+step*length/steps) }
		got := make(map[message]otf2.Timestamp)
		// Otherwise there is no operation.
		if s, err := selection.Resolve(a, selection.Spec{From: at(step), To: at(step + 1)}); err == nil {
			got = of(s)
		}
		for m, t0 := range all {
			inside := uint64(t0)-begin >= step*length/steps && uint64(t0)-begin < (step+1)*length/steps
			_, chosen := got[m]
			testkit.Check(t, chosen == inside, "step %d: a message of tag %d that begins at %d of %d is chosen: %t",
				step, m.ordinal>>32, uint64(t0)-begin, length, chosen)
		}
		chosen += len(got)
	}
	testkit.Check(t, chosen == len(all), "%d messages are chosen, there are %d", chosen, len(all))
}
