// SPDX-License-Identifier: Apache-2.0

package transfers

// A link or GPU is slow in one operation if it exceeds both of the first two limits.
const (
	slowFactor = 1.25 // times the median of the others
	slowShare  = 10   // the excess is at least one tenth of the operation's transfer time
	longFactor = 2    // times the usual time of operations of one sort: the operation is slow for an unknown reason
)

// A link or GPU is named if it reaches all of these limits.
const (
	maxChance = 1e-5 // probability of being slow as often by chance, corrected for the number of candidates
	leastCost = 0.01 // part of the time of all operations
	leastSlow = 3    // operations in which it was slow
)
