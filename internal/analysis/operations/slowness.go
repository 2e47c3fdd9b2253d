// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/transfers"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// slownessKinds are what slow links and GPUs are to a verdict.
var slownessKinds = map[transfers.Kind]verdict.Kind{transfers.Link: verdict.SlowTransfer,
	transfers.GPU: verdict.GPULate}

// slowCauses are those that package causes passes on.
var slowCauses = map[transfers.Kind]causes.Kind{transfers.Link: causes.Link, transfers.GPU: causes.Moving}

// slow tells the verdict of the links and GPUs whose transfers were slow. Where an operation takes longer, others wait
// for its members later.
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

// inTurns reports whether a GPU was slow no longer than the turns of others that work on it explain: it may have been
// theirs in each step.
func inTurns(f *transfers.Finding, sharing causes.Sharing) bool {
	return f.Kind == transfers.GPU && sharing.Explains(f.Rank, f.Took-f.Usual, uint64(math.Ceil(f.Steps)))
}
