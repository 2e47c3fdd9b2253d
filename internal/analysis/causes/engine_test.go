// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The state of a rank is kept as long as a later operation is held back.
func TestPartsAreKept(t *testing.T) {
	e := NewEngine(1)
	e.AddPart(&Local{Seq: 1})
	e.leave(&Local{Seq: 1}, &state{transfer: 7})
	for seq := uint32(2); seq < 4*leastParts; seq++ {
		e.AddPart(&Local{Seq: seq, Before: seq - 1})
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

// An operation follows the one before also if it seems to begin earlier than that ended, by no more than the
// uncertainty of the two times. Operations that overlap by more run side by side.
func TestOverlapsWithinUncertainty(t *testing.T) {
	for _, c := range []struct {
		begin       otf2.Timestamp
		uncertainty uint64
		before      uint32
		ended       otf2.Timestamp
	}{{2000, 0, 2, 2000}, {1990, 0, 1, 1000}, {1990, 4, 1, 1000}, {1990, 5, 2, 1990}} {
		var lane Lane
		lane.places.Set(0, &place{process: new(process), rank: new(timeline)})
		var last Local
		for _, o := range [...][2]otf2.Timestamp{{0, 1000}, {1000, 2000}, {c.begin, 3000}} {
			last = lane.Operation(&facts.Operation{Details: facts.Details{Uncertainty: c.uncertainty}, Since: o[0],
				End: o[1]})
		}
		testkit.Check(t, last.Before == c.before && last.Ended == c.ended, "%+v: after %d, which ended at %d", c,
			last.Before, last.Ended)
	}
}

// After an operation whose end is that of a part, it is not known whether the next one had to wait, unless the network
// showed when all had ended.
func TestEndsOfParts(t *testing.T) {
	for _, c := range []struct{ early, seen, may bool }{{false, false, false}, {true, false, true}, {true, true, false}} {
		var lane Lane
		lane.places.Set(0, &place{process: new(process), rank: new(timeline)})
		d := facts.Details{EndsEarly: c.early, Carried: facts.Carried{Known: c.seen}}
		lane.Operation(&facts.Operation{Details: d, Since: 0, End: 1000})
		next := lane.Operation(&facts.Operation{Since: 2000, End: 3000})
		testkit.Check(t, next.MayLast == c.may, "%+v: %+v", c, next)
	}
}
