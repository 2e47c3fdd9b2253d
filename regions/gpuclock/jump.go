// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math"
	"slices"
)

// Jumps of a GPU's clock, or of the host's line, begin a new segment.
//
// After a jump ahead of the GPU's clock, reports seem to come before their stamps were taken. So does the first quick
// report after many late ones, as on a starved host: that is not a jump as long as one line lies below all reports and
// above all launches. Because a single stamp can be invalid, three pairs must agree.
//
// After a jump back, reports seem to come late, and kernels seem to begin before their launch. So they do, far more
// often, when NCCL reports stamps of earlier kernels because its counters have diverged (docs/nccl-profiler-api.md
// §7.4); the lag is even constant if kernels run at regular intervals, or each is launched when the previous one has
// ended. But those stamps come in the order of kernels, and none twice. So a jump back needs a kernel that began before
// earlier ones of its channel had ended, with a new stamp. In addition, there must be many launches, no report since
// the first of them may fit the old line, and all must fit one new line. A jump back by less than the pause in which it
// happens is not found.
const (
	stepSlackNs   = 10_000       // beyond the uncertainty
	aheadPoints   = 2 * quickest // points that a line must have been fitted to
	aheadPairs    = 3
	lateBeyond    = 15 // times the uncertainty of the line: all reports were as late by a chance of one in a million
	aheadSpreadNs = 500_000
	backPlans     = 8
	backPairs     = 16
	backSpreadNs  = 500_000
	maxDoubts     = 64
	agreeingPairs = 8 // that fit the old line: the others were invalid
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
	most    float64 // largest time from a kernel's begin to its launch
	pairs   []clockPair
	agree   int
}

// jumpedAhead takes a pair if it cannot belong to the current segment.
func (k *Clock) jumpedAhead(line *clockLine, g, c uint64) bool {
	a := &k.ahead
	above := line.heightAbove(g, int64(c-g))
	if line.points < aheadPoints || above > -line.jumpThreshold(g)-stepSlackNs {
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
	k.beginSegment(pairs, false, pairs[0].c)
	return true
}

// jumpThreshold returns by how much a report must lie below the line for a jump: one line for both would lie below the
// limit of launches. Reports without such a limit may all have been late, unless the distance is many times the line's
// uncertainty.
func (l *clockLine) jumpThreshold(g uint64) float64 {
	x := float64(int64(g - l.g))
	return min(math.Hypot(lateBeyond*l.stat, 3*l.slopeOff.most*(x-l.pivot)),
		l.limit+l.slopeOff.most*math.Abs(x-l.limitAt))
}

// isJumpBack takes a kernel that seems to have begun before its launch, at host time t, and is otherwise plausible;
// crossed: it began before the end of an earlier one. It reports whether the clock has jumped.
func (k *Clock) isJumpBack(stamp, t uint64, crossed bool) bool {
	if !k.canMap() || len(k.segments) == 0 {
		return false
	}
	s := k.segments[len(k.segments)-1]
	line := s.newestLine()
	if line == nil {
		return false
	}
	g, b := k.gpuNanoseconds(stamp), &k.back
	if b.plans++; b.plans == 1 {
		b.since = t
	}
	b.crossed = b.crossed || crossed
	b.most = max(b.most, line.heightAbove(g, int64(t-g)))
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
	k.beginSegment(b.pairs, true, b.since)
	return true
}

// dismissJumpBack states that stamps have turned out to be those of other kernels: they were not early because of a
// jump.
func (k *Clock) dismissJumpBack() { k.back = stepBack{} }

// comparesBack compares a pair with the old line while a jump back is possible.
func (k *Clock) comparesBack(line *clockLine, g, c uint64) {
	b := &k.back
	if b.plans == 0 {
		return
	}
	above := line.heightAbove(g, int64(c-g))
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

// beginSegment begins a new segment with its first pairs.
func (k *Clock) beginSegment(pairs []clockPair, back bool, at uint64) {
	k.wentBack, k.jumpAt = back, at
	old := k.segments[len(k.segments)-1]
	grain := k.grainNs()
	old.fitLine(true, grain)
	old.points, old.final = nil, len(old.lines)
	slices.SortFunc(pairs, func(a, b clockPair) int {
		if a.g < b.g {
			return -1
		}
		return 1
	})
	s := &segment{}
	for _, p := range pairs {
		s.addPoint(p.g, int64(p.c-p.g), grain, true)
	}
	s.fitLine(true, grain)
	s.from, _, _ = s.mapStamp(pairs[0].g)
	s.from = max(s.from, old.from)
	k.segments = append(k.segments, s)
	if len(k.segments) > maxSegments {
		k.segments = slices.Delete(k.segments, 0, 1)
	}
	k.jumps++
	k.ahead, k.back = stepAhead{}, stepBack{}
}
