// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"cmp"
	"slices"
)

// Median is the middle one of values, the mean of both where there are two: what estimates go by. It sorts them; 0 of
// none.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// NearestMedian is one of the values, the lower of two middle ones, as Distribution.Percentile(50) is: what products
// show. It sorts them; the zero value of none.
func NearestMedian[T cmp.Ordered](values []T) (median T) {
	if len(values) == 0 {
		return median
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
