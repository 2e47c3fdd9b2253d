// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"
	"math"
	"slices"
)

// gpuClock maps the stamps of one GPU onto the process's time line.
//
// Every KernelCh callback gives a pair: a stamp g that the GPU took and the host time c at which NCCL
// reported it, c = g + offset + delay with delay ≥ 0 and otherwise arbitrary (notes on the API, §7.5).
// So c − g is an upper bound of the offset, tight wherever a report came at once, and since clocks
// drift slowly it bounds the offset at other times, too: by no more than the drift per nanosecond of
// distance. The clock is the least of these bounds, the lower envelope of all cones
//
//	offset(g) ≤ (c_i − g_i) + drift·|g − g_i|
//
// It never maps a stamp to a time before it was taken, and is late by the smallest delay nearby.
//
// Over long windows the drift itself is measured: the slope of the line that lies below all points and
// comes nearest to them, which is the edge of their lower convex hull under the mean. The cones
// then only need to cover what that slope may be off by.
//
// NVIDIA's stamps are nanoseconds. Of AMD's the unit is not documented, so it is told from the pairs: it is
// one of those of the counters that AMD's devices have, and each stamp is brought to nanoseconds first.
type gpuClock struct {
	anyUnit bool   // the unit is to be found out
	unit    uint64 // ns per tick, once known; 0 before
	guess   uint64
	start   clockPoint // of the present stretch: stamp and host time

	points  []clockPoint   // at most one per bucket of bucketNs, by bucket
	buckets map[uint64]int // bucket → index into points
	newest  uint64         // greatest stamp seen
	dirty   bool           // points have come since the last fit
	fitted  uint64         // newest at the last fit

	envelope []clockPoint // by stamp; d less the slope's share, closed under the cones
	g0       uint64
	slope    float64 // measured drift
	drift    float64 // what it may be off by
}

type clockPoint struct {
	g uint64 // stamp
	d int64  // c − g
}

const (
	bucketNs    = 1 << 22        // ≈ 4 ms: only the quickest report within it can matter
	windowNs    = 10_000_000_000 // of what comes often, so much is kept; what comes seldom, longer
	pruneAtSize = 2 * windowNs / bucketNs
	refitNs     = 50_000_000 // how much must come before the envelope is computed anew

	maxDrift   = 30e-6  // between two crystal oscillators whose drift has not been measured
	maxSlope   = 200e-6 // more than any oscillator is off by: such a slope is no drift
	delayNs    = 20_000 // what the delays at both ends of the slope's edge may differ by
	slopeAfter = 2e9    // length (ns) of that edge from which on the slope is better known than maxDrift
	leastDrift = 1e-6   // drift changes within a window: temperature
)

// units are the lengths of a tick (ns) that a GPU's counter may have: 1 GHz, 100 MHz, 25 MHz.
var units = [...]uint64{1, 10, 40}

// Pairs this far apart (ns) tell the unit: delays are shorter, and units differ much.
const unitAfter = 20_000_000

// findUnit tries to tell the unit of stamps: two stretches in a row must say the same, because a stamp may be
// that of an earlier kernel.
func (k *gpuClock) findUnit(g, c uint64) bool {
	if k.start.g == 0 || g <= k.start.g {
		k.start = clockPoint{g, int64(c)}
		return false
	}
	if c < uint64(k.start.d)+unitAfter {
		return false
	}
	rate := float64(c-uint64(k.start.d)) / float64(g-k.start.g)
	before, start := k.guess, k.start
	k.guess, k.start = 0, clockPoint{g, int64(c)}
	for _, u := range units {
		if rate > 0.65*float64(u) && rate < 1.35*float64(u) {
			k.guess = u
		}
	}
	if k.guess == 0 || k.guess != before {
		return false
	}
	k.unit = k.guess
	k.add(start.g, uint64(start.d))
	return true
}

// known tells whether stamps can be mapped at all.
func (k *gpuClock) known() bool { return !k.anyUnit || k.unit != 0 }

// nanoseconds brings a stamp to nanoseconds of the GPU's clock.
func (k *gpuClock) nanoseconds(g uint64) uint64 {
	if k.unit > 1 {
		return g * k.unit
	}
	return g
}

// add takes one pair: stamp g, reported at host time c.
func (k *gpuClock) add(g, c uint64) {
	if !k.known() && !k.findUnit(g, c) {
		return
	}
	g = k.nanoseconds(g)
	if k.buckets == nil {
		k.buckets = make(map[uint64]int)
	}
	d := int64(c - g)
	b := g / bucketNs
	if i, ok := k.buckets[b]; ok {
		if d >= k.points[i].d {
			return
		}
		k.points[i] = clockPoint{g, d}
	} else {
		k.buckets[b] = len(k.points)
		k.points = append(k.points, clockPoint{g, d})
	}
	k.newest = max(k.newest, g)
	k.dirty = true
	if len(k.points) > pruneAtSize {
		k.prune()
	}
}

func (k *gpuClock) prune() {
	k.points = slices.DeleteFunc(k.points, func(p clockPoint) bool { return p.g+windowNs < k.newest })
	clear(k.buckets)
	for i, p := range k.points {
		k.buckets[p.g/bucketNs] = i
	}
}

// fit brings the envelope up to date; unless forced, only if enough has come since the last time.
func (k *gpuClock) fit(force bool) {
	if !k.dirty || !force && k.envelope != nil && k.newest < k.fitted+refitNs {
		return
	}
	k.dirty, k.fitted = false, k.newest
	e := append(k.envelope[:0], k.points...)
	slices.SortFunc(e, func(a, b clockPoint) int { return cmp.Compare(a.g, b.g) })
	k.g0 = e[0].g
	k.slope, k.drift = slopeBelow(e)
	for i := range e {
		e[i].d -= k.drifted(e[i].g)
	}
	for i := 1; i < len(e); i++ {
		e[i].d = min(e[i].d, e[i-1].d+k.cone(e[i-1].g, e[i].g))
	}
	for i := len(e) - 2; i >= 0; i-- {
		e[i].d = min(e[i].d, e[i+1].d+k.cone(e[i].g, e[i+1].g))
	}
	k.envelope = e
}

// drifted is the share of the offset at g that the measured slope explains.
func (k *gpuClock) drifted(g uint64) int64 {
	return int64(math.Round(k.slope * float64(int64(g-k.g0))))
}

// cone is how far apart the offsets at two stamps can be.
func (k *gpuClock) cone(from, to uint64) int64 { return int64(math.Ceil(k.drift * float64(to-from))) }

// slopeBelow measures the drift of points sorted by stamp, and tells what it may be off by.
func slopeBelow(pts []clockPoint) (slope, drift float64) {
	x := func(p clockPoint) float64 { return float64(p.g - pts[0].g) }
	y := func(p clockPoint) float64 { return float64(p.d - pts[0].d) }
	hull := make([]clockPoint, 0, 16)
	mean := 0.0
	for _, p := range pts {
		mean += x(p) / float64(len(pts))
		for len(hull) >= 2 {
			a, b := hull[len(hull)-2], hull[len(hull)-1]
			if (x(b)-x(a))*(y(p)-y(a))-(y(b)-y(a))*(x(p)-x(a)) > 0 {
				break
			}
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, p)
	}
	for i := 1; i < len(hull); i++ {
		if x(hull[i]) < mean && i < len(hull)-1 {
			continue
		}
		length := x(hull[i]) - x(hull[i-1])
		slope = (y(hull[i]) - y(hull[i-1])) / length
		if length >= slopeAfter && math.Abs(slope) <= maxSlope {
			return slope, delayNs/length + leastDrift
		}
		break
	}
	return 0, maxDrift
}

// host maps a stamp to the time line; false if no pair has come yet.
func (k *gpuClock) host(g uint64) (uint64, bool) {
	e := k.envelope
	if len(e) == 0 {
		return 0, false
	}
	g = k.nanoseconds(g)
	i, _ := slices.BinarySearchFunc(e, g, func(p clockPoint, g uint64) int { return cmp.Compare(p.g, g) })
	offset := int64(math.MaxInt64)
	if i < len(e) {
		offset = e[i].d + k.cone(g, e[i].g)
	}
	if i > 0 {
		offset = min(offset, e[i-1].d+k.cone(e[i-1].g, g))
	}
	return g + uint64(offset+k.drifted(g)), true
}
