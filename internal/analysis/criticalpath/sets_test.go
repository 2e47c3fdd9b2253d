// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Ranks of a host that are slow together are named together, unless one of them explains it, or others are named.
func TestSetsAreNamed(t *testing.T) {
	const replicas, steps = 8, 12
	host := []int{4, 5, 6, 7}
	from := func(first int) func(rank int) uint64 {
		return func(rank int) uint64 { return uint64(rank / first * 70) }
	}
	node1, rank7, stage1, nobody := from(4), from(7), from(8), from(2*replicas)
	for _, c := range []struct {
		name    string
		stages  int
		slow    func(rank int) uint64
		named   []int // culprits of the verdict
		stopped bool  // the job stopped because of them
		want    []int
		text    string
	}{
		{"a host", 1, node1, nil, false, host, "Ranks 4-7 on node1 together made the others wait: they " +
			"caused 100 % of 18.5 µs waited, summed over 8 ranks. None of them stands out from the rest. Who?"},
		{"a host of which two ranks are named", 1, node1, []int{4, 6}, false, host,
			"Ranks 4-7 on node1 together made the others wait: they caused 100 % of 18.5 µs waited, summed over 8 " +
				"ranks. Nobody. Who?"},
		{"one of its ranks", 1, rank7, nil, false, nil, ""},
		{"one of it stopped the job", 1, node1, []int{4}, true, nil, ""},
		{"a rank elsewhere is named", 1, node1, []int{1}, false, nil, ""},
		{"all of it are named", 1, node1, host, false, nil, ""},
		{"a stage, compared with one other", 2, stage1, nil, false, nil, ""},
		{"a stage, compared with two others", 3, from(16), nil, false, []int{16, 17, 18, 19, 20, 21, 22, 23},
			"Ranks 16-23, which do the same work, together made the others wait: they caused 92 % of 73.4 µs waited, " +
				"summed over 24 ranks. No others do this work; whether they are slow or have more to do is not " +
				"known. None of them stands out from the rest. Who?"},
		{"a stage that differs from the next as that does from a third", 3, from(8), nil, false, nil, ""},
		{"a replica", 3, func(rank int) uint64 { return uint64(rank % replicas / 7 * 70) }, nil, false, []int{7, 15, 23},
			"Ranks 7,15,23, which work with each other, together made the others wait: they caused 83 % of 107 µs " +
				"waited, summed over 24 ranks. None of them stands out from the rest. Who?"},
		{"nobody", 1, nobody, nil, false, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := stages(c.stages, replicas, steps, func(rank, _ int) uint64 { return c.slow(rank) }).play()
			p.perHost = 4
			v := &verdict.Verdict{Text: "Nobody. Who?"}
			for _, rank := range c.named {
				v.Culprits = append(v.Culprits,
					verdict.Culprit{Rank: rank, Kind: verdict.HostLate, Worst: &verdict.Worst{}, Stopped: c.stopped})
			}
			r := p.resultOf(v)
			if c.want == nil {
				testkit.Check(t, v.Set == nil, "%+v is named", v.Set)
				return
			}
			testkit.Require(t, v.Set != nil, "no set is named: %+v", r.WhatIf)
			testkit.Check(t, slices.Equal(v.Set.Ranks, c.want) && v.Text == c.text, "ranks %v: %s", v.Set.Ranks, v.Text)
			shown := 0
			for i := range r.WhatIf {
				w := &r.WhatIf[i]
				shown += map[bool]int{true: 1}[(w.Change == FasterSet || w.Change == FasterRank) && !r.Covered(w)]
			}
			testkit.Check(t, shown == 1, "%d gains of ranks are not part of the set's", shown-1)
		})
	}
}

// A set is not named if a rank of it, named already, saves as much alone.
func TestRivals(t *testing.T) {
	set := WhatIf{Change: FasterRole, Ranks: []int{0, 1}, Gain: 90}
	for gain, want := range map[uint64]bool{59: false, 61: true} {
		got := set.rivals(&WhatIf{Change: FasterRank, Rank: 1, Gain: gain}, true)
		testkit.Check(t, got == want, "rank 1 alone saves %d of 90: rival %v", gain, got)
	}
}

// If no gain of the named ranks is left while no cause is known for much of the waiting, gains are not known.
func TestGainsInDoubt(t *testing.T) {
	for _, c := range []struct {
		unknown float64
		rows    []WhatIf
		want    string
	}{
		{0.56, nil, "for 56 % of the waiting, no cause is known"},
		{0.56, []WhatIf{{Change: FasterRank, Rank: 2, Gain: 1}}, ""},
		{0.56, []WhatIf{{Change: FasterSet, Rank: -1, Gain: 1}}, ""},
		{0.1, nil, ""},
	} {
		r := Result{WhatIf: c.rows}
		r.AddConfidence(&verdict.Verdict{Unknown: c.unknown,
			Culprits: []verdict.Culprit{{Rank: 2, Kind: verdict.HostLate, Worst: &verdict.Worst{}}}})
		testkit.Equal(t, r.GainsNotKnown, c.want, "%.2f unknown, %d rows: why gains are not known", c.unknown,
			len(c.rows))
	}
}

// Both ends of a slow link come late to what follows, and are not named together for it.
func TestSetsBesideALink(t *testing.T) {
	p := stages(3, 8, 12, func(rank, _ int) uint64 { return uint64(rank % 8 / 7 * 70) }).play()
	peer := 15
	v := &verdict.Verdict{Text: "Rank 7.", Culprits: []verdict.Culprit{{Rank: 7, Peer: &peer, Kind: verdict.SlowTransfer}}}
	p.resultOf(v)
	testkit.Check(t, v.Set == nil, "%+v is named", v.Set)
}
