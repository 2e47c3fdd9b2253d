// SPDX-License-Identifier: Apache-2.0

package transfers

import "math/bits"

// In short operations even a negligible delay is a tenth of the time, so many of them count as slow although it costs
// nothing. Slow operations are therefore counted by the size of the excess.

// excessLevel sums the operations in which a link or GPU was slow by about the same time.
type excessLevel struct {
	level       int // see levelOf
	times       uint64
	took, usual float64 // ns: taken, and expected by the median of the others
	steps       float64
}

// levelOf returns the level of an excess in ns; each level spans a factor of four.
func levelOf(ns uint64) int { return bits.Len64(ns) / 2 }

// addExcess counts an operation in which the link or GPU was slow.
func (t *tally) addExcess(excess uint64, once excessLevel) {
	level := levelOf(excess)
	for i := range t.slow {
		if s := &t.slow[i]; s.level == level {
			s.add(1, &once)
			return
		}
	}
	once.level, once.times = level, 1
	t.slow = append(t.slow, once)
}

func (s *excessLevel) add(times uint64, o *excessLevel) {
	s.times, s.took, s.usual, s.steps = s.times+times, s.took+o.took, s.usual+o.usual, s.steps+o.steps
}

// mostOfExcess is the part of the total excess that the examined operations make up.
const mostOfExcess = 0.9

// mainLevel returns the highest level for which the operations from it on make up most of the excess.
func (t *tally) mainLevel() (level int) {
	all := 0.0
	for i := range t.slow {
		all += t.slow[i].took - t.slow[i].usual
		level = max(level, t.slow[i].level)
	}
	for ; level > 0; level-- {
		if s := t.sumFrom(level); s.took-s.usual >= mostOfExcess*all {
			break
		}
	}
	return level
}

// sumFrom sums the operations of a level and all higher ones.
func (t *tally) sumFrom(level int) (sum excessLevel) {
	sum.level = level
	for i := range t.slow {
		if s := &t.slow[i]; s.level >= level {
			sum.add(s.times, s)
		}
	}
	return sum
}
