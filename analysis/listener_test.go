// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"sync/atomic"
	"testing"

	"ncclotf2/otf2"
)

// A listener hears of every event, operation and wait that the report counts, and of the regions that they are in.
func TestListener(t *testing.T) {
	a, err := otf2.Open(makeJob(t, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	var events, lanes atomic.Uint64
	parts, waited := uint64(0), map[bool]uint64{}
	type region struct {
		location otf2.LocationRef
		number   uint64
	}
	// The regions by their numbers, read again.
	begins := map[region]otf2.Timestamp{}
	for _, l := range a.Defs.Locations {
		n := uint64(0)
		for ev, err := range a.EventsOf(l.Self) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Kind == otf2.EventEnter {
				begins[region{l.Self, n}] = ev.Time
				n++
			}
		}
	}
	r, err := OperationsTold(a, &Listener{
		Lanes: func(n int) { lanes.Store(uint64(n)) },
		Event: func(lane int, ev *otf2.Event) {
			if uint64(lane) >= lanes.Load() {
				t.Errorf("lane %d of %d", lane, lanes.Load())
			}
			events.Add(1)
		},
		Operation: func(p *Part) {
			parts++
			if _, known := begins[region{p.Location, p.Enter}]; !known {
				t.Errorf("%+v is in no region", p)
			}
			if !p.Alike {
				t.Errorf("%+v is not alike", p)
			}
		},
		Wait: func(w *Wait) {
			waited[w.First] += w.Waited
			if begins[region{w.Location, w.Enter}] == 0 || w.Kind == "" {
				t.Errorf("%+v is in no region", w)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if events.Load() != r.Summary.Events || parts != r.Summary.Calls {
		t.Errorf("%d events and %d parts, the report counts %d and %d", events.Load(), parts, r.Summary.Events, r.Summary.Calls)
	}
	if w := r.WaitStates; waited[false] != w.Total.Waited || waited[true] != w.StartUp.Waited || w.Total.Waited == 0 || w.StartUp.Waited == 0 {
		t.Errorf("waited %v, the report says %d and at the start %d", waited, w.Total.Waited, w.StartUp.Waited)
	}
}
