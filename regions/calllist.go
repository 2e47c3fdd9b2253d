// SPDX-License-Identifier: Apache-2.0

package regions

import "iter"

// callList holds the calls of a communicator rank of which no operation has been seen, in the order of the application.
// A call is added and removed, and those before a group are found, in a time that does not grow with the number of
// others: an application may make any number of calls in one group, and any number that become no operation.
type callList struct {
	list    []*call // nil: removed
	removed int     // in front of the list
	count   int
	newest  int64 // greatest number of a group
	// a call came after one of a later group, as threads that share a communicator may have it
	unordered   bool
	collectives map[int64]int // calls that are no messages, by the number of their group
}

func (l *callList) add(c *call) {
	group := c.groupNumber()
	if l.count == 0 {
		*l = callList{list: l.list[:0], newest: group, collectives: l.collectives}
	}
	if len(l.list) > 2*l.count+64 {
		l.compact()
	}
	c.listed = l.removed + len(l.list)
	l.list, l.count = append(l.list, c), l.count+1
	l.unordered = l.unordered || group < l.newest
	l.newest = max(l.newest, group)
	if !c.p2p {
		if l.collectives == nil {
			l.collectives = make(map[int64]int)
		}
		l.collectives[group]++
	}
}

// compact closes the gaps of calls that are removed.
func (l *callList) compact() {
	kept := l.list[:0]
	for c := range l.all() {
		c.listed = l.removed + len(kept)
		kept = append(kept, c)
	}
	clear(l.list[len(kept):])
	l.list = kept
}

// remove takes out a call that is in the list. One that is gone over may be.
func (l *callList) remove(c *call) {
	l.list[c.listed-l.removed] = nil
	l.count--
	for len(l.list) > 0 && l.list[0] == nil {
		l.list, l.removed = l.list[1:], l.removed+1
	}
	if group := c.groupNumber(); !c.p2p {
		if l.collectives[group]--; l.collectives[group] == 0 {
			delete(l.collectives, group)
		}
	}
}

// all are the calls in their order.
func (l *callList) all() iter.Seq[*call] { return l.before(noGroup) }

// before are the calls of groups before the given one.
func (l *callList) before(group int64) iter.Seq[*call] {
	return func(yield func(*call) bool) {
		for _, c := range l.list {
			switch {
			case c == nil:
			case c.groupNumber() < group:
				if !yield(c) {
					return
				}
			case !l.unordered:
				return
			}
		}
	}
}

// middle is a call about the middle of a list that has some.
func (l *callList) middle() *call {
	half := len(l.list) / 2
	for _, c := range l.list[half:] {
		if c != nil {
			return c
		}
	}
	for c := range l.all() {
		return c
	}
	return nil
}

// oneGroup reports whether all calls up to one of them are of its group.
func (l *callList) oneGroup(c *call) bool {
	return !l.unordered && c.group != nil && len(l.list) > 0 && l.list[0].group == c.group
}
