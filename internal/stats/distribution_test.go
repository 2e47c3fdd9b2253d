// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Percentiles are off by no more than is stated, however values are spread and merged, also after a way over the disk.
func TestPercentilesAreAsGoodAsStated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 200), rapid.Uint64Range(1e3, 1e9)), 1,
			300).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		var h, other Distribution[uint64]
		h.Keep = rapid.SampledFrom([]int{0, 10, 1000}).Draw(t, "keep")
		other.Keep = h.Keep
		sum := uint64(0)
		for i, v := range values {
			into := &h
			if i >= cut {
				into = &other
			}
			into.Add(v)
			sum += v
		}
		h.Merge(&other)
		text := testkit.Value(json.Marshal(h))(t)
		var back Distribution[uint64]
		testkit.Must(t, json.Unmarshal(text, &back))
		testkit.Require(t, len(h.exact) <= h.Keep && h.Approximate() == (len(values) > h.Keep),
			"%d values are kept of %d, at most %d are to be", len(h.exact), len(values), h.Keep)
		slices.Sort(values)
		testkit.Require(t, back.Count == uint64(len(values)) && back.Sum == sum && back.Min == values[0] &&
			back.Max == values[len(values)-1], "%d values with sum %d from %d to %d", back.Count, back.Sum, back.Min,
			back.Max)
		for _, p := range []float64{1, 50, 99, 100} {
			want := float64(values[int(math.Ceil(p/100*float64(len(values))))-1])
			if got := back.Percentile(p); math.Abs(got-want) > PercentileError*want {
				t.Fatalf("percentile %g is %g, want %g to %g of it", p, got, want, PercentileError)
			}
			if got := h.Percentile(p); !h.Approximate() && got != want {
				t.Fatalf("percentile %g of %d values that are kept is %g, want %g", p, len(values), got, want)
			}
		}
	})
}

// What has come since is what was added since.
func TestSince(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOf(rapid.Uint64Range(0, 1e9)).Draw(t, "before")
		later := rapid.SliceOf(rapid.Uint64Range(0, 1e9)).Draw(t, "later")
		var then, now, want Distribution[uint64]
		for _, v := range before {
			then.Add(v)
			now.Add(v)
		}
		for _, v := range later {
			now.Add(v)
			want.Add(v)
		}
		got := now.Since(&then)
		testkit.Require(t, got.Count == want.Count && got.Sum == want.Sum && now.Count == then.Count+want.Count,
			"%d with sum %d, want %d with sum %d", got.Count, got.Sum, want.Count, want.Sum)
		a, b := got.Percentile(50), want.Percentile(50)
		testkit.Require(t, math.Abs(a-b) <= 2*PercentileError*b+1, "median %g, want %g", a, b)
		if len(later) > 0 {
			if again := then.Since(&now); again.Count != then.Count || again.Sum != then.Sum {
				t.Fatalf("of another distribution %d are left of %d", again.Count, then.Count)
			}
		}
	})
}

func TestClasses(t *testing.T) {
	last := classOf(math.MaxUint64)
	testkit.Check(t, last <= 2000, "%d classes", last+1)
	for v, before := uint64(0), uint16(0); v < 1<<20; v++ {
		c := classOf(v)
		testkit.Require(t, c == before || c == before+1, "value %d is in class %d behind %d", v, c, before)
		before = c
	}
	testkit.Check(t, json.Unmarshal([]byte(`{"classes":[[60000,1]]}`), new(Distribution[uint64])) != nil,
		"a class that there is not was read")
}
