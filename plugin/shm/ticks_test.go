// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A bracket is content with a reading that is about as tight as the tightest, and goes by the tightest of some where
// none is.
func TestBracketReadsOnceWhereThatIsEnough(t *testing.T) {
	var b bracket
	read := func(distances ...uint64) (n int, got uint64) {
		got, _ = b.read(func() (uint64, uint64, uint64) {
			n++
			return distances[n-1], distances[n-1], 0
		})
		return n, got
	}
	for _, c := range []struct {
		distances []uint64
		reads     int
		got       uint64
	}{
		{[]uint64{900, 200, 300, 250, 400}, brackets, 200}, // nothing is known
		{[]uint64{250}, 1, 250},
		{[]uint64{260, 240}, 2, 240},
		{[]uint64{5000, 4000, 3000, 6000, 7000}, brackets, 3000}, // interrupted throughout
		{[]uint64{100}, 1, 100},
		{[]uint64{200, 120}, 2, 120},
	} {
		if n, got := read(c.distances...); n != c.reads || got != c.got {
			t.Errorf("of %v %d were read, the result is %d; want %d and %d", c.distances, n, got, c.reads, c.got)
		}
	}
	for range 10_000 { // a machine that has become slower
		read(slices.Repeat([]uint64{1000}, brackets)...)
	}
	n, _ := read(1000)
	testkit.Check(t, n == 1, "a bracket that has become wider for good is still read %d times", n)
}
