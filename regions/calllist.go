// SPDX-License-Identifier: Apache-2.0

package regions

import "iter"

// callList holds the calls of a communicator rank without operations so far, in the application's order. The time to
// add or remove a call, or to find those before a group, does not depend on the number of other calls: an application
// may make any number of calls in one group, and any number that never become operations.
type callList struct {
	list    []*call // nil: removed
	removed int     // number of removed calls at the front of the list
	count   int
	newest  int64 // greatest number of a group
	// a call followed one of a later group, as can happen when threads share a communicator
	unordered   bool
	collectives map[int64]int // number of calls that are not messages, by group
}

func (l *callList) addCall(c *call) {
	group := c.groupNumber()
	if l.count == 0 {
		*l = callList{list: l.list[:0], newest: group, collectives: l.collectives}
	}
	if len(l.list) > 2*l.count+64 {
		l.closeGaps()
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

// closeGaps closes the gaps of removed calls.
func (l *callList) closeGaps() {
	kept := l.list[:0]
	for c := range l.allCalls() {
		c.listed = l.removed + len(kept)
		kept = append(kept, c)
	}
	clear(l.list[len(kept):])
	l.list = kept
}

// removeCall removes a call of the list, also during iteration.
func (l *callList) removeCall(c *call) {
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

// allCalls iterates over the calls in order.
func (l *callList) allCalls() iter.Seq[*call] { return l.callsBefore(noGroup) }

// callsBefore iterates over the calls of groups before the given one.
func (l *callList) callsBefore(group int64) iter.Seq[*call] {
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

// middleCall returns a call near the middle of a non-empty list.
func (l *callList) middleCall() *call {
	half := len(l.list) / 2
	for _, c := range l.list[half:] {
		if c != nil {
			return c
		}
	}
	for c := range l.allCalls() {
		return c
	}
	return nil
}

// oneGroup reports whether all calls up to c are in its group.
func (l *callList) oneGroup(c *call) bool {
	return !l.unordered && c.group != nil && len(l.list) > 0 && l.list[0].group == c.group
}
