// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math"
	"slices"
)

// Jumps of a GPU's clock, or of the host's line, begin a new segment.
//
// A jump ahead of the GPU's clock makes reports seem to come before their stamps were taken. So does the first quick
// report after many late ones, as on a starved host: that is no jump as long as one line lies below all reports and
// above all launches. And a stamp can be garbage: three pairs that agree are asked for.
//
// A jump back makes reports seem to come late, and kernels to begin before their launch. So do the stamps of earlier
// kernels that NCCL hands out when its counters have parted (docs/nccl-profiler-api.md §7.4), which is far more
// frequent; and with the same lag for all, where kernels run at an even beat, or each is launched when the one before
// has ended. But those come in the order of kernels, and none twice. So a kernel must have begun before earlier ones of
// its channel had ended, with a stamp not seen before. And many launches must have come, none of the reports since the
// first of them may fit the old line, and all must fit one new line. A jump back by less than the pause in which it
// happens is not found.
const (
	stepSlackNs   = 10_000       // beyond the uncertainty
	aheadPoints   = 2 * quickest // that a line must have been fitted to
	aheadPairs    = 3
	lateBeyond    = 15 // times the uncertainty of the line: all reports were as late by a chance of one in a million
	aheadSpreadNs = 500_000
	backPlans     = 8
	backPairs     = 16
	backSpreadNs  = 500_000
	maxDoubts     = 64
	agreeingPairs = 8 // that fit the old line: what did not was garbage
)

type clockPair struct {
	g, c  uint64
	above float64 // the old line
}

type stepAhead struct {
	pairs []clockPair
	agree int
}

type stepBack struct {
	plans   int
	since   uint64  // launch of the first of them
	crossed bool    // one of them began before an earlier kernel had ended
	most    float64 // by which a launch was after the kernel's beginning
	pairs   []clockPair
	agree   int
}

// jumpedAhead takes a pair if it cannot be of the present segment.
func (k *Clock) jumpedAhead(line *clockLine, g, c uint64) bool {
	a := &k.ahead
	above := line.above(g, int64(c-g))
	if line.points < aheadPoints || above > -line.contradicted(g)-stepSlackNs {
		if len(a.pairs) > 0 {
			if a.agree++; a.agree >= agreeingPairs {
				*a = stepAhead{}
			}
		}
		return false
	}
	a.agree = 0
	if len(a.pairs) >= maxDoubts {
		a.pairs = a.pairs[1:]
	}
	a.pairs = append(a.pairs, clockPair{g, c, above})
	near := 0
	for _, p := range a.pairs {
		if math.Abs(p.above-above) < aheadSpreadNs {
			near++
		}
	}
	if near < aheadPairs {
		return true
	}
	pairs := slices.DeleteFunc(a.pairs, func(p clockPair) bool { return math.Abs(p.above-above) >= aheadSpreadNs })
	k.jump(pairs, false, pairs[0].c)
	return true
}

// contradicted is by how much a report must lie below the line for both not to be of one line: the line would be below
// what launches allow. What they do not bound can all have been late, unless it is by many times what the line may be
// off by.
func (l *clockLine) contradicted(g uint64) float64 {
	x := float64(int64(g - l.g))
	return min(math.Hypot(lateBeyond*l.stat, 3*l.slopeOff.most*(x-l.pivot)),
		l.limit+l.slopeOff.most*math.Abs(x-l.limitAt))
}

// early takes a kernel that seems to have begun before its launch, at host time t, and has nothing else against it but
// that it may have crossed: begun before the end of an earlier one. It reports whether the clock has turned out to have
// jumped.
func (k *Clock) early(stamp, t uint64, crossed bool) bool {
	if !k.known() || len(k.segments) == 0 {
		return false
	}
	s := k.segments[len(k.segments)-1]
	line := s.live()
	if line == nil {
		return false
	}
	g, b := k.nanoseconds(stamp), &k.back
	if b.plans++; b.plans == 1 {
		b.since = t
	}
	b.crossed = b.crossed || crossed
	b.most = max(b.most, line.above(g, int64(t-g)))
	if b.plans < backPlans || len(b.pairs) < backPairs || !b.crossed {
		return false
	}
	least := math.Inf(1)
	for _, p := range b.pairs {
		least = min(least, p.above)
	}
	if least < b.most-stepSlackNs || least > b.most+backSpreadNs {
		return false
	}
	k.jump(b.pairs, true, b.since)
	return true
}

// refuted tells that stamps have turned out to be those of other kernels: what made them seem early was no jump.
func (k *Clock) refuted() { k.back = stepBack{} }

// comparesBack holds a pair against the old line while there is doubt.
func (k *Clock) comparesBack(line *clockLine, g, c uint64) {
	b := &k.back
	if b.plans == 0 {
		return
	}
	above := line.above(g, int64(c-g))
	if above < b.most/2 {
		if b.agree++; b.agree >= aheadPairs {
			*b = stepBack{}
		}
		return
	}
	if len(b.pairs) >= maxDoubts {
		b.pairs = b.pairs[1:]
	}
	b.pairs = append(b.pairs, clockPair{g, c, above})
}

// jump begins a new segment with pairs that are its first.
func (k *Clock) jump(pairs []clockPair, back bool, at uint64) {
	k.wentBack, k.jumpAt = back, at
	old := k.segments[len(k.segments)-1]
	grain := k.grainNs()
	old.fit(true, grain)
	old.points, old.final = nil, len(old.lines)
	slices.SortFunc(pairs, func(a, b clockPair) int {
		if a.g < b.g {
			return -1
		}
		return 1
	})
	s := &segment{}
	for _, p := range pairs {
		s.add(p.g, int64(p.c-p.g), grain, true)
	}
	s.fit(true, grain)
	s.from, _, _ = s.at(pairs[0].g)
	s.from = max(s.from, old.from)
	k.segments = append(k.segments, s)
	if len(k.segments) > maxSegments {
		k.segments = slices.Delete(k.segments, 0, 1)
	}
	k.jumps++
	k.ahead, k.back = stepAhead{}, stepBack{}
}
