// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// readTimeline reads an archive, and writes its page into nowhere.
func readTimeline(t *testing.T, a *otf2.Archive) (*Data, *head, collector) {
	t.Helper()
	d := testkit.Value(Read(a, nil))(t)
	t.Cleanup(func() { d.Close() })
	var all collector
	p := testkit.Value(d.write(&all, nil))(t)
	return d, d.head(p, new(Options)), all
}

// lateRun is a run in which rank 2 does more by itself.
func lateRun(t *testing.T) string {
	return jobtest.MakeRun(t, 7, 20, func(_ *jobtest.RunKind, rank int, _, _, late *float64) {
		if rank == 2 {
			*late += 400_000
		}
	})
}

// The path on the page is one line through the run, and what it is made of is what the report says.
func TestPathIsTheReports(t *testing.T) {
	for name, anchor := range map[string]string{"calls": lateRun(t), "waits": jobtest.WithWaits(t)} {
		t.Run(name, func(t *testing.T) {
			d, h, all := readTimeline(t, jobtest.Open(t, anchor))
			r := d.report.CriticalPath
			testkit.Require(t, r != nil && h.Path != nil && h.Path.Count != 0, "no path: %+v, on the page %+v", r,
				h.Path)
			activities, operations := make(map[string]uint64), make(map[string]uint64)
			ranks := make(map[string]uint64)
			at := uint64(0)
			for k := range h.Path.Starts {
				u := unpack(t, all[h.Path.Block+k])
				c := u.columns(3)
				testkit.Require(t, at == h.Path.Starts[k],
					"block %d begins at %d, the one before ends at %d", k, h.Path.Starts[k], at)
				for c[0].more() {
					length, rank, what := c[0].next(), int(c[1].signed())-1, h.Path.What[c[2].next()]
					at += length
					activities[what.Activity] += length
					switch {
					case what.Activity == criticalpath.Operation.String():
						comm := ""
						if what.Comm >= 0 {
							comm = h.Comms[what.Comm].Name
						}
						operations[comm+" "+what.Operation] += length
					case slices.ContainsFunc(r.Ranks, func(row criticalpath.RankRow) bool {
						return row.Activity == what.Activity
					}):
						ranks[fmt.Sprint(rank, what.Activity)] += length
					}
				}
			}
			testkit.Check(t, at == r.Length-r.After, "the path ends at %d of %d", at, r.Length)
			for _, row := range r.Activities {
				testkit.Check(t, activities[row.Activity] == row.Time,
					"%s: %d ns on the page, %d in the report", row.Activity, activities[row.Activity], row.Time)
			}
			testkit.Check(t, activities[criticalpath.StartUp.String()] == r.StartUp &&
				activities[criticalpath.Unknown.String()] == r.Unknown,
				"start-up and unknown: %v, in the report %d and %d", activities, r.StartUp, r.Unknown)
			for _, row := range r.Ranks {
				testkit.Equal(t, ranks[fmt.Sprint(row.Rank, row.Activity)], row.Time,
					"%s, %s: ns on the page", row.Name, row.Activity)
			}
			for _, row := range r.Operations {
				testkit.Equal(t, operations[row.Communicator+" "+row.Operation], row.Time,
					"%s on %s: ns on the page", row.Operation, row.Communicator)
			}
		})
	}
}

// Steps are found behind each other however many there are, and of a part of the run there is no path.
func TestPathOfManySteps(t *testing.T) {
	var keep temp
	p := &pathSteps{spool: spool{temp: &keep}, origin: 50}
	defer p.spool.close()
	const steps = 20_000
	before, dead := uint64(0), uint64(0)
	for i := range uint64(steps) {
		at := otf2.Timestamp(100 + i*20)
		before = p.Step(&criticalpath.Step{Before: before, Rank: int32(i % 7), What: int32(criticalpath.Operation),
			Start: at, In: 15, Own: [4]uint64{5}})
		dead = p.Step(&criticalpath.Step{Before: dead, Rank: 9, Start: at, In: 15})
	}
	p.findSteps(&criticalpath.Result{Trace: &criticalpath.Trace{Last: criticalpath.Step{Before: before, Rank: 1,
		Start: 100 + steps*20, In: 7}, Since: 100}})
	testkit.Require(t, keep.failed() == nil && len(p.own) == steps && p.count == 2+2*steps,
		"%d steps, %d segments: %v", len(p.own), p.count, keep.failed())
	at := p.origin
	for s := range p.segments() {
		testkit.Require(t, s.start == at && s.rank != 9,
			"a segment of rank %d begins at %d, the one before ends at %d", s.rank, s.start, at)
		at += otf2.Timestamp(s.length)
	}
	testkit.Equal(t, at, 100+steps*20+7, "the path ends at")
}

// The waiting that ranks caused is on the page, operation by operation: in all what the windows of the report have.
func TestChargesAreTheReports(t *testing.T) {
	d, h, all := readTimeline(t, jobtest.Open(t, lateRun(t)))
	testkit.Require(t, h.Charges != nil, "no rank caused waiting")
	by, kinds := make(map[int]uint64), make(map[verdict.Kind]uint64) // by rank; of rank 2 by in what it was late
	for k := range h.Charges.Starts {
		c := unpack(t, all[h.Charges.Block+k]).columns(6)
		for c[2].more() {
			c[0].difference()
			c[1].next()
			for range c[2].next() {
				rank, kind, ns := int(c[3].next())-1, h.Charges.Kinds[c[4].next()], c[5].next()
				if rank == 2 {
					kinds[kind] += ns
				}
				by[rank] += ns
			}
		}
	}
	back := uint64(0)
	for _, w := range d.report.WaitStates.OverTime {
		if w.Rank == 2 {
			back += uint64(w.GoesBack)
		}
	}
	if own := by[2]; back == 0 || own+uint64(len(h.Charges.Starts)*chunk) < back || own > back*11/10 {
		t.Errorf("rank 2 caused %d ns, %d in the windows where it is the most", own, back)
	}
	sum := uint64(0)
	for i, ns := range h.Ranks[2].BackBy {
		sum += ns
		if got := kinds[h.Charges.Kinds[i]]; got < ns*9/10 || got > ns*11/10+chunk {
			t.Errorf("rank 2 caused %d ns as it was %s, in the report %d", got, h.Charges.Kinds[i], ns)
		}
	}
	testkit.Check(t, sum+2 >= h.Ranks[2].Back && sum <= h.Ranks[2].Back+2 && kinds[verdict.HostLate] != 0 &&
		kinds[verdict.GPULate] != 0, "of %d ns that rank 2 caused %v are told apart, in all %d", h.Ranks[2].Back, kinds,
		sum)
	testkit.Check(t, h.Ranks[2].Back != 0 && by[2] >= h.Ranks[2].Back*9/10 && by[2] <= h.Ranks[2].Back*11/10,
		"rank 2 caused %d ns, in the report %d", by[2], h.Ranks[2].Back)
}

// An operation for which many are charged keeps those that are charged the most, and the sum.
func TestManyAreCharged(t *testing.T) {
	s := newStore(keptBytes)
	defer s.Close()
	c := &charges{sorterBuffer: sorterBuffer{to: s.chargesOf},
		since: func(t otf2.Timestamp) uint64 { return uint64(t) }}
	for _, begin := range []otf2.Timestamp{200, 100} {
		for r := range 100 {
			c.addCharge(r, causes.GPU, begin, begin+10, float64(r))
			c.addCharge(r, causes.GPU, begin, begin+10, 1)
		}
	}
	c.storeCharges()
	c.flush()
	s.chargesOf.finish()
	var begins []uint64
	for m := s.chargesOf.sorted(); m.more; m.next() {
		begins = append(begins, m.a)
		length, n := m.entry.readNumber(), m.entry.readNumber()
		sum, least := uint64(0), uint64(1000)
		for range n {
			rank, kind, ns := m.entry.readNumber(), m.entry.readNumber(), m.entry.readNumber()
			testkit.Check(t, rank <= 0 || chargedKinds[kind] == verdict.GPULate, "rank %d has kind %d", rank-1, kind)
			sum += ns
			if rank > 0 {
				least = min(least, rank-1)
			}
		}
		testkit.Check(t, length == 10 && n == mostCharged && sum == 100*101/2 && least == 100-mostCharged+1,
			"%d ranks of %d to %d ns, in all %d", n, least, length, sum)
	}
	testkit.Check(t, slices.Equal(begins, []uint64{100, 200}), "operations begin at %d", begins)
}

// Phases have all ranks that ran through them; where a name comes again it is another one.
func TestPhasesOfRanks(t *testing.T) {
	const begin = t0
	a := jobtest.Open(t, jobtest.Make(t, 2, 1, func(r int, p *shardtest.Process) {
		p.AllReduce(p.World(), begin+10, begin+20, 1)
		thread := p.Writer(0)
		phase := func(name string, from, to uint64) {
			region := p.Region(name, regions.GroupApplication, otf2.RegionRoleCode)
			p.Shard.Regions[region].Paradigm = otf2.ParadigmUser
			for _, err := range []error{thread.Enter(otf2.Timestamp(begin+from), nil, region),
				thread.Leave(otf2.Timestamp(begin+to), nil, region)} {
				testkit.Must(t, err)
			}
		}
		own := uint64(r) * 5
		phase("step 1", 100+own, 150+3*own)
		phase("step 2", 200, 250)
		phase("eval", 260, 270)
		phase("eval", 280, 290)
		phase("step 1", 300, 350) // the next epoch
		if r == 1 {
			phase("step 2", 400, 450)
		}
	}))
	_, h, _ := readTimeline(t, a)
	var got []string
	for _, p := range h.Phases {
		got = append(got, fmt.Sprintf("%s %d-%d %d ranks %d ns, most %d of rank %d", p.Name, p.From-h.Phases[0].From,
			p.To-h.Phases[0].From, p.Count, p.Time, p.Most, p.Slowest))
	}
	want := []string{
		"step 1 0-65 2 ranks 110 ns, most 60 of rank 1", "step 2 100-150 2 ranks 100 ns, most 50 of rank 0",
		"eval 160-170 2 ranks 20 ns, most 10 of rank 0", "eval 180-190 2 ranks 20 ns, most 10 of rank 0",
		"step 1 200-250 2 ranks 100 ns, most 50 of rank 0", "step 2 300-350 1 ranks 50 ns, most 50 of rank 1",
	}
	testkit.Check(t, slices.Equal(got, want), "phases:\n%q\nwant\n%q", got, want)
	var rows uint64
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	for _, row := range report.Phases {
		rows += row.Count
	}
	for _, p := range h.Phases {
		rows -= p.Count
	}
	testkit.Check(t, rows == 0, "the report has %d phases more", int64(rows))
}
