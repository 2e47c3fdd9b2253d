// SPDX-License-Identifier: Apache-2.0

package hang

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs/progress"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// In a process with several GPUs, an operation on one GPU does not keep another GPU from its own, as in the wait-for
// graph.
func TestMissingMembersAreInWhatTheirOwnGPUIsIn(t *testing.T) {
	process := &progress.Process{Name: "Rank 0", Ends: true}
	rank := func(gpu int, reached uint64, pending ...description.Pending) *progress.Rank {
		return &progress.Rank{
			Process: process, Reached: map[string]uint64{"AllReduce": reached}, Pending: pending,
			Parts: []progress.Part{{Shard: &description.Process{Comms: []description.Comm{{GPU: gpu}}}}},
		}
	}
	running := func(ordinal, since uint64) description.Pending {
		return description.Pending{Function: "AllReduce", Ordinal: ordinal, Since: since, State: "running"}
	}
	names := []string{"GPU 0", "GPU 1"}
	first := &progress.Communicator{Name: "first", Size: 2, Names: names,
		Ranks: []*progress.Rank{rank(0, 3, running(2, 10)), rank(1, 2)}}
	second := &progress.Communicator{Name: "second", Size: 2, Names: names,
		Ranks: []*progress.Rank{rank(0, 1, running(0, 5)), nil}}
	for _, tc := range []struct {
		name, instead string
		third         *progress.Rank
	}{
		{"another GPU's", "", rank(0, 8, running(7, 1))},
		{"its own", "AllReduce 7 on third", rank(1, 8, running(7, 1))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			third := &progress.Communicator{Name: "third", Size: 1, Names: names, Ranks: []*progress.Rank{tc.third}}
			j := &progress.Job{Processes: []*progress.Process{process},
				Communicators: []*progress.Communicator{first, second, third}}
			h := stuck(first, whatRanksDo(j))
			testkit.Require(t, h != nil && h.Ordinal == 2 && len(h.Members) == 2 && h.Members[1].State == "missing" &&
				h.Members[1].Instead == tc.instead, "%+v", h)
		})
	}
}
