// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Reports that are left out when many slopes are tried are none of the quickest two of their stretch for any of them: the spread is the
// same to the last bit, and most are left out.
func TestNarrow(t *testing.T) {
	all, left := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := new(fitScratch)
		known := maxSlope * (2*r.Float64() - 1)
		length, late, grain := 1e6*float64(uint64(1)<<r.UintN(13)), 100*float64(uint64(1)<<r.UintN(14)), float64(uint64(1)<<r.UintN(11))
		for range 1 + r.IntN(400) {
			f.x = append(f.x, grain*float64(int(length/grain*(r.Float64()-0.5)))) // some come twice
		}
		slices.Sort(f.x)
		for _, x := range f.x {
			y := late * r.ExpFloat64() * float64(r.IntN(3)) // of some none are late
			f.y = append(f.y, float64(int(y+known*x)))
		}
		f.narrow(known)
		all, left = all+len(f.x), left+len(f.cx)
		wide := fitScratch{x: f.x, y: f.y}
		wide.wide()
		for range 40 {
			slope := known + reach*(2*r.Float64()-1)
			if r.IntN(2) == 0 { // a line through two of them, as those that are tried
				i := r.IntN(len(f.x))
				if j := r.IntN(len(f.x)); f.x[i] != f.x[j] {
					if through := (f.y[i] - f.y[j]) / (f.x[i] - f.x[j]); through > -maxSlope && through < maxSlope {
						slope = through
					}
				}
			}
			got, want := f.spread(slope), spreadOfAll(f.x, f.y, slope)
			if all := wide.spread(slope); got != want || all != want {
				t.Fatalf("seed %d, slope %v of %d reports: %v, of all %v, want %v", seed, slope, len(f.x), got, all, want)
			}
		}
	}
	if left > all/2 {
		t.Errorf("%d of %d reports are left", left, all)
	}
}

// spreadOfAll is what spread gives, found in the plainest way.
func spreadOfAll(x, y []float64, slope float64) float64 {
	n := len(x)
	var quick []float64
	for i := range stretches {
		var late []float64
		for j := i * n / stretches; j < (i+1)*n/stretches; j++ {
			late = append(late, y[j]-slope*x[j])
		}
		slices.Sort(late)
		quick = append(quick, late[:min(2, len(late))]...)
	}
	slices.Sort(quick)
	return quick[max(min(quickest, n), min(2*stretches, n)/2)-1] - quick[0]
}
