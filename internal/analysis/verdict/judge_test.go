// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// evidence makes the evidence of n ranks on one communicator. To each operation one rank was late by 10 ms, in the
// order of who.
func evidence(n, operations int, who ...int) *Evidence {
	c := causes.Comm{Ranks: make([]int32, n), Calls: map[string]uint64{"AllReduce": uint64(operations)}}
	c.Led, c.Struck = make([][causes.Levels]uint32, n), make([][causes.Levels]float32, n)
	ev := &Evidence{Causes: &causes.Result{Ranks: make([]causes.Rank, n)}, Duration: uint64(operations) * 20e6,
		Compared: uint64(operations)}
	for i := range n {
		c.Ranks[i] = int32(i)
		ev.Ranks = append(ev.Ranks, Place{Name: fmt.Sprint("Rank ", i), Host: "node0"})
	}
	for k := range operations {
		r := who[k%len(who)]
		if r < 0 {
			continue
		}
		cost := 10e6 * float64(n-1)
		c.Struck[r][causes.Level(cost)]++
		c.Led[r][causes.Level(cost)]++
		rank := &ev.Causes.Ranks[r]
		rank.All = true
		rank.Costs[causes.Host] += cost
		rank.Delays[causes.Host] += 10e6
		rank.Worked += 10e6
		rank.Heaviest = cost
		ev.Causes.Waited += cost
		rank.Occurrences = append(rank.Occurrences,
			causes.Occurrence{Function: "AllReduce", Nth: uint64(k + 1), Late: 10e6, Called: 10e6, Cost: cost})
	}
	ev.Causes.Comms = []causes.Comm{c}
	return ev
}

// longer makes the evidence of ranks that waited because operations took longer on some of them, the third rank first.
func longer(on int) *Evidence {
	ev := evidence(4, 20, -1)
	ev.Causes.Waited = 600e6
	for i := range on {
		ev.Causes.Ranks[(2+i)%4].Costs[causes.Transfer] = 540e6 / float64(on)
	}
	return ev
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name     string
		evidence *Evidence
		culprits string // rank and pattern
		text     string // a part of it
	}{
		{"nobody waited", evidence(4, 20, -1), "", "nobody waited"},
		{"nothing can be compared", func() *Evidence { ev := evidence(4, 20, -1); ev.Uncompared = true; return ev }(),
			"",
			"Not known who made the others wait: no operation has comparable times on two ranks."},
		{"nothing can be compared, and something is lost",
			func() *Evidence { ev := evidence(4, 20, -1); ev.Uncompared, ev.Lost = true, 124; return ev }(), "",
			"It rests on what was recorded: 124 events are missing."},
		{"no operations", evidence(2, 0, -1), "",
			"Not known who made the others wait: no operation has comparable times on two ranks."},
		{"in turn", evidence(4, 40, 0, 1, 2, 3), "",
			"Nobody stands out: ranks waited 1.20 s in all, and the one that caused the most, Rank 0, caused 25 % of " +
				"it."},
		{"always the same", evidence(4, 20, 2), "2 always",
			"Rank 2 on node0 made the others wait: 100 % of 600 ms waited, summed over 4 ranks. " +
				"It called ncclAllReduce 10 ms after the others, " +
				"20 of 20 times, always."},
		{"every third", evidence(4, 60, -1, -1, 1), "1 every third call", "20 of 60 times, every third call."},
		{"two", evidence(5, 40, 1, -1, 3, -1), "1 every fourth call, 3 every fourth call",
			"So did Rank 3 on node0 (50 %). It called ncclAllReduce 10 ms after the others, 10 of 40 times, every " +
				"fourth call. Confidence: "},
		{"nobody works longer", func() *Evidence {
			ev := evidence(4, 20, 2)
			ev.Causes.Ranks[2].Worked = 0
			return ev
		}(), "", "Nobody stands out: ranks waited 600 ms in all, and the one that caused the most, Rank 2, caused " +
			"100 % of it."},
		{"most are late", evidence(8, 80, 0, 1, 2, 3), "", "Nobody stands out"},
		{"four times are not enough", evidence(8, 4, 5), "", "Nobody stands out"},
		{"so many operations, and one occasion", func() *Evidence {
			ev := evidence(8, 20, 5)
			ev.Causes.Comms[0].Struck[5] = [causes.Levels]float32{}
			ev.Causes.Comms[0].Struck[5][causes.Level(20*70e6)] = 1
			return ev
		}(), "", "Nobody stands out"},
		{"but for one occasion it is too little", func() *Evidence {
			ev := evidence(8, 20, 5)
			ev.Causes.Ranks[5].Heaviest = 0.95 * ev.Causes.Ranks[5].Cost()
			ev.Causes.Waited *= 2
			return ev
		}(), "", "Nobody stands out"},
		{"another one caused and worked as much", func() *Evidence {
			ev := evidence(8, 40, 5)
			o := &ev.Causes.Ranks[6]
			o.Costs, o.Worked = ev.Causes.Ranks[5].Costs, ev.Causes.Ranks[5].Worked
			return ev
		}(), "", "Nobody stands out"},
		{"another one worked as much, and caused less", func() *Evidence {
			ev := evidence(8, 40, 5)
			o := &ev.Causes.Ranks[6]
			o.Worked = ev.Causes.Ranks[5].Worked
			o.Costs[causes.Host] = ev.Causes.Ranks[5].Costs[causes.Host] / 3
			return ev
		}(), "", "Nobody stands out"},
		{"but for one occasion it worked too little", func() *Evidence {
			ev := evidence(4, 20, 2)
			r := &ev.Causes.Ranks[2]
			r.Costs[causes.Host], r.Delays[causes.Host], r.Heaviest, r.Worked, ev.Causes.Waited = 30e6, 10e6, 15e6, 3e6,
				100e6
			return ev
		}(), "", "Nobody stands out"},
		{"operations took longer on it, too", func() *Evidence {
			ev := evidence(4, 20, 2)
			ev.Causes.Ranks[2].Costs[causes.Transfer] = 601e6
			ev.Causes.Waited += 601e6
			return ev
		}(), "", "because of a slow link to it or for a reason of its own"},
		{"of two ranks often enough", evidence(2, 12, 1), "1 always", ""},
		{"longer on one, no transfers", longer(1), "",
			"Not known who made the others wait: 90 % of 600 ms waited, summed over 4 ranks, " +
				"was caused by operations that took longer on Rank 2 " +
				"than on others"},
		{"longer on all, no transfers", longer(4), "", "Nobody stands out"},
		{"longer on one, but transfers tell nothing",
			func() *Evidence { ev := longer(1); ev.Transfers = true; return ev }(), "", "Nobody stands out"},
		{"times of enqueueing alone", func() *Evidence {
			ev := evidence(2, 1, -1)
			ev.Enqueued, ev.Compared, ev.Untimed = 7, 0, "record with NCCL_OTF2_EVENTS=gpu"
			return ev
		}(), "", "only the times of enqueueing are known. Record with NCCL_OTF2_EVENTS=gpu."},
	} {
		v := Judge(c.evidence)
		var got []string
		for _, o := range v.Culprits {
			testkit.Check(t, o.Kind == HostLate && o.Confidence > 0.9 && o.Confidence <= 1, "%s: %+v", c.name, o)
			got = append(got, fmt.Sprint(o.Rank, " ", o.Pattern))
		}
		testkit.Check(t, strings.Join(got, ", ") == c.culprits && strings.Contains(v.Text, c.text) &&
			v.StandsOut == (len(got) > 0) && v.Culprits != nil, "%s: %v, %s", c.name, got, v.Text)
	}
}

// What stopped the job is stated first, unchanged and with its own confidence, also a stuck transfer: nobody was late,
// and there is no share of waiting.
func TestWhatStoppedTheJob(t *testing.T) {
	peer := 2
	stuck := Culprit{Rank: 1, Kind: SlowTransfer, Peer: &peer, Share: 1, Confidence: 0.95,
		Evidence: "a transfer from Rank 1 to Rank 2 has not come (for 31.0 s)", Stopped: true}
	for name, ev := range map[string]*Evidence{"nobody was late": evidence(4, 20, -1),
		"somebody was late": evidence(4, 20, 3)} {
		ev.Stuck = []Culprit{stuck}
		v := Judge(
			ev)
		testkit.Check(t, v.Text == "A transfer from Rank 1 to Rank 2 has not come (for 31.0 s). Confidence: 95.0 %." &&
			v.Culprits[0].Rank == 1, "%s: %s, %+v", name, v.Text, v.Culprits)
	}
}

// If waiting results from earlier waits and hardly any of it from what one of the ranks did, no share is stated.
func TestNobodyCausedAHundredth(t *testing.T) {
	ev := evidence(4, 20, -1)
	ev.Causes.Waited = 100e6
	ev.Causes.Ranks[1].Costs[causes.Host] = 0.9e6
	if v := Judge(
		ev); v.Text != "Nobody stands out: ranks waited 100 ms in all, and none caused as much as 1 % of it by "+
		"itself." {
		t.Error(v.Text)
	}
}

// A GPU that works slowly within operations and begins late is named once.
func TestOneNameForOneGPU(t *testing.T) {
	ev := evidence(4, 20, 2)
	r := &ev.Causes.Ranks[2]
	r.Costs[causes.GPU], r.Costs[causes.Host] = r.Costs[causes.Host], 0
	r.Delays[causes.GPU], r.Delays[causes.Host] = r.Delays[causes.Host], 0
	for i := range r.Occurrences {
		r.Occurrences[i].Called = 0
	}
	ev.Slow = []Slow{{Rank: 2, Kind: GPULate, Cost: 600e6, Delay: 200e6, Confidence: 1,
		Because: "It held transfers up."}}
	v := Judge(ev)
	testkit.Check(t, len(v.Culprits) == 1 && v.Culprits[0].Kind == GPULate && v.Culprits[0].Share == 1,
		"%+v", v.Culprits)
}

// A rank that holds others up by its transfers is not also named for being late, if that cost less: it leaves
// operations later than others.
func TestWhoTransfersSlowlyIsLate(t *testing.T) {
	for cost, want := range map[float64]int{1200e6: 1, 300e6: 2} {
		for _, end := range []int{2, 1} { // of the link
			ev, peer := evidence(4, 20, 2), 3-end
			ev.Slow = []Slow{{Rank: end, Peer: &peer, Kind: SlowTransfer, Cost: cost, Delay: 200e6, Confidence: 1,
				Because: "It held transfers up."}}
			if v := Judge(ev); len(v.Culprits) != want {
				t.Errorf("a link that cost %.0f ms, and 600 by lateness: %+v", cost/1e6, v.Culprits)
			}
		}
	}
}

// If the other host has run ahead of its GPU, a late call is stated by the begin of the operation: nobody waits before
// that.
func TestCalledLate(t *testing.T) {
	for _, c := range []struct {
		called float64
		want   string
	}{
		{10e6, "It called ncclAllReduce 10 ms after the others"},
		{12e6, "It called ncclAllReduce 12 ms after the others"},
		{900e6, "It called ncclAllReduce so late that this began 10 ms after the others"},
	} {
		ev := evidence(4, 20, 2)
		for i := range ev.Causes.Ranks[2].Occurrences {
			ev.Causes.Ranks[2].Occurrences[i].Called = c.called
		}
		if got := Judge(ev).Culprits[0].Evidence; got != c.want+", 20 of 20 times, always." {
			t.Errorf("called %g ns later: %q, want %q", c.called, got, c.want)
		}
	}
}

// A call that came as late as its GPU is not called timely, and a GPU may have been in the operation before.
func TestCalledInTime(t *testing.T) {
	const inTime = "Its GPU began ncclAllReduce 10 ms after the others, though it was called in time, 20 of 20 times, " +
		"always."
	for _, c := range []struct {
		called  float64
		mayWait int
		want    string
	}{
		{0, 0, inTime},
		{0, 9, inTime},
		{0, 10, inTime + inOperationBefore},
		{10e6, 0, "Its GPU began ncclAllReduce 10 ms after the others, 20 of 20 times, always."},
	} {
		ev := evidence(4, 20, 2)
		r := &ev.Causes.Ranks[2]
		r.Costs[causes.GPU], r.Costs[causes.Host] = r.Costs[causes.Host], 0
		for i := range r.Occurrences {
			r.Occurrences[i].Called, r.Occurrences[i].MayWait = c.called, i < c.mayWait
		}
		r.Delays[causes.GPU], r.Delays[causes.Host] = r.Delays[causes.Host], 0
		if v := Judge(ev); v.Culprits[0].Kind != GPULate || v.Culprits[0].Evidence != c.want {
			t.Errorf("%+v: %+v", c, v.Culprits[0])
		}
	}
}

// The verdict covers the waiting, and the time that slow links and GPUs held ranks up, once each; shares add up to no
// more than that.
func TestSharesAreOfWhatWasWaited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(t, "ranks")
		who := rapid.SliceOfN(rapid.IntRange(-1, n-1), 1, 12).Draw(t, "late")
		ev := evidence(n, rapid.IntRange(5, 60).Draw(t, "operations"), who...)
		waited, unknown := ev.Causes.Waited, rapid.Float64Range(0, 1e9).Draw(t, "unknown")
		ev.Causes.Unknown, ev.Causes.Waited = unknown, waited+unknown
		for range rapid.IntRange(0, 3).Draw(t, "slow") {
			s := Slow{Rank: rapid.IntRange(0, n-1).Draw(t, "whose"), Kind: SlowTransfer,
				Cost: rapid.Float64Range(0, 1e9).Draw(t, "cost"), Delay: 1e9, Confidence: 1}
			s.Inherited = rapid.Float64Range(0, 1e8).Draw(t, "elsewhere")
			ev.Causes.Ranks[s.Rank].Costs[causes.Link] += s.Inherited
			ev.Causes.Waited += s.Inherited
			ev.Slow = append(ev.Slow, s)
		}
		all := ev.Causes.Waited
		for i := range ev.Slow {
			all += ev.Slow[i].Cost
		}
		v := Judge(ev)
		sum := v.Unknown
		for i := range v.Culprits {
			c := &v.Culprits[i]
			testkit.Check(t, c.Share >= 0 && c.Share <= 1, "%+v", c)
			sum += c.Share
		}
		testkit.Check(t, math.Abs(float64(v.Waited)-all) <= 1 && sum <= 1+1e-9,
			"of %f waited %d, shares together %f", all, v.Waited, sum)
	})
}
