// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/commid"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// TestGPUsThatCUDADoesNotTell: ranks of one communicator are on different GPUs, and so are those of all children of one
// split; a rank is where the same rank of an equal communicator was.
func TestGPUsThatCUDADoesNotTell(t *testing.T) {
	const world = 0x1234_5678_9abc_def0
	split := func(count, color uint32) uint64 { return commid.Child(world, commid.Birth{Count: count, Color: color}) }
	type rank struct {
		id           uint64
		nranks, rank int
	}
	worldRanks := []rank{{world, 4, 3}, {world, 4, 0}, {world, 4, 1}, {world, 4, 2}}
	for _, c := range []struct {
		name string
		made []rank // the world's behind them
		want []int
	}{
		{"another communicator of as many", []rank{{7, 4, 0}, {7, 4, 1}, {7, 4, 2}, {7, 4, 3}}, []int{1, 2, 3, 0}},
		{"one of fewer", []rank{{7, 2, 1}, {7, 2, 0}}, []int{0, 1}},
		{"children of a split", []rank{{split(1, 1), 2, 0}, {split(1, 0), 2, 0}, {split(1, 1), 2, 1},
			{split(1, 0), 2, 1}}, []int{1, 2, 3, 0}},
		{"two splits into the same colors", []rank{
			{split(1, 1), 2, 0}, {split(1, 1), 2, 1}, {split(1, 0), 2, 0}, {split(1, 0), 2, 1},
			{split(2, 0), 2, 1}, {split(2, 0), 2, 0}, {split(2, 1), 2, 0}, {split(2, 1), 2, 1},
		}, []int{1, 2, 3, 0, 0, 3, 1, 2}},
		{"a shrink", []rank{{commid.Child(world, commid.Birth{}), 3, 0}, {commid.Child(world, commid.Birth{}), 3, 2}},
			[]int{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, 2)
			var got []int
			for i, r := range append(worldRanks, c.made...) {
				s.m.Comm(i+1, description.Comm{ID: r.id, NRanks: r.nranks, Rank: r.rank}, description.GPU{Device: -1})
				if i >= len(worldRanks) {
					got = append(got, s.p.Comms[i+1].GPU-s.p.Comms[1].GPU)
				}
			}
			expectSame(t, "GPUs", c.want, got)
		})
	}
}

// What placing a communicator rank takes does not grow with the number of others, related or not, and nothing is kept
// of those that are gone.
func TestManyCommunicatorsOfUnknownGPUs(t *testing.T) {
	const world, most = 0x1234_5678_9abc_def0, 1 << 14
	for name, id := range map[string]func(i uint32) uint64{
		"inits":  func(i uint32) uint64 { return uint64(i)*0x9e3779b97f4a7c15 | 1 },
		"splits": func(i uint32) uint64 { return commid.Child(world, commid.Birth{Count: i, Color: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, 2)
			k := &s.m.ranks.family
			n := 1
			announce := func(id uint64) {
				for rank := range 2 {
					s.m.Comm(n, description.Comm{ID: id, NRanks: 2, Rank: rank}, description.GPU{Device: -1})
					n++
				}
			}
			announce(world)
			for i := range uint32(most) {
				announce(id(i + 1))
				gpus := [2]int{s.p.Comms[n-2].GPU, s.p.Comms[n-1].GPU}
				testkit.Require(t, gpus == [2]int{1, 2}, "communicator %d is on GPUs %v", i, gpus)
			}
			limit := uint64(maxTries + maxSplits + most*maxParents*(1+maxSkipped))
			testkit.Check(t, k.tries <= limit, "%d splits were looked at, at most %d should be", k.tries, limit)
			if n := len(k.places); n > 2+most {
				t.Errorf("%d places", n)
			}
			for i := range n {
				s.m.finalizeComm(micros(10), s.m.ranks.all[i])
			}
			s.m.ranks.removeClosed()
			expectCount(t, "communicators and places are kept", len(k.instances)+k.alive.Len()+len(k.siblings)+len(k.places), 0)
		})
	}
}
