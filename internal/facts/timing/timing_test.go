// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The worked example of the definition: what is left out, what is divided, which of the figures is the median.
func TestTimesOfOperations(t *testing.T) {
	member := func(begin, end otf2.Timestamp, s facts.Source, change ...func(*facts.Operation)) *facts.Operation {
		o := &facts.Operation{Details: facts.NoDetails, Begin: begin, End: end}
		o.Source = s
		for _, f := range change {
			f(o)
		}
		return o
	}
	timing := func(members ...*facts.Operation) *Whole {
		var x Whole
		for _, m := range members {
			x.Add(m)
		}
		x.Close(false)
		return &x
	}
	startUp, equal := func(o *facts.Operation) { o.StartUp = true }, func(o *facts.Operation) { o.Equal, o.Grouped = 4, true }
	s := NewSpeed()
	s.Add(timing(member(0, 9000, facts.SourceGPU, startUp), member(0, 9000, facts.SourceGPU)), false)
	s.Add(timing(member(0, 100, facts.SourceGPU), member(40, 100, facts.SourceGPU)), false) // mean 80, nobody late 60
	s.Add(timing(member(0, 100, facts.SourceGPU), member(0, 100, facts.SourceEnqueue)), false)
	shared := timing(member(0, 400, facts.SourceGPU, equal), member(40, 400, facts.SourceGPU, equal)) // a quarter of 380 and 360
	s.Add(shared, false)
	s.Add(timing(member(0, 1000, facts.SourceGPU), member(0, 1000, facts.SourceGPU)), false)
	testkit.Check(t, s.Count == 5 && s.StartUp == 1 && s.Mixed == 1 && s.Times.Count == 3 && s.Transfers.Count == 3,
		"of %d operations %d are of start-up, %d mixed, %d timed, of %d the transfer is known", s.Count, s.StartUp,
		s.Mixed, s.Times.Count, s.Transfers.Count)
	testkit.Check(t, s.Median() == 95 && s.NobodyLate() == 90 && s.Total() == 9000+80+100+95+1000,
		"median %g, nobody late %g, total %g", s.Median(), s.NobodyLate(), s.Total())
	testkit.Check(t, shared.HasBandwidth() && !timing(member(0, 1, facts.SourceEnqueue)).HasBandwidth(),
		"equal operations of a launch have a bandwidth, enqueueing has none")
	var kept Speed
	kept.Add(timing(member(0, 9000, facts.SourceGPU, startUp)), true)
	testkit.Check(t, kept.Times.Count == 1 && kept.Transfers.Count == 0,
		"the first operation counts on request, one member alone has no last arrival")
	var m Moved
	m.Add(3, 1000, 100)
	m.Add(1, 4000, 0) // its time is not known
	testkit.Check(t, m.Bandwidth() == 10 && Bandwidth(5, 0) == 0, "bandwidth %g", m.Bandwidth())
}
