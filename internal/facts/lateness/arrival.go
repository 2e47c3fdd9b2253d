// SPDX-License-Identifier: Apache-2.0

// Package lateness compares when the members of a collective came: who was late, and how long did others wait for it?
package lateness

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// WaitKind is a cause of waiting, as Scalasca defines them.
type WaitKind uint8

// Causes of waiting: in collectives, then in messages.
const (
	WaitCollective    WaitKind = iota // all wait for the last
	WaitLateBroadcast                 // the others wait for the root
	WaitEarlyReduce                   // the root waits for the last of the others
	WaitLateSender
	WaitLateReceiver
	NumWaitKinds
)

var waitKindNames = [NumWaitKinds]string{"collective", "late broadcast", "early reduce", "late sender", "late receiver"}

// String is the cause as reports name it.
func (k WaitKind) String() string { return waitKindNames[k] }

// WaitKindNamed returns the cause with a name that String returned; ok is false for an unknown name.
func WaitKindNamed(name string) (WaitKind, bool) {
	k := slices.Index(waitKindNames[:], name)
	return WaitKind(max(k, 0)), k >= 0
}

// WaitKindOf is the cause for which members of a collective wait; nil stands for one that NCCL does not have.
func WaitKindOf(c *regions.Collective) WaitKind {
	switch {
	case c == nil:
		return WaitCollective
	case c.Role == otf2.RegionRoleCollOne2All:
		return WaitLateBroadcast
	case c.Role == otf2.RegionRoleCollAll2One:
		return WaitEarlyReduce
	}
	return WaitCollective
}

// Arrival is when one member came to a collective, and left it.
type Arrival struct {
	Rank       int // in the communicator
	Begin, End otf2.Timestamp
	Source     facts.Source // of these times
	Root       bool         // it is the collective's root
	Certain    bool         // its end is by a GPU's times, and not of a part of the kernel: NCCL's operation had ended
	Wait       uint64       // ns that it waited; Compare sets it
}

// Result describes how late the members of a collective arrived.
type Result struct {
	Kind     WaitKind
	Source   facts.Source // the kind of times in which members were compared
	Compared int          // members that have such times; the others have no wait
	Last     int          // index of the member that came last, of equal ones that of the lowest rank
	// index of the member that the others waited for: the root or the last of the others in a rooted collective, but
	// the last member if it held up any of them
	Awaited    int
	First, End otf2.Timestamp // when the first came, and the last left
	Caused     uint64         // ns that the others waited, together
}

// Comparable chooses the kind of times in which members are compared: the best kind that at least two members have. If
// the archive does not state sources (unstated), all times count as one kind.
func Comparable(members []Arrival, unstated bool) (facts.Source, bool) {
	var n [facts.NumSources]int
	for i := range members {
		n[members[i].Source]++
	}
	for s := facts.NumSources - 1; s > facts.SourceUnknown; s-- {
		if s.HasPlace() && n[s] > 1 {
			return s, true
		}
	}
	return facts.SourceUnknown, unstated && n[facts.SourceUnknown] > 1
}

// contradicts reports whether the member ended so long before `by`, the begin of the member that it had to wait for,
// that its operation would have fitted in between once more. The clocks were then not synchronized, and the wait is
// unknown.
func (a *Arrival) contradicts(by otf2.Timestamp) bool {
	return a.Certain && a.End > a.Begin && a.End < by && by-a.End > a.End-a.Begin
}

// HeldUp returns for how long (ns) a member was held up in an operation that took `longer` ns more, if the member left
// it `earlier` ns before the last member.
func HeldUp(longer, earlier uint64) uint64 { return longer - min(longer, earlier) }

// Compare finds the member that arrived last, and sets the wait of each member: from its own begin to the begin of the
// member that it had to wait for, but not beyond its own end. In a Broadcast or Scatter that is the root; the root of a
// Reduce or Gather waits for the last of the others. NCCL passes data from member to member, so that in its rooted
// collectives a member that has not ended yet also waits for the last arrival of all. The paths inside MPI's
// collectives are unknown: only the root waits, or is waited for. ok is false if the members' times cannot be compared,
// or contradict each other.
func Compare(kind WaitKind, members []Arrival, unstated bool) (l Result, ok bool) {
	l = Result{Kind: kind, Last: -1, Awaited: -1}
	if l.Source, ok = Comparable(members, unstated); !ok {
		return l, false
	}
	root, others := -1, -1
	later := func(i, j int) bool {
		return j < 0 || members[i].Begin > members[j].Begin || members[i].Begin == members[j].Begin &&
			members[i].Rank < members[j].Rank
	}
	for i := range members {
		m := &members[i]
		m.Wait = 0
		if m.Source != l.Source {
			continue
		}
		if l.Compared == 0 || m.Begin < l.First {
			l.First = m.Begin
		}
		l.Compared++
		l.End = max(l.End, m.End)
		if later(i, l.Last) {
			l.Last = i
		}
		if m.Root {
			root = i
		} else if later(i, others) {
			others = i
		}
	}
	l.Awaited = l.Last
	switch kind {
	case WaitLateBroadcast:
		l.Awaited = root
	case WaitEarlyReduce:
		if l.Awaited = others; root < 0 {
			l.Awaited = -1
		}
	}
	if l.Awaited < 0 {
		return l, false
	}
	by, last, held := members[l.Awaited].Begin, members[l.Last].Begin, false
	for i := range members {
		m := &members[i]
		switch {
		case m.Source != l.Source:
			continue
		case kind != WaitCollective && m.Source != facts.SourceCall && i != l.Last && m.Begin < last && m.End >= last:
			m.Wait, held = uint64(last-m.Begin), true
		case i != l.Awaited && m.Begin < by && (kind != WaitEarlyReduce || i == root):
			if m.contradicts(by) {
				for i := range members {
					members[i].Wait = 0
				}
				return l, false
			}
			m.Wait = min(uint64(by-m.Begin), uint64(max(m.End, m.Begin)-m.Begin))
		}
		l.Caused += m.Wait
	}
	if held {
		l.Awaited = l.Last
	}
	return l, true
}
