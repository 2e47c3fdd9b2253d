// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/experiment/commid"
)

// TestGPUsThatCUDADoesNotTell: ranks of one communicator are on different GPUs, and so are those of all children of one split; a rank is
// where the same rank of an equal communicator was.
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
		{"children of a split", []rank{{split(1, 1), 2, 0}, {split(1, 0), 2, 0}, {split(1, 1), 2, 1}, {split(1, 0), 2, 1}}, []int{1, 2, 3, 0}},
		{"two splits into the same colors", []rank{
			{split(1, 1), 2, 0}, {split(1, 1), 2, 1}, {split(1, 0), 2, 0}, {split(1, 0), 2, 1},
			{split(2, 0), 2, 1}, {split(2, 0), 2, 0}, {split(2, 1), 2, 0}, {split(2, 1), 2, 1},
		}, []int{1, 2, 3, 0, 0, 3, 1, 2}},
		{"a shrink", []rank{{commid.Child(world, commid.Birth{}), 3, 0}, {commid.Child(world, commid.Birth{}), 3, 2}}, []int{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, 2)
			var got []int
			for i, r := range append(worldRanks, c.made...) {
				s.m.Comm(i+1, experiment.Comm{ID: r.id, NRanks: r.nranks, Rank: r.rank}, experiment.GPU{Device: -1})
				if i >= len(worldRanks) {
					got = append(got, s.p.Comms[i+1].GPU-s.p.Comms[1].GPU)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("GPUs (want −, got +):\n%s", diff)
			}
		})
	}
}
