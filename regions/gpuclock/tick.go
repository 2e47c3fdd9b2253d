// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math"
	"slices"
)

// tickLength estimates the length of a tick of a GPU's counter: the slope of the line that lies below the pairs (stamp,
// time of its report) and comes nearest to the quickest of them. It is final when two estimates in a row, the second
// over half as long again, agree to within a clock's drift.
type tickLength struct {
	ns    float64 // 0 until it is known
	g0    uint64  // nanoseconds(g0) is origin
	pairs []tickPair
	every uint64 // minimum time between two kept pairs
	next  uint64 // span at which to try again
	last  float64
}

type tickPair struct{ g, c uint64 }

const (
	firstTickSpan = 20_000_000 // ns: delays are far shorter
	tickAgreement = 2e-4
	maxTickPairs  = 512
	minTickPairs  = 4
	tickOrigin    = 1 << 62 // in the middle of all times, so that no time is negative
)

func (t *tickLength) gpuNanoseconds(g uint64) uint64 {
	return tickOrigin + uint64(int64(math.Round(float64(int64(g-t.g0))*t.ns)))
}

// addPair takes a pair. When the length becomes known it returns all pairs so far.
func (t *tickLength) addPair(g, c uint64) []tickPair {
	n := len(t.pairs)
	if n > 0 && (c < t.pairs[n-1].c+t.every || g < t.pairs[0].g) {
		return nil
	}
	if n == maxTickPairs {
		kept := t.pairs[:0]
		for i := 0; i < n; i += 2 {
			kept = append(kept, t.pairs[i])
		}
		t.every = max(2*t.every, (t.pairs[n-1].c-t.pairs[0].c)/maxTickPairs)
		t.pairs = kept
	}
	t.pairs = append(t.pairs, tickPair{g, c})
	span := c - t.pairs[0].c
	if span < max(t.next, firstTickSpan) || len(t.pairs) < minTickPairs {
		return nil
	}
	t.next = span + span/2
	before := t.last
	t.last = t.estimateTick()
	if before <= 0 || t.last <= 0 || math.Abs(t.last/before-1) > tickAgreement {
		return nil
	}
	t.ns, t.g0 = t.last, t.pairs[0].g
	pairs := t.pairs
	t.pairs = nil
	return pairs
}

// estimateTick returns the length of a tick by all pairs; 0 if they do not determine it.
func (t *tickLength) estimateTick() float64 {
	var f fitScratch
	pairs := slices.Clone(t.pairs)
	slices.SortFunc(pairs, func(a, b tickPair) int {
		if a.g < b.g {
			return -1
		}
		return 1
	})
	for _, p := range pairs {
		if n := len(f.x); n > 0 && float64(p.g-pairs[0].g) == f.x[n-1] {
			f.y[n-1] = min(f.y[n-1], float64(int64(p.c-pairs[0].c)))
			continue
		}
		f.x = append(f.x, float64(p.g-pairs[0].g))
		f.y = append(f.y, float64(int64(p.c-pairs[0].c)))
	}
	if len(f.x) < minTickPairs {
		return 0
	}
	best, least := 0.0, math.Inf(1)
	f.lowerHull()
	for i := 1; i < len(f.hull); i++ {
		a, b := f.hull[i-1], f.hull[i]
		length := (f.y[b] - f.y[a]) / (f.x[b] - f.x[a])
		if spread, _ := agreementSpread(f.x, f.y, length); length > 0 && spread < least {
			best, least = length, spread
		}
	}
	return best
}

// grain measures the rounding of stamps: all differences are its multiples, and no two stamps are closer.
type grain struct {
	last, least, divisor uint64
	seen                 int
}

const (
	maxGrainNs = 1100 // assumed until something smaller has been seen
	grainAfter = 16   // differences whose common divisor is not accidental
)

func (r *grain) addStamp(stamp uint64) {
	d := stamp - r.last
	if stamp < r.last {
		d = r.last - stamp
	}
	if d != 0 && r.last != 0 {
		if r.least == 0 || d < r.least {
			r.least = d
		}
		for a := d; r.divisor != 1; {
			if a == 0 {
				break
			}
			r.divisor, a = a, r.divisor%a
		}
		r.seen++
	}
	r.last = stamp
}

func (r *grain) toNanoseconds(tick float64) float64 {
	switch {
	case r.least == 0:
		return maxGrainNs
	case r.seen >= grainAfter && r.divisor > 1:
		return min(float64(r.divisor)*tick, maxGrainNs)
	}
	return min(float64(r.least)*tick, maxGrainNs)
}
