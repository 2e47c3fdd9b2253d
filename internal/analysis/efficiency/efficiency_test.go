// SPDX-License-Identifier: Apache-2.0

package efficiency

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b)) }

func TestOfABalancedJob(t *testing.T) {
	f := factorsOf([]Share{{100, 100, 100}, {100, 100, 100}, {250, 250, 250}}, true)
	testkit.Require(t, f != nil && f.LoadBalance == 1 && f.Communication == 1 && *f.Serialization == 1 &&
		*f.Transfer == 1 && f.Parallel == 1, "%+v", f)
	testkit.Check(t, factorsOf(nil, true) == nil && factorsOf([]Share{{0, 0, 0}}, true) == nil,
		"nothing was observed, and there are efficiencies")
	d := ofDevices([]deviceShare{{100, 100, 100}, {50, 50, 50}})
	testkit.Check(t, *d == (DeviceFactors{1, 1, 1, 1}), "%+v", d)
}

// One of four ranks works f times as long as the others, who wait for it in operations that take no time.
func TestOfOneSlowerRank(t *testing.T) {
	for _, f := range []float64{1.5, 2, 10} {
		got := factorsOf([]Share{{100, 100 / f, 100}, {100, 100, 100}, {100, 100 / f, 100}, {100, 100 / f, 100}}, true)
		want := (1 + 3/f) / 4
		testkit.Check(t, near(got.LoadBalance, want) && got.Communication == 1 && *got.Serialization == 1 &&
			near(got.Parallel, want), "%g times as slow: %+v", f, got)
	}
	// Useful 60 of 100 on the busiest rank; without transfers the run would have taken 80.
	got := factorsOf([]Share{{100, 60, 80}, {100, 30, 75}}, true)
	testkit.Check(t, near(got.LoadBalance, 0.75) && near(got.Communication, 0.6) && near(*got.Transfer, 0.8) &&
		near(*got.Serialization, 0.75) && near(got.Parallel, 0.45), "%+v", got)
	got = factorsOf([]Share{{100, 60, 0}}, false)
	testkit.Check(t, got.Transfer == nil && got.Serialization == nil && got.Communication == 0.6, "%+v", got)
	// A GPU computes 40 of 100, and is idle 30; the other one computes 20.
	d := ofDevices([]deviceShare{{100, 40, 70}, {100, 20, 80}})
	testkit.Check(t, near(d.LoadBalance, 0.75) && near(d.Orchestration, 0.8) && near(d.Communication, 0.5) &&
		near(d.Parallel, 0.3), "%+v", d)
}

// All efficiencies are between 0 and 1, and products are what they are said to be.
func TestProducts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ranks []Share
		var gpus []deviceShare
		for range rapid.IntRange(1, 20).Draw(t, "ranks") {
			observed := rapid.Float64Range(1, 1e12).Draw(t, "observed")
			useful := observed * rapid.Float64Range(0.001, 1).Draw(t, "useful")
			ideal := useful + (observed-useful)*rapid.Float64Range(0, 1).Draw(t, "ideal")
			ranks = append(ranks, Share{observed, useful, ideal})
			gpus = append(gpus, deviceShare{observed, useful, ideal})
		}
		f := factorsOf(ranks, true)
		testkit.Require(t, near(f.Parallel, f.LoadBalance*f.Communication) &&
			near(f.Communication, *f.Serialization**f.Transfer), "%+v", f)
		d := ofDevices(gpus)
		testkit.Require(t, near(d.Parallel, d.LoadBalance*d.Communication*d.Orchestration), "%+v", d)
		for _, v := range []float64{f.LoadBalance, f.Communication, *f.Serialization, *f.Transfer, f.Parallel,
			d.LoadBalance, d.Communication, d.Orchestration, d.Parallel} {
			testkit.Require(t, v >= 0 && v <= 1+1e-12, "%+v %+v", f, d)
		}
	})
}

func TestOfAPhase(t *testing.T) {
	f := OfPhase([]Share{{100, 80, 0}, {100, 40, 0}}, 4, 0)
	testkit.Check(t, f != nil && near(f.LoadBalance, 0.75) && near(f.Communication, 0.8) && f.Transfer == nil, "%+v", f)
	for name, f := range map[string]*Factors{
		"no GPU times": OfPhase([]Share{{100, 100, 0}}, 0, 4), "few GPU times": OfPhase([]Share{{100, 90, 0}}, 4, 4),
		"more in operations than in the phase": OfPhase([]Share{{100, 50, 0}, {100, -1, 0}}, 4, 0),
	} {
		testkit.Check(t, f == nil, "%s: %+v", name, f)
	}
}
