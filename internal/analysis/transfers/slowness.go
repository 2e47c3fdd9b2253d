// SPDX-License-Identifier: Apache-2.0

package transfers

import "math/bits"

// In short operations a trifle is a tenth of their time: many are slow by that much, and it costs nothing. So how often
// somebody was slow counts by how much it was.

// slowness is the operations in which somebody was slow by about as much.
type slowness struct {
	level       int // of by how much
	times       uint64
	took, usual float64 // ns, and what the others would have taken
	steps       float64
}

// levelOf is that of ns: each is of four times as much as the one before.
func levelOf(ns uint64) int { return bits.Len64(ns) / 2 }

// was counts an operation in which it was slow.
func (t *tally) was(excess uint64, once slowness) {
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

func (s *slowness) add(times uint64, o *slowness) {
	s.times, s.took, s.usual, s.steps = s.times+times, s.took+o.took, s.usual+o.usual, s.steps+o.steps
}

// mostOfExcess is the part of all by which somebody was slow, that the times make up that are looked at.
const mostOfExcess = 0.9

// matters is the level from which on the times make up most of that by which it was slow.
func (t *tally) matters() (level int) {
	all := 0.0
	for i := range t.slow {
		all += t.slow[i].took - t.slow[i].usual
		level = max(level, t.slow[i].level)
	}
	for ; level > 0; level-- {
		if s := t.from(level); s.took-s.usual >= mostOfExcess*all {
			break
		}
	}
	return level
}

// from is the times that it was slow by a level or more.
func (t *tally) from(level int) (sum slowness) {
	sum.level = level
	for i := range t.slow {
		if s := &t.slow[i]; s.level >= level {
			sum.add(s.times, s)
		}
	}
	return sum
}
