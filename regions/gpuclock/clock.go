// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math"
	"slices"
	"sort"
)

// docs/gpu.md, "From the GPU's clock to the host's", describes the mapping and its measured accuracy.

// Clock maps the stamps of one GPU onto the host's time line (ns). All communicator ranks of a GPU share it.
//
// Every KernelCh callback gives a pair: a stamp g that the GPU took and the host time c at which NCCL
// reported it, c = g + offset + delay with delay ≥ 0 and otherwise arbitrary (docs/nccl-profiler-api.md §7.5).
// So c − g bounds the offset from above, tightly wherever a report came at once. Every kernel was
// launched before it began: the time of the launch less the stamp of the beginning bounds it from below.
//
// The offset changes slowly (two oscillators) and now and then jumps. So it is a line in pieces:
//
//	segment   from one jump to the next; see jump.go
//	block     64 buckets that have something, or 4 s of it, with a line of its own: fit.go. It is fitted to the block and
//	          its two neighbors, and final when the next block is full
//	bucket    0.26 ms: only the quickest report and the strongest lower bound within it can matter
//
// Between the middles of two blocks their lines are blended, so that the mapping has no steps. The time for a stamp
// does not depend on the number of earlier ones: a bucket is looked up, a line is fitted per block, and the newest two
// blocks again after 50 ms or on demand.
//
// NVIDIA's stamps are nanoseconds. The unit of AMD's is not documented, so the length of a tick is estimated from the
// pairs (tick.go), and each stamp is converted to nanoseconds first.
type Clock struct {
	anyUnit  bool // the length of a tick is to be estimated
	tick     tickLength
	grain    grain
	segments []*segment // oldest first
	ahead    stepAhead
	back     stepBack
	jumps    int    // so far
	wentBack bool   // the last jump went back
	jumpAt   uint64 // host time at which the last jump was first seen
}

// point is the content of a bucket. Differences are host time less stamp.
type point struct {
	g        uint64 // stamp of the quickest report
	d        int64  // upper bound of the offset at g
	g2       uint64 // the same for the second quickest report; 0: none
	d2       int64
	begin    uint64 // stamp of a kernel's beginning; 0: none
	least    int64  // lower bound of the offset at begin
	launched bool   // a lower bound in the bucket is a launch
	sound    bool   // a report in the bucket is beyond doubt
}

const (
	bucketShift = 18 // 2^18 ns ≈ 0.26 ms
	blockPoints = 64
	blockNs     = 4_000_000_000
	refitNs     = 50_000_000 // new time span after which the newest blocks are fitted again
	maxLines    = 4096       // of a segment: 1 min at least
	maxSegments = 8
)

// segment is the time between two jumps.
type segment struct {
	from   uint64 // host time of its first stamp
	points []point
	full   int // the block before points[full] is final, points[full:open] is full
	open   int // points[open:] is the one that grows

	lines   []clockLine // one per block, by stamp
	final   int         // number of lines that will not change
	newest  uint64
	fitted  uint64 // newest at the last fit
	fitTo   int    // points at the last fit
	dirty   bool   // points have come since then
	below   bool   // one of them lies below its line
	scratch fitScratch
}

// New returns the clock of a GPU. Stamps are nanoseconds, or of any unit (anyUnit): then they are mapped once the
// length of a tick is known.
func New(anyUnit bool) *Clock { return &Clock{anyUnit: anyUnit} }

// JumpCount returns how many times the clock, or the host's line, was seen to jump.
func (k *Clock) JumpCount() int { return k.jumps }

// canMap reports whether stamps can be mapped at all.
func (k *Clock) canMap() bool { return !k.anyUnit || k.tick.ns != 0 }

// gpuNanoseconds converts a stamp to nanoseconds of the GPU's clock.
func (k *Clock) gpuNanoseconds(stamp uint64) uint64 {
	if k.anyUnit {
		return k.tick.gpuNanoseconds(stamp)
	}
	return stamp
}

// grainNs returns an upper bound of the rounding of stamps.
func (k *Clock) grainNs() float64 {
	if k.anyUnit {
		return k.grain.toNanoseconds(k.tick.ns)
	}
	return k.grain.toNanoseconds(1)
}

// addStamp takes one pair: a stamp, reported at host time c. 0 is no stamp: NCCL passes it when it never read one. A
// doubtful stamp may be an earlier kernel's, reported later than it seems, so that its upper bound is valid all the
// same. But without other reports the line does not follow such stamps.
func (k *Clock) addStamp(stamp, c uint64, doubtful bool) {
	if stamp == 0 {
		return
	}
	if !doubtful {
		k.grain.addStamp(stamp)
	}
	switch {
	case k.canMap():
		k.addPair(k.gpuNanoseconds(stamp), c, doubtful)
	case !doubtful:
		for _, p := range k.tick.addPair(stamp, c) {
			k.addPair(k.gpuNanoseconds(p.g), p.c, false)
		}
	}
}

func (k *Clock) addPair(g, c uint64, doubtful bool) {
	if len(k.segments) == 0 {
		k.segments = append(k.segments, &segment{})
	}
	s := k.segments[len(k.segments)-1]
	s.fitLine(false, k.grainNs())
	if line := s.newestLine(); line != nil {
		if k.jumpedAhead(line, g, c) {
			return
		}
		k.comparesBack(line, g, c)
	}
	s.addPoint(g, int64(c-g), k.grainNs(), !doubtful)
}

// notBefore takes a lower bound: the kernel that began at a stamp did not begin before host time t, that of its launch
// or of something earlier. The stamp must be that kernel's beyond doubt.
func (k *Clock) notBefore(stamp, t uint64, launch bool) {
	if !k.canMap() || len(k.segments) == 0 {
		return
	}
	g := k.gpuNanoseconds(stamp)
	s := k.segments[len(k.segments)-1]
	i, ok := s.findBucket(g)
	if !ok || t < s.from {
		return
	}
	p := &s.points[i]
	p.launched = p.launched || launch
	if p.begin == 0 || int64(t-g) > p.least {
		p.begin, p.least, s.dirty = g, int64(t-g), true
	}
}

// markDoubtful marks reports from a host time on as doubtful.
func (k *Clock) markDoubtful(t uint64) {
	if n := len(k.segments); n > 0 {
		s := k.segments[n-1]
		for i := range s.points {
			if p := &s.points[i]; p.g+uint64(p.d) >= t || p.g2 != 0 && p.g2+uint64(p.d2) >= t {
				p.sound, s.dirty = false, true
			}
		}
	}
}

// findBucket returns the index of the point of a stamp's bucket, or where it would be.
func (s *segment) findBucket(g uint64) (int, bool) {
	n, b := len(s.points), g>>bucketShift
	switch {
	case n == 0 || b > s.points[n-1].g>>bucketShift:
		return n, false
	case b == s.points[n-1].g>>bucketShift:
		return n - 1, true
	}
	i := sort.Search(n, func(i int) bool { return s.points[i].g>>bucketShift >= b })
	return i, i < n && s.points[i].g>>bucketShift == b
}

func (s *segment) addPoint(g uint64, d int64, grain float64, sound bool) {
	i, ok := s.findBucket(g)
	if line := s.newestLine(); line != nil && d < line.offsetAt(g) {
		s.below = true
	}
	switch {
	case ok:
		p := &s.points[i]
		p.sound = p.sound || sound
		switch {
		case d < p.d:
			p.g2, p.d2 = p.g, p.d
			p.g, p.d = g, d
		case p.g2 == 0 || d < p.d2:
			p.g2, p.d2 = g, d
		default:
			return
		}
	case i == len(s.points):
		grown := s.closeBlock(g, grain)
		s.points = append(s.points, point{g: g, d: d, sound: sound})
		s.newest, s.dirty = g, true
		if grown {
			s.fitLine(true, grain)
		}
		return
	case i == 0 && s.final > 0:
		return // in a final block
	default:
		s.points = slices.Insert(s.points, i, point{g: g, d: d, sound: sound})
		if i <= s.full && s.full > 0 {
			s.full++
		}
		if i <= s.open && s.open > 0 {
			s.open++
		}
	}
	s.dirty = true
}

// closeBlock ends the open block if it is full or g is too far from its begin. The newest blocks then have no lines.
func (s *segment) closeBlock(g uint64, grain float64) bool {
	n := len(s.points)
	if n == s.open || n-s.open < blockPoints && g-s.points[s.open].g < blockNs {
		return false
	}
	s.lines = s.lines[:s.final]
	if s.open > s.full {
		s.lines = append(s.lines, s.fitBlock(s.full, s.open, 0, n, grain))
		s.final++
	}
	if s.final > maxLines {
		s.lines = slices.Delete(s.lines, 0, maxLines/4)
		s.final -= maxLines / 4
	}
	kept := copy(s.points, s.points[s.full:])
	s.points = s.points[:kept]
	s.full, s.open = s.open-s.full, kept
	return true
}

// FitLine updates the mapping of the newest stamps; unless forced, only if enough reports are new.
func (k *Clock) FitLine(force bool) {
	if n := len(k.segments); n > 0 {
		k.segments[n-1].fitLine(force, k.grainNs())
	}
}

func (s *segment) fitLine(force bool, grain float64) {
	n := len(s.points)
	if !s.dirty || n == 0 || !force && !s.below && n < 2*s.fitTo && s.newest < s.fitted+refitNs {
		return
	}
	s.dirty, s.below, s.fitted, s.fitTo = false, false, s.newest, n
	s.lines = s.lines[:s.final]
	if s.open > s.full {
		s.lines = append(s.lines, s.fitBlock(s.full, s.open, 0, n, grain))
	}
	if n > s.open {
		s.lines = append(s.lines, s.fitBlock(s.open, n, s.full, n, grain))
	}
}

// fitBlock fits the line of the block points[from:to] to points[first:end], which contains the block and its neighbors.
// If these do not lie on one line, because the rate of a clock has changed, the block is fitted alone; its remaining
// bend counts as uncertainty. A block with doubtful reports only has the previous line.
func (s *segment) fitBlock(from, to, first, end int, grain float64) clockLine {
	var before *clockLine
	if n := len(s.lines); n > 0 {
		before = &s.lines[n-1]
	}
	middle := s.points[from].g + (s.points[to-1].g-s.points[from].g)/2
	if before != nil && !slices.ContainsFunc(s.points[from:to], func(p point) bool { return p.sound }) {
		return before.moveTo(middle)
	}
	l := s.scratch.fitPoints(s.points[first:end], middle, before, grain)
	if l.bend == 0 || to-from == end-first || to-from < quickest {
		return l
	}
	if alone := s.scratch.fitPoints(s.points[from:to], middle, before, grain); alone.bend < l.bend {
		return alone
	}
	return l
}

// newestLine returns the newest line, nil if there is none yet.
func (s *segment) newestLine() *clockLine {
	if n := len(s.lines); n > 0 {
		return &s.lines[n-1]
	}
	return nil
}

// lineAt returns the index of the first line whose middle is not before a stamp, usually one of the newest.
func (s *segment) lineAt(g uint64) int {
	from, to := 0, len(s.lines)
	for step := 1; from < to; step *= 2 {
		i := max(to-step, from)
		if s.lines[i].g < g {
			from = i + 1
			break
		}
		to = i
	}
	for from < to {
		if i := from + (to-from)/2; s.lines[i].g < g {
			from = i + 1
		} else {
			to = i
		}
	}
	return from
}

// mapStamp maps a stamp (ns), and returns by how much the time may be off.
func (s *segment) mapStamp(g uint64) (t uint64, off Margin, ok bool) {
	n := len(s.lines)
	if n == 0 {
		return 0, Margin{}, false
	}
	i := s.lineAt(g)
	if i == 0 || i == n {
		l := &s.lines[max(i-1, 0)]
		return g + uint64(l.offsetAt(g)), l.uncertaintyAt(g), true
	}
	a, b := &s.lines[i-1], &s.lines[i]
	w := float64(g-a.g) / float64(b.g-a.g)
	// Offsets are large, their difference is not.
	oa, ob := a.offsetAt(g), b.offsetAt(g)
	t = g + uint64(oa+int64(math.Round(w*float64(ob-oa))))
	// Outside its block a line may be wrong by its distance to the other one.
	ua, ub, between := a.uncertaintyAt(g), b.uncertaintyAt(g), min(w, 1-w)*math.Abs(float64(ob-oa))
	return t, Margin{(1-w)*ua.most + w*ub.most + between, (1-w)*ua.usual + w*ub.usual + between}, true
}

// HostTime maps a stamp that was reported at host time seen to the time line, and returns by how much the time may be
// off. ok is false before the first pair, or while the length of a tick is unknown.
func (k *Clock) HostTime(stamp, seen uint64) (t uint64, uncertainty Margin, ok bool) {
	if !k.canMap() {
		return 0, Margin{}, false
	}
	g := k.gpuNanoseconds(stamp)
	for i := len(k.segments) - 1; i >= 0; i-- {
		s := k.segments[i]
		at, off, found := s.mapStamp(g)
		if !found {
			continue
		}
		t, uncertainty, ok = at, off, true
		// Taken or reported before the jump: it belongs to an older segment, unless that fits no better.
		slack := uint64(uncertainty.most) + stepSlackNs
		if i > 0 && (seen < s.from || t+slack < s.from || t > seen+slack) {
			continue
		}
		return t, uncertainty, true
	}
	return t, uncertainty, ok
}
