// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"github.com/nccl-otf2/nccl-otf2/analysis/transfers"
	"github.com/nccl-otf2/nccl-otf2/analysis/verdict"
)

// slownessKinds are what slow links and GPUs are to a verdict.
var slownessKinds = map[transfers.Kind]verdict.Kind{transfers.Link: verdict.SlowTransfer, transfers.GPU: verdict.GPULate}

// slow tells the verdict of the links and GPUs whose transfers were slow. Where an operation takes longer it also ends later on some members than
// on others, who wait for them in the next one: each has the part of these waits that it has of the time by which operations were longer.
func (r *Report) slow(name func(rank int) string) (all []verdict.Slow) {
	inherited := r.Causes.Transfers()
	for i := range r.WaitStates.Slow.Rows {
		f := &r.WaitStates.Slow.Rows[i].Finding
		s := verdict.Slow{
			Rank: f.Rank, Kind: slownessKinds[f.Kind], Cost: f.Cost, Delay: f.Delay, Operations: f.Slow, Of: f.Operations,
			Inherited: min(f.Cost, inherited*f.Delay/max(r.WaitStates.Slow.Longer, f.Delay)), Confidence: f.Confidence(), Pattern: f.Pattern(), Because: f.Because(name),
		}
		if peer := f.Peer; peer != transfers.Nobody {
			s.Peer = &peer
		}
		all = append(all, s)
	}
	return all
}
