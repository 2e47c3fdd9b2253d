// SPDX-License-Identifier: Apache-2.0

package facts

// IndexOpen returns the index of a region that ends in a caller's list of open ones (newest last), −1 if it is not
// there. entered returns the Region.Entered of an element. The rule is that of effect.NewestOpen.
func IndexOpen[T any](open []T, ended *Region, entered func(*T) uint64) int {
	for i := len(open) - 1; i >= 0; i-- {
		if entered(&open[i]) == ended.Entered {
			return i
		}
	}
	return -1
}
