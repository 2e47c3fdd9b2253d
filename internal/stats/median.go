// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"cmp"
	"slices"
)

// Median returns the middle value, or the mean of the two middle ones, for estimates. It sorts values; 0 for none.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// NearestMedian returns one of the values, the lower of two middle ones, as Distribution.Percentile(50) does; products
// show this one. It sorts values; the zero value for none.
func NearestMedian[T cmp.Ordered](values []T) (median T) {
	if len(values) == 0 {
		return median
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
