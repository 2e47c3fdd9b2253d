// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/sequence"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A rank that lacks what is in front of its last operation and what is behind it is named for both.
func TestHolesThatFollowEachOther(t *testing.T) {
	for ranks := 2; ranks < 40; ranks++ {
		tracks := make([]track, ranks)
		for i := range tracks {
			tracks[i] = track{rank: i, of: sequence.Sequence{Count: 9, Numbered: true, Holes: []sequence.Hole{{To: 8}}}}
		}
		tracks[ranks/2].of = sequence.Sequence{Count: 8, Numbered: true, Holes: []sequence.Hole{{To: 8}}}
		all := new(Communicator).lacking("AllReduce", tracks)
		testkit.Check(t, len(all) == 1 && strings.HasSuffix(all[0].Detail, "lacks them"), "%d ranks: %v", ranks, all)
	}
}
