// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"math"
	"slices"
)

// Bounds of agree: exchanges that it looks at, times that it goes over them, and the change that it stops at, ns.
const (
	agreeExchanges = 512
	agreeSweeps    = 40
	agreeEnough    = 50
)

// agree chooses offsets by which the hosts' kernels of common operations were done at the same time, as a rule (the
// median), for those hosts of which that tells more than their bounds: where the spread of these times is less than
// half the room between the bounds. Operations that take milliseconds bind clocks no better than
// that, but all ranks leave them within microseconds. It is no more than a choice between the bounds: half is the room,
// wanted are the offsets so far, which it changes.
func (k *knotSystem) agree(half, wanted []float64) {
	type finished struct {
		others []knotTime
		own    float64
	}
	of := make([][]finished, len(wanted)) // by host
	step := (len(k.xs) + agreeExchanges - 1) / agreeExchanges
	for n := 0; n < len(k.xs); n += max(step, 1) {
		x := &k.p.xs[k.xs[n]]
		if k.skip[k.xs[n]] || len(x.finish) < 2 {
			continue
		}
		times := make([]knotTime, len(x.finish))
		for i, s := range x.finish {
			times[i] = knotTime{host: s.host, value: s.time + k.p.curves[s.host].at(s.time)}
		}
		for _, t := range times {
			of[t.host] = append(of[t.host], finished{times, t.value})
		}
	}
	offset, spread := make([]float64, len(wanted)), make([]float64, len(wanted))
	copy(offset, wanted)
	var gaps, around []float64
	for range agreeSweeps {
		change := 0.0
		for h := range offset {
			if len(of[h]) == 0 || k.p.reference[h] == h || math.IsInf(half[h], 1) {
				continue
			}
			gaps = gaps[:0]
			for _, f := range of[h] {
				around = around[:0]
				for _, t := range f.others {
					if int(t.host) != h {
						around = append(around, t.value+offset[t.host])
					}
				}
				gaps = append(gaps, median(around)-f.own)
			}
			to := median(gaps)
			for i := range gaps {
				gaps[i] = math.Abs(gaps[i] - to)
			}
			spread[h] = median(gaps)
			change = max(change, math.Abs(to-offset[h]))
			offset[h] = to
		}
		if change < agreeEnough {
			break
		}
	}
	for h := range offset {
		if len(of[h]) > 0 && spread[h] < half[h]/2 {
			wanted[h] = offset[h]
		}
	}
}

// median orders its argument.
func median(all []float64) float64 {
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}
