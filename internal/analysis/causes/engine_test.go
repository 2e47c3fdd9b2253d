// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The state of a rank is kept as long as a later operation is held back.
func TestPartsAreKept(t *testing.T) {
	e := NewEngine(1)
	e.Part(&Local{Seq: 1})
	e.leave(&Local{Seq: 1}, &state{transfer: 7})
	for seq := uint32(2); seq < 4*leastParts; seq++ {
		e.Part(&Local{Seq: seq, Before: seq - 1})
	}
	var s state
	if e.arrive(&s, &Local{Seq: 2, Before: 1}, 0, series{}); s.transfer != 7 {
		t.Errorf("what was before an operation that is held back is forgotten: %+v", s)
	}
}

// A rank that waits in several operations at once waits once.
func TestWaiting(t *testing.T) {
	w := newLedger(2).waits
	testkit.Check(t, w.atOnce() == 1, "without waits %g", w.atOnce())
	w.add(0, 100, 50)
	w.add(1, 100, 50)
	w.add(0, 200, 100)
	w.add(0, 250, 50)
	w.add(0, 250, 150)
	testkit.Check(t, w.all == 400 && w.any == 300, "%g ns of waits in %g ns", w.all, w.any)
}
