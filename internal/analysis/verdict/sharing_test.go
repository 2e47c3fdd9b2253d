// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// turned makes the evidence of four ranks that waited 600 ms: ns for turns on the first GPU, which two of them share,
// and the rest for rank 2, if rest is a cause of a rank.
func turned(ns float64, rest causes.Kind) *Evidence {
	ev := evidence(4, 20, -1)
	ev.Causes.Waited = 600e6
	ev.Causes.Ranks[0].Costs[causes.Turns], ev.Causes.Ranks[1].Costs[causes.Turns] = ns/4, ns*3/4
	ev.Causes.Ranks[2].Costs[rest] += 600e6 - ns
	ev.Shared = []SharedGPU{{Ranks: []int{0, 1}, Host: "node0", GPU: "CUDA Device 0",
		UUID: "GPU-12345678-1111-2222-3333-444455556666"}}
	return ev
}

const (
	ownGPUs = "Give each rank its own GPU (LOCAL_RANK, CUDA_VISIBLE_DEVICES)."
	isOne   = "Ranks 0-1 share a GPU (GPU-12345678, node0)."
)

// If ranks share GPUs, the verdict says so, and how much of the waiting their turns explain. If that is most of it,
// the verdict says nothing else.
func TestSharedGPUs(t *testing.T) {
	two := func(ev *Evidence) *Evidence {
		ev.Shared = append(ev.Shared, SharedGPU{Ranks: []int{2, 3}, Host: "node0",
			UUID: "MIG-9abcdef0-1111-2222-3333-444455556666"})
		return ev
	}
	for _, c := range []struct {
		name     string
		evidence *Evidence
		shares   []float64
		text     string
	}{
		{
			"most of it", turned(480e6, causes.Host), []float64{0.8},
			isOne + " Unless MPS is on, it runs them in turns: that, and not a rank, explains 80 % of the 600 ms of " +
				"waiting. " + ownGPUs,
		},
		{
			"a part of it", turned(180e6, causes.Host), []float64{0.3},
			"Nobody stands out: ranks waited 600 ms in all, and the one that caused the most, Rank 2, caused 70 % of " +
				"it. " +
				isOne + " Unless MPS is on, it runs them in turns: that explains 30 % of the waiting. " + ownGPUs,
		},
		{
			"none of it, and what took longer is not known", turned(0, causes.Transfer), []float64{0},
			"Record with NCCL_OTF2_EVENTS=net. " + isOne + " " + ownGPUs,
		},
		{"nobody waited", func() *Evidence { ev := turned(0, causes.Host); ev.Causes.Waited = 0; return ev }(),
			[]float64{0}, "nobody waited. " + isOne + " " + ownGPUs},
		{
			"two GPUs", two(turned(480e6, causes.Turns)), []float64{0.8, 0.2},
			isOne[:len(isOne)-1] +
				", and so do 2 ranks on another GPU. Unless MPS is on, each runs its ranks in turns: that, and not a " +
				"rank, explains 100 % of the 600 ms of waiting. " + ownGPUs,
		},
		{
			"the second one most of all", two(turned(60e6, causes.Turns)), []float64{0.1, 0.9},
			"Ranks 2-3 share a GPU (MIG-9abcdef0, node0), and so do 2 ranks on another GPU. Unless MPS is on",
		},
		{"three GPUs", two(two(turned(480e6, causes.Turns))), []float64{0.8, 0.2, 0.2},
			"and so do 4 ranks on 2 other GPUs."},
		{"somebody is late all the same", func() *Evidence {
			ev := evidence(4, 20, 2)
			ev.Shared = turned(0, causes.Host).Shared
			ev.Causes.Ranks[0].Costs[causes.Turns] = 200e6
			ev.Causes.Waited += 200e6
			return ev
		}(), []float64{0.25},
			"Rank 2 on node0 made the others wait: 75 % of 800 ms waited, summed over 4 ranks. " +
				"It called ncclAllReduce 10 ms after the others, " +
				"20 of 20 times, always. Confidence: over 99.9 %. " +
				isOne + " Unless MPS is on, it runs them in turns: that explains 25 % of the waiting. " + ownGPUs},
		{
			"a host that may have waited for turns", func() *Evidence {
				ev := evidence(4, 20, 1)
				ev.Shared = []SharedGPU{{Ranks: []int{0, 1, 2, 3}, UUID: "GPU-12345678-1", Host: "node0"}}
				for i := range ev.Causes.Ranks[1].Occurrences {
					ev.Causes.Ranks[1].Occurrences[i].Late = 9e6
				}
				return ev
			}(), []float64{0},
			"Nobody stands out: ranks waited 600 ms in all, and the one that caused the most, Rank 1, caused 100 % " +
				"of it. Ranks 0-3 share a GPU (GPU-12345678, node0). " + ownGPUs,
		},
		{
			"a host that was late for longer than these", func() *Evidence {
				ev := evidence(4, 20, 1)
				ev.Shared = []SharedGPU{{Ranks: []int{0, 1, 2, 3}, UUID: "GPU-12345678-1", Host: "node0"}}
				return ev
			}(), []float64{0},
			"Rank 1 on node0 made the others wait: 100 % of 600 ms waited, summed over 4 ranks.",
		},
		{"a GPU that is slow for that", func() *Evidence {
			ev := turned(0, causes.Host)
			ev.Causes.Waited, ev.Causes.Ranks[2].Costs[causes.Host] = 0, 0
			ev.Slow = []Slow{{Rank: 1, Kind: GPULate, Cost: 300e6, Delay: 200e6, Confidence: 1,
				Because: "It held transfers up.", Turns: true}}
			return ev
		}(), []float64{1},
			isOne + " Unless MPS is on, it runs them in turns: that, and not a rank, explains 100 % of the 300 ms of " +
				"waiting. " + ownGPUs},
		{"GPUs of processes with several", func() *Evidence {
			ev := turned(480e6, causes.Host)
			for i, name := range []string{"Rank 0 GPU 0", "Rank 0 GPU 1", "Rank 1 GPU 0", "Rank 1 GPU 1"} {
				ev.Ranks[i].Name = name
			}
			ev.Shared[0].Ranks, ev.Causes.Ranks[2].Costs[causes.Turns] = []int{0, 2}, 360e6
			return ev
		}(), []float64{0.8}, "Rank 0 GPU 0, Rank 1 GPU 0 share a GPU (GPU-12345678, node0). Unless MPS is on"},
		{"no GPU is shared", evidence(4, 20, -1), nil, "Nobody stands out: nobody waited."},
	} {
		v := Judge(c.evidence)
		testkit.Check(t, strings.HasSuffix(v.Text, c.text) || strings.HasPrefix(v.Text, c.text) ||
			c.name == "three GPUs" && strings.Contains(v.Text, c.text), "%s: %s\nwant %s", c.name, v.Text, c.text)
		var shares []float64
		for i := range v.SharedGPUs {
			shares = append(shares, v.SharedGPUs[i].Share)
		}
		testkit.Check(t, slices.Equal(shares, c.shares), "%s: shares %v, want %v", c.name, shares, c.shares)
	}
}

// If a job stopped, the text describes only that; shared GPUs are only in the verdict's fields.
func TestSharedGPUsOfAJobThatStopped(t *testing.T) {
	ev := turned(600e6, causes.Host)
	ev.Stuck = []Culprit{{Rank: 1, Kind: Missing, Confidence: 0.95, Evidence: "Rank 1 never called AllReduce 5"}}
	if v := Judge(ev); v.Text != "Rank 1 never called AllReduce 5. Confidence: 95.0 %." || len(v.SharedGPUs) != 1 {
		t.Errorf("%s %+v", v.Text, v.SharedGPUs)
	}
}
