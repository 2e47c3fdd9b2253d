// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What all reports may be late is the same whether their median was needed for it or not.
func TestSharedDelay(t *testing.T) {
	counted := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		f := new(fitScratch)
		slope, usual := 1e-5*(r.Float64()-0.5), 1000*float64(uint64(1)<<r.UintN(12)) // 1 µs … 2 ms
		var late []float64
		for range 1 + r.IntN(200) {
			x, y := 1e9*r.Float64(), usual*r.ExpFloat64()
			f.x, f.y = append(f.x, x), append(f.y, y+slope*x)
			late = append(late, f.y[len(f.y)-1]-slope*x)
		}
		least := slices.Min(late)
		slices.Sort(late)
		median := late[len(late)/2] - least
		got, want := f.sharedDelay(slope, least), max(systematicNs, sharedDelay*median)
		testkit.Require(t, got == want, "seed %d: %v, want %v", seed, got, want)
		if median < systematicNs/sharedDelay {
			counted++
		}
	}
	testkit.Check(t, counted >= 50 && counted <= 350,
		"the median does not matter in %d of 400 cases: the test is one-sided", counted)
}
