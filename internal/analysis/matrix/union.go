// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// union is the time covered by at least one of many intervals, in bounded memory. Intervals arrive approximately in
// the order of their ends. If one begins before time that has already been added up, only the rest of it counts.
type union struct {
	list  []interval
	done  uint64         // of intervals that are no longer in list
	until otf2.Timestamp // the end of those intervals
}

type interval struct{ begin, end otf2.Timestamp }

// maxIntervals limits the separate intervals that are kept.
const maxIntervals = 512

func (u *union) add(begin, end otf2.Timestamp) {
	begin = max(begin, u.until)
	if end <= begin {
		return
	}
	if n := len(u.list); n > 0 && begin >= u.list[n-1].begin && begin <= u.list[n-1].end { // the usual case
		u.list[n-1].end = max(u.list[n-1].end, end)
		return
	}
	u.list = append(u.list, interval{begin, end})
	if len(u.list) < 2*maxIntervals {
		return
	}
	u.order()
	if n := len(u.list) - maxIntervals; n > 0 {
		for _, i := range u.list[:n] {
			u.done += uint64(i.end - i.begin)
		}
		u.until = u.list[n-1].end
		u.list = u.list[:copy(u.list, u.list[n:])]
	}
}

// order sorts the intervals and joins those that touch.
func (u *union) order() {
	slices.SortFunc(u.list, func(a, b interval) int {
		return cmp.Or(
			cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	out := u.list[:0]
	for _, i := range u.list {
		if n := len(out); n > 0 && i.begin <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, i.end)
			continue
		}
		out = append(out, i)
	}
	u.list = out
}

// time returns the sum in ns.
func (u *union) time() uint64 {
	u.order()
	sum := u.done
	for _, i := range u.list {
		sum += uint64(i.end - i.begin)
	}
	return sum
}
