// SPDX-License-Identifier: Apache-2.0

package view

import (
	"math"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Events that have one time, or go back in time, are put behind each other as long as there are times; how much later
// is no more than that.
func TestSimpleTimesDoNotOverflow(t *testing.T) {
	const end = math.MaxUint64
	sw := simpleWriter{simple: &simple{res: new(SimpleResult)}}
	for i, x := range []struct{ at, want, shift otf2.Timestamp }{{5, 5, 0}, {5, 6, 1}, {end - 1, end - 1, 1},
		{end - 1, end, 1}, {end - 1, end, 1}, {end, end, 1}, {end - 9, end, 9}} {
		if got := sw.nextTime(x.at); got != x.want || sw.res.MaxShift != uint64(x.shift) {
			t.Errorf("event %d: %d, %d later; want %d, %d", i, got, sw.res.MaxShift, x.want, x.shift)
		}
	}
}
