// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

func TestDefectsOfNetworksAndPausesAreFound(t *testing.T) {
	original := jobtest.WithNetwork(t)
	sends := otf2.LocationRef(2 << 32) // of rank 0
	for _, d := range []defect{
		{"put to a rank that is not there", func(
			s *jobtest.Sample) {
			s.Find(sends, otf2.EventRmaPut, 0).Args[1] = 7
		},
			`error: rank: location 8589934592, event 2, time 1760000000001310000: RmaPut: rank 7 of "world network", which has 7 ranks`},
		{"put by a location that is not a member", func(s *jobtest.Sample) {
			s.Insert(jobtest.Thread(0), 1, otf2.Event{Kind: otf2.EventRmaPut, Time: t0 + 102*us,
				Args: []uint64{0, 1, 8, 1}})
			s.Insert(jobtest.Thread(0), 2, otf2.Event{Kind: otf2.EventRmaOpCompleteBlocking, Time: t0 + 102*us,
				Args: []uint64{0, 1}})
		}, `error: communicator: location 0, event 2, time 1760000000001102000: RmaPut: the location is not a member of "world network"`},
		{"put that never ends", func(s *jobtest.Sample) {
			s.Remove(sends, s.Index(sends, otf2.EventRmaOpCompleteNonBlocking, 1), 1)
		}, "error: request: location 8589934592, event 6, time 1760000000001330000: the RMA operation of matching id " +
			"1 is never completed"},
		{"window of no communicator", func(s *jobtest.Sample) { s.Defs.RmaWins[0].Comm = 9 },
			"error: reference: RMA window 0: communicator 9 is not defined"},
		{"window without a name", func(s *jobtest.Sample) { s.Defs.RmaWins[0].Name = 9999 },
			"error: reference: name of RMA window 0: string 9999 is not defined"},
		{"property of no location", func(s *jobtest.Sample) { s.Defs.LocationProperties[0].Location = 99 },
			"error: reference: property of location 99, which is not defined"},
		{"phases in the wrong order", func(s *jobtest.Sample) { s.Find(sends, otf2.EventLeave, 0).Args[0] = 0 },
			"error: nesting: location 8589934592, event 4"},
		{"off twice", func(s *jobtest.Sample) {
			for i := range 2 {
				s.Insert(jobtest.Stream(0), 1+i, otf2.Event{Kind: otf2.EventMeasurementOnOff, Time: t0 + 100*us,
					Args: []uint64{uint64(otf2.MeasurementOff)}})
			}
		}, "error: measurement: location 4294967296, event 3, time 1760000000001100000: recording goes off, but is " +
			"off since event 2"},
		{"on without off", func(s *jobtest.Sample) {
			s.Insert(jobtest.Stream(0), 1, otf2.Event{Kind: otf2.EventMeasurementOnOff, Time: t0 + 100*us,
				Args: []uint64{uint64(otf2.MeasurementOn)}})
		}, "recording goes on, but was not off"},
		{"marker that lasts too long", func(s *jobtest.Sample) {
			s.Markers = []otf2.Marker{{Time: t0 + 5*us, Duration: 1 << 62, Marker: 0,
				ScopeType: otf2.MarkerScopeGlobal}}
		}, "error: time-range: marker 0 at 1760000000001005000 lasts 4611686018427387904, beyond the clock properties"},
	} {
		t.Run(d.name, func(t *testing.T) {
			jobtest.FindDefect(t, jobtest.Check, jobtest.Load(t, original), d.spoil, d.want)
		})
	}
	s := jobtest.Load(t, original)
	for i, mode := range []otf2.MeasurementMode{otf2.MeasurementOff, otf2.MeasurementOn, otf2.MeasurementOff} {
		s.Insert(jobtest.Stream(0), 1+i, otf2.Event{Kind: otf2.EventMeasurementOnOff, Time: t0 + 100*us,
			Args: []uint64{uint64(mode)}})
	}
	if res := jobtest.Check(t, s.Write()); len(res.Findings) > 0 {
		t.Errorf("in turn:\n%s", jobtest.Lines(res))
	}
}
