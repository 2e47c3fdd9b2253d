// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// What is said of ranks that share a GPU. What its turns explain package causes has told apart: it is held against nobody.

// SharedGPU is a GPU, or a part of one, on which several ranks work at the same time.
type SharedGPU struct {
	Ranks []int  `json:"ranks"` // of the world, ascending
	Host  string `json:"host"`
	GPU   string `json:"gpu"` // as the archive names it
	UUID  string `json:"uuid"`
	// Share is the part of all waiting that the turns of these ranks explain, 0 to 1.
	Share float64 `json:"share"`
}

// shared tells of what was waited how much the turns of each shared GPU explain.
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

// sharing is the part of all waiting that turns explain.
func (v *Verdict) sharing() (share float64) {
	for i := range v.SharedGPUs {
		share += v.SharedGPUs[i].Share
	}
	return min(share, 1)
}

// stopped tells whether something stopped the job, of which the text is then.
func (v *Verdict) stopped() bool { return len(v.Culprits) > 0 && v.Culprits[0].Stops() }

// withSharing adds to a text that ranks share GPUs, if they do. Without a text that is all there is to say. Where MPS runs their processes together, which
// nobody has recorded, there are no turns.
func (v *Verdict) withSharing(text string) string {
	if len(v.SharedGPUs) == 0 {
		return text
	}
	most, ranks := &v.SharedGPUs[0], 0
	for i := range v.SharedGPUs {
		g := &v.SharedGPUs[i]
		ranks += len(g.Ranks)
		if g.Share > most.Share {
			most = g
		}
	}
	said, runs := fmt.Sprintf("%s share a GPU (%s)", units.RankNames(most.Ranks), most.where()), "it runs them"
	if others := len(v.SharedGPUs) - 1; others > 0 {
		more := "another GPU"
		if others > 1 {
			more = fmt.Sprintf("%d other GPUs", others)
		}
		said += fmt.Sprintf(", and so do %d ranks on %s", ranks-len(most.Ranks), more)
		runs = "each runs its ranks"
	}
	share := v.sharing()
	switch waited := units.Time(float64(v.Waited)); {
	case text == "":
		said += fmt.Sprintf(". Unless MPS is on, %s in turns: that, and not a rank, explains %.0f %% of the %s of waiting.", runs, 100*share, waited)
	case share >= leastSaid:
		said += fmt.Sprintf(". Unless MPS is on, %s in turns: that explains %.0f %% of the waiting.", runs, 100*share)
	default:
		said += "."
	}
	return strings.TrimSpace(text + " " + said + " Give each rank its own GPU (LOCAL_RANK, CUDA_VISIBLE_DEVICES).")
}

// leastSaid is the part of all waiting that turns must explain for that to be said beside something else.
const leastSaid = 0.01

// where tells a GPU from others: by as much of its UUID as CUDA_VISIBLE_DEVICES takes, and its host.
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
