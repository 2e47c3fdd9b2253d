// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"sync/atomic"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// An observer receives every event, operation and wait that the report counts, with the regions that they are in.
func TestObserve(t *testing.T) {
	a := testkit.Value(otf2.Open(jobtest.Typical(t, nil), nil))(t)
	var events atomic.Uint64
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
			testkit.Must(t, err)
			if ev.Kind == otf2.EventEnter {
				begins[region{l.Self, n}] = ev.Time
				n++
			}
		}
	}
	r, err := operations.Observe(a, &operations.Observer{
		Lane: func() func(*otf2.Event) { return func(*otf2.Event) { events.Add(1) } },
		Part: func(p *operations.Part) {
			parts++
			_, known := begins[region{p.Location, p.Enter}]
			testkit.Check(t, known, "%+v is in no region", p)
			testkit.Check(t, p.Consistent, "%+v is not alike", p)
		},
		Waited: func(w *waits.Wait) {
			waited[w.StartUp] += w.Waited
			testkit.Check(t, begins[region{w.Place.Location, w.Place.Enter}] == w.Begin && w.Kind != "",
				"%+v is in no region", w)
		},
	})
	testkit.Must(t, err)
	testkit.Check(t, events.Load() == r.Summary.Events && parts == r.Summary.Calls,
		"%d events and %d parts, the report counts %d and %d", events.Load(), parts, r.Summary.Events, r.Summary.Calls)
	if w := r.WaitStates; waited[false] != w.Total.Waited || waited[true] != w.StartUp.Waited || w.Total.Waited == 0 ||
		w.StartUp.Waited == 0 {
		t.Errorf("waited %v, the report says %d and at the start %d", waited, w.Total.Waited, w.StartUp.Waited)
	}
}

// Times in the test jobs.
const (
	t0 = jobtest.T0
	us = jobtest.Microsecond
)
