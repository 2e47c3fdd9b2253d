// SPDX-License-Identifier: Apache-2.0

package control

import (
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Windows that need no numbers: all operations, and none.
var (
	Everything = shm.Window{First: 0, Last: math.MaxUint64}
	Nothing    = shm.Window{}
)

// FirstDifference is the least ordinal that one of two windows holds and the other does not; false if they
// hold the same.
func FirstDifference(a, b shm.Window) (ordinal uint64, differ bool) {
	edges := []uint64{a.First, a.Last, b.First, b.Last}
	slices.Sort(edges)
	for _, x := range edges {
		if inside(a, x) != inside(b, x) {
			return x, true
		}
	}
	return 0, false
}

// inside reports whether a window holds an ordinal.
func inside(w shm.Window, ordinal uint64) bool { return w.First <= ordinal && ordinal < w.Last }

// Ordinal is how far a communicator has come in the count that its window goes by: collectives, or messages
// where there are no others; those of replayed graphs are counted apart, and the window is for both.
func Ordinal(collectives, messages, replayed uint64) uint64 {
	if collectives == 0 && replayed == 0 {
		return messages
	}
	return max(collectives, replayed)
}
