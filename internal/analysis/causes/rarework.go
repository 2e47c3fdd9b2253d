// SPDX-License-Identifier: Apache-2.0

package causes

// The work that a rank did a few times only: it loads data, compiles a kernel, creates a communicator. Ranks that do
// such work, or begin with it, do not work longer than others from iteration to iteration.

// LeastTimes is the least number of occasions that are a habit. Fewer are rare, and may be chance.
const LeastTimes = 5

// longest has the longest of a rank's steps, the longest first. A step is the work before an operation, since the
// operation before it.
type longest [LeastTimes]struct {
	before uint32 // the operation before, as a part of the rank
	ns     float64
	own    [ownKinds]float64
}

// add adds a step. Of those that follow the same operation, the longest counts: they contain each other.
func (l *longest) add(before uint32, own [ownKinds]float64) {
	ns, last := sum(own[:]), len(l)-1
	at := last
	for i := range l {
		if l[i].before == before && l[i].ns > 0 {
			at = i
			break
		}
	}
	if ns <= l[at].ns {
		return
	}
	for ; at > 0 && l[at-1].ns < ns; at-- {
		l[at] = l[at-1]
	}
	l[at].before, l[at].ns, l[at].own = before, ns, own
}

// rare returns by how much the longest steps exceed the one that follows them.
func (l *longest) rare() (own [ownKinds]float64) {
	usual := l[LeastTimes-1].ns
	for i := range l[:LeastTimes-1] {
		if s := &l[i]; s.ns > 0 {
			for k, ns := range s.own {
				own[k] += ns * (1 - usual/s.ns)
			}
		}
	}
	return own
}
