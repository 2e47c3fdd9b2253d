// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestMedians(t *testing.T) {
	for _, c := range []struct {
		values        []float64
		mean, nearest float64
	}{
		{nil, 0, 0},
		{[]float64{7}, 7, 7},
		{[]float64{9, 1}, 5, 1},
		{[]float64{9, 1, 4}, 4, 4},
		{[]float64{8, 2, 4, 1}, 3, 2},
	} {
		testkit.Equal(t, Median(slices.Clone(c.values)), c.mean, "Median(%v)", c.values)
		testkit.Equal(t, NearestMedian(slices.Clone(c.values)), c.nearest, "NearestMedian(%v)", c.values)
		var d Distribution[uint64]
		for _, v := range c.values {
			d.Add(uint64(v))
		}
		if got := d.Percentile(50); got != c.nearest {
			t.Errorf("percentile 50 of %v is %v, the median that products show %v", c.values, got, c.nearest)
		}
	}
}
