// SPDX-License-Identifier: Apache-2.0

package overtime

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

type wait struct{ begin, waited uint64 }

func lineOf(waits []wait) *Line {
	l := NewLine(3)
	for i, w := range waits {
		l.Add(otf2.Timestamp(w.begin), w.waited)
		l.Charge(i%3, otf2.Timestamp(w.begin), otf2.Timestamp(w.begin+w.waited), float64(w.waited))
	}
	return l
}

// However long the run and in whatever order waits come, the windows are few, follow each other, and have all that was
// waited.
func TestWindowsHaveAllWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const begin = 1_760_000_000_000_000_000
		length := rapid.Uint64Range(1, 1<<uint(rapid.IntRange(1, 50).Draw(t, "length"))).Draw(t, "ns")
		var waits []wait
		var sum uint64
		for range rapid.IntRange(0, 50).Draw(t, "waits") {
			at := rapid.Uint64Range(0, length-1).Draw(t, "at")
			w := wait{begin + at, rapid.Uint64Range(0, length-at).Draw(t, "waited")}
			waits = append(waits, w)
			sum += w.waited
		}
		all := lineOf(waits).Windows(begin, begin+otf2.Timestamp(length), 3)
		testkit.Require(t, (len(waits) == 0 || sum <= 0 || len(all) != 0) && len(all) <= mostWindows,
			"%d windows", len(all))
		var waited, begun uint64
		var goes float64
		for i, w := range all {
			waited += w.Waited
			begun += w.Waits
			goes += w.GoesBack
			before := all[max(i, 1)-1]
			testkit.Require(t, i == 0 || w.Begin == before.End, "window %d begins at %d, the one before ends at %d", i,
				w.Begin, before.End)
		}
		testkit.Require(t, waited == sum && begun <= uint64(len(waits)) && goes <= float64(sum)*(1+1e-9)+1,
			"%d ns of %d in %d waits of %d, %g go back", waited, sum, begun, len(waits), goes)
		if len(all) > 0 && (all[0].Begin != begin || all[len(all)-1].End != begin+otf2.Timestamp(length)) {
			t.Fatalf("from %d to %d", all[0].Begin-begin, all[len(all)-1].End-begin)
		}
		slices.Reverse(waits)
		other := lineOf(waits).Windows(begin, begin+otf2.Timestamp(length), 3)
		if !slices.EqualFunc(all, other, func(a, b Window) bool {
			return a.Begin == b.Begin && a.Waited == b.Waited && a.Waits == b.Waits
		}) {
			t.Fatal("the order of the waits matters")
		}
	})
}

func TestWindowOfOneWait(t *testing.T) {
	l := NewLine(2)
	l.Add(3<<narrowest-100, 300) // 100 ns in one window, 200 ns in the next
	l.Charge(1, 3<<narrowest-100, 3<<narrowest+200, 300)
	all := l.Windows(0, 4<<narrowest, 2)
	testkit.Require(t, len(all) == 4 && all[2].Waited == 100 && all[3].Waited == 200 && all[2].Rank == 1 &&
		math.Abs(all[3].GoesBack-200) <= 1e-9 && all[0].Rank == -1, "%+v", all)
	w := Worst(all)
	testkit.Check(t, w != nil && w.Begin == 3<<narrowest && w.Share == 200.0/(2*(1<<narrowest)), "%+v", w)
	end := NewLine(1) // damaged archives have times like these
	end.Add(1<<62, 5)
	end.Charge(0, math.MaxUint64-5, math.MaxUint64, 5)
	end.Add(math.MaxUint64-5, 5)
	testkit.Check(t, Worst(nil) == nil && Worst(all[:1]) == nil, "there is a worst window where nobody waited")
	var none *Line
	none.Add(1, 2)
	none.Charge(1, 2, 3, 4)
	testkit.Check(t, len(none.Windows(0, 10, 1)) == 0, "a line that is not there has windows")
}
