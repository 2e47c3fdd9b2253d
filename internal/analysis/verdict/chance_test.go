// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The probability is that of the binomial distribution, interpolated between whole numbers. A number that exceeds the
// average by no more than one proves nothing.
func TestTail(t *testing.T) {
	for _, c := range []struct{ k, n, p, want float64 }{
		{5, 5, 0.5, 1.0 / 32},
		{8, 10, 0.5, 56.0 / 1024},
		{7, 7, 1.0 / 3, 1.0 / 2187},
		{90, 1000, 0.05, 9.74e-8},
		{5, 8, 0.5, 93.0 / 256},
		{4.9, 8, 0.5, 1},
		{3, 3, 1, 1},
		{0, 0, 0.5, 1},
	} {
		if got := tail(c.k, c.n, c.p); math.Abs(got-c.want) > 0.05*c.want {
			t.Errorf("%g of %g with %g: %g, want %g", c.k, c.n, c.p, got, c.want)
		}
	}
	if got := tail(900_000, 1e6, 0.125); got != 0 { // less than any number
		t.Errorf("%g", got)
	}
	if a, b, c := tail(8, 10, 0.3), tail(8.5, 10, 0.3), tail(9, 10, 0.3); a <= b || b <= c {
		t.Errorf("%g, %g, %g do not become less", a, b, c)
	}
}

// Of three ranks, one was late on seven of eight occasions, and another on one. That is not chance, whether the other
// is suspected or not.
func TestSuspectsDoNotHideOthers(t *testing.T) {
	c := causes.Comm{Ranks: []int32{0, 1, 2}, Struck: make([][causes.Levels]float32, 3)}
	c.Struck[1][10], c.Struck[2][10] = 7, 1
	all := &causes.Result{Ranks: make([]causes.Rank, 3), Comms: []causes.Comm{c}}
	alone, _ := newTrial(all, nil).chance(1)
	tr := newTrial(all, map[int]bool{1: true, 2: true})
	tr.found = map[int]bool{2: true}
	if got, times := tr.chance(1); got > 2*alone || times != 7 || len(tr.found) != 1 {
		t.Errorf("%g of %g times beside one that is suspected, %g if nobody is", got, times, alone)
	}
}

// A rank is late repeatedly by little, beside one that is known to be late by much. The other's occasions are left
// out, so cheap occasions count, and one rank fewer could have been late as often.
func TestTheLesserOne(t *testing.T) {
	c := causes.Comm{Ranks: []int32{0, 1, 2, 3}, Struck: make([][causes.Levels]float32, 4)}
	c.Struck[1][14], c.Struck[2][9], c.Struck[3][9] = 10, 7, 1
	all := &causes.Result{Ranks: make([]causes.Rank, 4), Comms: []causes.Comm{c}}
	tr := newTrial(all, map[int]bool{1: true, 2: true})
	testkit.Equal(t, tr.levels(), [...]int{14, 14}, "all are looked at down to levels")
	tr.found = map[int]bool{1: true}
	testkit.Equal(t, tr.levels(), [...]int{9, 9}, "those of the others are looked at down to levels")
	got, times := tr.chanceGivenNamed(2)
	want := 2 * 3 * tail(7, 8, 1.0/3)
	testkit.Check(t, times == 7 && math.Abs(got-want) <= 1e-9, "%g times, by chance with %g, want %g", times, got, want)
	if suspected, _ := tr.chance(2); suspected <= got {
		t.Errorf("%g if it is known who else was late, %g if that is only suspected", got, suspected)
	}
}
