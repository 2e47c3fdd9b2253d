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
	sample := func() *jobtest.Sample { return jobtest.Load(t, original) }
	jobtest.FindDefects(t, "testdata/network-defects.txt", jobtest.Check, sample, jobtest.Defects{
		{"put to a rank that is not there", func(s *jobtest.Sample) { s.Find(sends, otf2.EventRmaPut, 0).Args[1] = 7 }},
		{"put by a location that is not a member", func(s *jobtest.Sample) {
			s.Insert(jobtest.Thread(0), 1, otf2.Event{Kind: otf2.EventRmaPut, Time: t0 + 102*us,
				Args: []uint64{0, 1, 8, 1}})
			s.Insert(jobtest.Thread(0), 2, otf2.Event{Kind: otf2.EventRmaOpCompleteBlocking, Time: t0 + 102*us,
				Args: []uint64{0, 1}})
		}},
		{"put that never ends", func(s *jobtest.Sample) {
			s.Remove(sends, s.Index(sends, otf2.EventRmaOpCompleteNonBlocking, 1), 1)
		}},
		{"window of no communicator", func(s *jobtest.Sample) { s.Defs.RmaWins[0].Comm = 9 }},
		{"window without a name", func(s *jobtest.Sample) { s.Defs.RmaWins[0].Name = 9999 }},
		{"property of no location", func(s *jobtest.Sample) { s.Defs.LocationProperties[0].Location = 99 }},
		{"phases in the wrong order", func(s *jobtest.Sample) { s.Find(sends, otf2.EventLeave, 0).Args[0] = 0 }},
		{"off twice", func(s *jobtest.Sample) {
			for i := range 2 {
				s.Insert(jobtest.Stream(0), 1+i, otf2.Event{Kind: otf2.EventMeasurementOnOff, Time: t0 + 100*us,
					Args: []uint64{uint64(otf2.MeasurementOff)}})
			}
		}},
		{"on without off", func(s *jobtest.Sample) {
			s.Insert(jobtest.Stream(0), 1, otf2.Event{Kind: otf2.EventMeasurementOnOff, Time: t0 + 100*us,
				Args: []uint64{uint64(otf2.MeasurementOn)}})
		}},
		{"marker that lasts too long", func(s *jobtest.Sample) {
			s.Markers = []otf2.Marker{{Time: t0 + 5*us, Duration: 1 << 62, Marker: 0,
				ScopeType: otf2.MarkerScopeGlobal}}
		}},
	})
	s := jobtest.Load(t, original)
	for i, mode := range []otf2.MeasurementMode{otf2.MeasurementOff, otf2.MeasurementOn, otf2.MeasurementOff} {
		s.Insert(jobtest.Stream(0), 1+i, otf2.Event{Kind: otf2.EventMeasurementOnOff, Time: t0 + 100*us,
			Args: []uint64{uint64(mode)}})
	}
	if res := jobtest.Check(t, s.Write()); len(res.Findings) > 0 {
		t.Errorf("in turn:\n%s", jobtest.Lines(res))
	}
}
