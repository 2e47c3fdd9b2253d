// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Noise is how times vary in a made-up run. Transfers have noise of their own, outliers, and a slow drift that
// operations of all kinds share; ranks arrive apart from each other.
type Noise struct {
	*rand.Rand
	drift float64
}

func NewNoise(seed uint64) *Noise { return &Noise{Rand: rand.New(rand.NewPCG(seed, 77))} }

func (n *Noise) Transfer(base float64) float64 {
	n.drift = 0.95*n.drift + 0.006*n.NormFloat64()
	t := base * math.Exp(0.03*n.NormFloat64()+n.drift)
	if n.Float64() < 0.01 {
		t *= 1 + 3*n.Float64()
	}
	return t
}

// RunKind is one kind of operation of a made-up run: on the world, or on the two ranks of each host.
type RunKind struct {
	Function string
	Elements uint64
	Pair     bool
	base     float64 // ns
}

var MadeKinds = []RunKind{
	{"AllReduce", 16 << 10, false, 60_000},
	{"AllReduce", 256 << 10, false, 200_000},
	{"AllReduce", 4 << 20, false, 1_500_000},
	{"AllGather", 256 << 10, false, 300_000},
	{"ReduceScatter", 256 << 10, false, 250_000},
	{"AllReduce", 256 << 10, true, 90_000},
	{"AllGather", 64 << 10, true, 30_000},
}

// RunChange alters what an operation takes: transfer, the call, and how late ranks come, ns.
type RunChange func(k *RunKind, rank int, transfer, call, late *float64)

func Unchanged(*RunKind, int, *float64, *float64, *float64) {}

// MakeRun makes a run of four ranks on two hosts.
func MakeRun(t testing.TB, seed uint64, steps int, alter RunChange) string {
	t.Helper()
	dir, n := t.TempDir(), NewNoise(seed)
	var ranks [4]*shardtest.Process
	var world, pair [4]int
	for r := range ranks {
		p := shardtest.NewRank(t, dir, r, 4, 2)
		world[r] = p.World()
		pair[r] = p.Comm(description.Comm{ID: 2 + uint64(r/2), Name: fmt.Sprint("pair", r/2), NRanks: 2, Rank: r % 2,
			InitTime: T0})
		ranks[r] = p
	}
	now, event := [4]float64{}, uint64(0)
	for range steps {
		for i := range MadeKinds {
			k := &MadeKinds[i]
			groups := [][]int{{0, 1, 2, 3}}
			if k.Pair {
				groups = [][]int{{0, 1}, {2, 3}}
			}
			for _, group := range groups {
				transfer, start := n.Transfer(k.base), 0.0
				for _, r := range group {
					start = max(start, now[r])
				}
				begin, call, last := make([]float64, len(group)), make([]float64, len(group)), 0.0
				for i, r := range group {
					late := 0.08 * k.base * n.ExpFloat64()
					call[i] = 8000 * math.Exp(0.2*n.NormFloat64())
					own := transfer
					alter(k, r, &own, &call[i], &late)
					if i == 0 {
						transfer = own
					}
					begin[i] = start + 20_000 + late
					last = max(last, begin[i])
				}
				for i, r := range group {
					p, comm := ranks[r], world[r]
					if k.Pair {
						comm = pair[r]
					}
					end := last + transfer*math.Exp(0.002*n.NormFloat64())
					at := func(ns float64) uint64 { return T0 + 1_000_000 + uint64(ns) }
					event++
					p.CallFor("nccl"+k.Function, event, at(start), at(start+call[i]))
					p.Collective(comm, shardtest.Op{Function: k.Function, Begin: at(begin[i]), End: at(end),
						Count: k.Elements, Algo: "RING", Proto: "SIMPLE", Channels: 4, Parent: event})
					now[r] = max(end, start+call[i]) + 1
				}
			}
		}
	}
	for _, p := range ranks {
		p.Finish()
	}
	return Unify(t, dir)
}
