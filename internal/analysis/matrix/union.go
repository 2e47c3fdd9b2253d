// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// union is the time during which at least one of many intervals lasted, in bounded memory. Intervals come about in
// the order of their ends. One that begins before what has already been added up counts from there on only.
type union struct {
	list  []interval
	done  uint64         // of those that are not in list any more
	until otf2.Timestamp // up to where they reached
}

type interval struct{ begin, end otf2.Timestamp }

// maxIntervals is how many separate intervals are kept.
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

// time is the sum, in nanoseconds.
func (u *union) time() uint64 {
	u.order()
	sum := u.done
	for _, i := range u.list {
		sum += uint64(i.end - i.begin)
	}
	return sum
}
