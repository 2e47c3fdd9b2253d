// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Bandwidths are of medians, size by size, also of cells that were added up, or read from a file.
func TestSpeedsAreOfMedians(t *testing.T) {
	var one, other Speeds
	for _, took := range []float64{40, 41, 9000} { // the mean is far off
		one.addOperation(1000, 1500, took)
	}
	other.addOperation(1000, 1500, 41)
	other.addOperation(50, 75, 10)
	one.Merge(&other)
	text := testkit.Value(json.Marshal(one))(t)
	var back Speeds
	testkit.Must(t, json.Unmarshal(text, &back))
	for _, s := range []*Speeds{&one, &back} {
		alg, bus := s.Sums()
		testkit.Check(t, alg.Bytes == 4050 && bus.Bytes == 4*1500+75 && alg.Time == 4*41+10 && bus.Time == alg.Time,
			"%+v, %+v", alg, bus)
	}
	one.addOperation(50, 75, 10)
	alg, _ := one.Sums()
	testkit.Check(t, alg.Bytes == 4100, "what is added later counts, too: %+v", alg)
	testkit.Check(t, (Speeds{}).IsZero() && !one.IsZero(), "only what has nothing is empty")
}

// A cell of very many sizes stays small; what it cannot tell apart counts with its own time.
func TestSpeedsOfManySizesAreBounded(t *testing.T) {
	var s, all Speeds
	for size := range uint64(10 * mostSizes) {
		s.addOperation(size+1, float64(size+1), 100)
	}
	all.Merge(&s)
	all.Merge(&s)
	alg, _ := all.Sums()
	n := float64(10 * mostSizes)
	testkit.Check(t, len(all.bySize) == mostSizes && alg.Bytes == n*(n+1) && math.Abs(alg.Time/(2*n*100)-1) <= 1.0/64,
		"%d sizes, %+v", len(all.bySize), alg)
}
