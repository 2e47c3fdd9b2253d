// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/transfers"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// slownessKinds maps slow links and GPUs to kinds of a verdict.
var slownessKinds = map[transfers.Kind]verdict.Kind{transfers.Link: verdict.SlowTransfer,
	transfers.GPU: verdict.GPULate}

// slowCauses maps them to the kinds that package causes attributes.
var slowCauses = map[transfers.Kind]causes.Kind{transfers.Link: causes.Link, transfers.GPU: causes.Moving}

// slow lists the links and GPUs with slow transfers for the verdict. A longer operation makes others wait for its
// members later.
func (r *Report) slow(name func(rank int) string, sharing causes.Sharing) (all []verdict.Slow) {
	for i := range r.WaitStates.Slow.Rows {
		f := &r.WaitStates.Slow.Rows[i].Finding
		s := verdict.Slow{
			Rank: f.Rank, Kind: slownessKinds[f.Kind], Cost: f.Cost, Delay: f.Delay,
			Confidence: f.Confidence(), Pattern: f.Pattern(), Because: f.Because(name), Turns: inTurns(f, sharing),
		}
		for _, part := range f.Parts {
			s.Inherited += part.Of * r.Causes.Ranks[part.Rank].Costs[slowCauses[f.Kind]]
		}
		if peer := f.Peer; peer != transfers.Nobody {
			s.Peer = &peer
		}
		all = append(all, s)
	}
	return all
}

// inTurns reports whether a GPU was not slower than turn-taking with the other ranks on it explains: in each step, it
// may have been their turn.
func inTurns(f *transfers.Finding, sharing causes.Sharing) bool {
	return f.Kind == transfers.GPU && sharing.Explains(f.Rank, f.Took-f.Usual, uint64(math.Ceil(f.Steps)))
}
