// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Ranks that share a GPU. Package causes separates the waiting that their turns explain; no rank is blamed for it.

// SharedGPU is a GPU, or a part of one, on which several ranks work at the same time.
type SharedGPU struct {
	Ranks []int  `json:"ranks"` // of the world, ascending
	Host  string `json:"host"`
	GPU   string `json:"gpu"` // as the archive names it
	UUID  string `json:"uuid"`
	// Share is the part of all waiting that the turns of these ranks explain, 0 to 1.
	Share float64 `json:"share"`
}

// shared returns the shared GPUs, with the share of waited that their turns explain.
func (ev *Evidence) shared(waited float64) []SharedGPU {
	all := slices.Clone(ev.Shared)
	for i := range all {
		g, ns := &all[i], 0.0
		for _, rank := range g.Ranks {
			ns += ev.Causes.Ranks[rank].Costs[causes.Turns]
		}
		for k := range ev.Slow {
			if s := &ev.Slow[k]; s.Turns && slices.Contains(g.Ranks, s.Rank) {
				ns += s.Cost + s.Inherited
			}
		}
		if waited > 0 {
			g.Share = min(1, max(0, ns/waited))
		}
	}
	return all
}

// besideTurns returns the part of a rank's cost by being late that remains if, each time, its host waited once for the
// others' turns on its GPU: hosts wait for earlier results, too. The application's kernels are not always recorded, so
// it is unknown when a host did.
func (ev *Evidence) besideTurns(rank int) float64 {
	cycle := 0.0
	for i := range ev.Shared {
		if g := &ev.Shared[i]; slices.Contains(g.Ranks, rank) {
			cycle = causes.Cycle(len(g.Ranks) - 1)
		}
	}
	cost, left := 0.0, 0.0
	for i := range ev.Causes.Ranks[rank].Occurrences {
		o := &ev.Causes.Ranks[rank].Occurrences[i]
		cost += o.Cost
		if o.Kind != causes.Host { // GPU lateness due to turns is not in these costs
			left += o.Cost
		} else if o.Late > cycle {
			left += o.Cost * (o.Late - cycle) / o.Late
		}
	}
	if cost <= 0 {
		return 1
	}
	return left / cost
}

// sharing returns the part of all waiting that turns explain.
func (v *Verdict) sharing() (share float64) {
	for i := range v.SharedGPUs {
		share += v.SharedGPUs[i].Share
	}
	return min(share, 1)
}

// stopped reports whether something stopped the job. The text then describes that.
func (v *Verdict) stopped() bool { return len(v.Culprits) > 0 && v.Culprits[0].Stops() }

// withSharing adds to a verdict's text that ranks share GPUs, if they do; without a text, that becomes the text. If
// MPS runs the processes concurrently, which is not recorded, there are no turns.
func (ev *Evidence) withSharing(v *Verdict, text string) string {
	if len(v.SharedGPUs) == 0 {
		return text
	}
	said, share := ev.whoShares(v.SharedGPUs), v.sharing()
	turns := "it runs them in turns"
	if len(v.SharedGPUs) > 1 {
		turns = "each runs its ranks in turns"
	}
	switch {
	case text == "":
		said += fmt.Sprintf(" Unless MPS is on, %s: that, and not a rank, explains %.0f %% of the %s of waiting.",
			turns, 100*share, units.Time(float64(v.Waited)))
	case share >= leastSaid:
		said += fmt.Sprintf(" Unless MPS is on, %s: that explains %.0f %% of the waiting.", turns, 100*share)
	}
	return strings.TrimSpace(text + " " + said + " Give each rank its own GPU (LOCAL_RANK, CUDA_VISIBLE_DEVICES).")
}

// whoShares names the ranks on the GPU whose turns explain most, and counts those on others.
func (ev *Evidence) whoShares(all []SharedGPU) string {
	most, ranks := &all[0], 0
	for i := range all {
		ranks += len(all[i].Ranks)
		if all[i].Share > most.Share {
			most = &all[i]
		}
	}
	names := make([]string, len(most.Ranks))
	for i, rank := range most.Ranks {
		names[i] = ev.Ranks[rank].Name
	}
	more := ""
	switch others := len(all) - 1; {
	case others == 1:
		more = fmt.Sprintf(", and so do %d ranks on another GPU", ranks-len(names))
	case others > 1:
		more = fmt.Sprintf(", and so do %d ranks on %d other GPUs", ranks-len(names), others)
	}
	return fmt.Sprintf("%s share a GPU (%s)%s.", units.NameList(names), most.where(), more)
}

// leastSaid is the part of all waiting that turns must explain to be mentioned beside another cause.
const leastSaid = 0.01

// where identifies a GPU by its host and as much of its UUID as CUDA_VISIBLE_DEVICES accepts.
func (g *SharedGPU) where() string {
	uuid := g.UUID
	if parts := strings.SplitN(uuid, "-", 3); len(parts) == 3 {
		uuid = parts[0] + "-" + parts[1]
	}
	if g.Host == "" {
		return uuid
	}
	return uuid + ", " + g.Host
}
