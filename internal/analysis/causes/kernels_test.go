// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Kernels are separated at the return of each call; of many calls between two operations, the earliest are merged.
func TestKernelsSinceACall(t *testing.T) {
	g := new(gpu)
	s := &stream{gpu: g}
	g.streams = append(g.streams, s)
	run := func(region otf2.RegionRef, begin, end otf2.Timestamp) {
		s.enter(&facts.Region{Region: region, Begin: begin})
		s.leave(&facts.Region{Region: region, Begin: begin, End: end})
	}
	run(1, 0, 10) // before the first operation
	g.restart(10)
	const calls = 4 * mostSpans
	for i := range otf2.Timestamp(calls) {
		g.cut(100 * (i + 1))
		run(1, 100*(i+1)+10, 100*(i+1)+30)
		run(otf2.RegionRef(2+i%3), 100*(i+1)+30, 100*(i+1)+35)
	}
	testkit.Check(t, len(g.spans) <= mostSpans, "%d spans are kept", len(g.spans))
	end := otf2.Timestamp(100*calls + 50)
	for _, c := range []struct{ from, least, most uint64 }{
		{10, 20 * calls, 20 * calls}, {100 * (calls - 9), 200, 200}, {100*calls + 1, 20, 20},
		{100 * 3, 20 * (calls - 2), 20 * calls},
	} {
		k := g.ran(otf2.Timestamp(c.from), end)
		testkit.Check(t, k[0].Region == 1 && k[0].Time >= c.least && k[0].Time <= c.most,
			"since %d: %+v, want %d to %d", c.from, k, c.least, c.most)
	}
	s.enter(&facts.Region{Region: 9, Begin: end})
	k := g.ran(otf2.Timestamp(100*calls+1), end+7)
	testkit.Check(t, k[1] == (Kernel{9, 7}), "of one that runs: %+v", k)
	g.restart(end + 7)
	k = g.ran(end+7, end+9)
	testkit.Check(t, *k == (Kernels{{9, 2}}), "after an operation: %+v", k)
}

// If not all kernels are distinguished, the excess of a kernel never exceeds what it can have been.
func TestKernelsBeyondOthers(t *testing.T) {
	few, many := Kernels{{1, 50}, {2, 30}}, Kernels{}
	for i := range many {
		many[i] = Kernel{otf2.RegionRef(10 + i), uint64(100 - i)}
	}
	for _, c := range []struct {
		name        string
		late, early *Kernels
		want        Kernels
	}{
		{"not known", nil, &few, Kernels{}},
		{"the other's are not known", &few, nil, few},
		{"the same", &few, &few, Kernels{{1, 0}, {2, 0}}},
		{"longer", &few, &Kernels{{2, 10}, {1, 45}}, Kernels{{2, 20}, {1, 5}}},
		{"left out of the other's", &Kernels{{1, 95}}, &many, Kernels{{1, 2}}},
	} {
		got := c.late.beyond(c.early)
		for i := range got {
			if got[i].Time != c.want[i].Time || got[i].Time > 0 && got[i].Region != c.want[i].Region {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
				break
			}
		}
	}
}
