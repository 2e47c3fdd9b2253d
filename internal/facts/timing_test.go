// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// ofLaunches lists what launches make of their operations: ordinal, equal operations, start-up, buffers, time.
func ofLaunches(events ...*otf2.Event) string {
	var lines []string
	r := NewReader(named, nil)
	r.Operation = func(o *Operation) {
		lines = append(lines, fmt.Sprintf("%s %d: equal %d, start-up %v, in place %d, %g", o.Function, o.Ordinal,
			o.Equal, o.StartUp, o.InPlace, o.TimeOf()))
	}
	r.Leave = func(*Region) { lines = append(lines, "leave") }
	for _, ev := range events {
		r.Event(ev)
	}
	return strings.Join(lines, "\n")
}

// aLaunch is one of AllReduces with these counts, each from and to a buffer.
func aLaunch(begin otf2.Timestamp, more attrs, buffers [2]uint64, counts ...uint64) (all []*otf2.Event) {
	name := "AllReduce"
	if len(counts) > 1 {
		name = "Group (2 ops)"
	}
	all = append(all, event(begin, otf2.EventEnter, attrs{named.attr(regions.AttrTimingSource, "gpu")}, named.of(name)))
	for i, n := range counts {
		all = append(all, event(begin, otf2.EventNonBlockingCollectiveRequest,
			append(attrs{value(regions.AttrCount, n), named.attr(regions.AttrDatatype, "ncclFloat32"),
				value(regions.AttrSendBuff, buffers[0]), value(regions.AttrRecvBuff, buffers[1])}, more...),
			uint64(begin)+uint64(i)))
	}
	for i := range counts {
		all = append(all, event(begin+100, otf2.EventNonBlockingCollectiveComplete, nil,
			uint64(otf2.CollectiveOpAllreduce), 2, uint64(otf2.CollectiveRootNone), 0, 0, uint64(begin)+uint64(i)))
	}
	return append(all, event(begin+100, otf2.EventLeave, nil, named.of(name)))
}

func concat(all ...[]*otf2.Event) (events []*otf2.Event) {
	for _, e := range all {
		events = append(events, e...)
	}
	return events
}

func TestLaunchesTellOfTheirOperations(t *testing.T) {
	buffers := [2]uint64{4096, 8192}
	for _, c := range []struct {
		name   string
		events []*otf2.Event
		want   string
	}{
		{"the first launch is start-up, all of it",
			concat(aLaunch(0, nil, buffers, 8, 16), aLaunch(200, nil, buffers, 8)),
			"AllReduce 0: equal 0, start-up true, in place 1, 100\nAllReduce 1: equal 0, start-up true, in place 1, " +
				"100\nleave\nAllReduce 2: equal 0, start-up false, in place 1, 100\nleave"},
		{"equal operations share the launch's time", aLaunch(0, nil, buffers, 8, 8),
			"AllReduce 0: equal 2, start-up true, in place 1, 50\nAllReduce 1: equal 2, start-up true, in place 1, " +
				"50\nleave"},
		{"not those of a launch of which one is missing", slicesWithout(aLaunch(0, nil, buffers, 8, 8), 4),
			"AllReduce 0: equal 0, start-up true, in place 1, 100\nleave"},
		{"a recording that began later has no start-up",
			aLaunch(0, attrs{value(regions.AttrOrdinal, 7)}, [2]uint64{4096, 4096}, 8),
			"AllReduce 7: equal 0, start-up false, in place 2, 100\nleave"},
	} {
		got := ofLaunches(c.events...)
		testkit.Check(t, got == c.want, "%s:\n%s\nwant\n%s", c.name, got, c.want)
	}
}

func slicesWithout(all []*otf2.Event, at int) []*otf2.Event {
	return append(append([]*otf2.Event{}, all[:at]...), all[at+1:]...)
}

// The worked example of the definition: what is left out, what is divided, which of the figures is the median.
func TestTimesOfOperations(t *testing.T) {
	member := func(begin, end otf2.Timestamp, s Source, change ...func(*Operation)) *Operation {
		o := &Operation{Details: NoDetails, Begin: begin, End: end}
		o.Source = s
		for _, f := range change {
			f(o)
		}
		return o
	}
	timing := func(members ...*Operation) *Timing {
		var x Timing
		for _, m := range members {
			x.Add(m)
		}
		x.Close(false)
		return &x
	}
	startUp, equal := func(o *Operation) { o.StartUp = true }, func(o *Operation) { o.Equal, o.Grouped = 4, true }
	s := NewSpeed()
	s.Add(timing(member(0, 9000, SourceGPU, startUp), member(0, 9000, SourceGPU)), false)
	s.Add(timing(member(0, 100, SourceGPU), member(40, 100, SourceGPU)), false) // mean 80, nobody late 60
	s.Add(timing(member(0, 100, SourceGPU), member(0, 100, SourceEnqueue)), false)
	shared := timing(member(0, 400, SourceGPU, equal), member(40, 400, SourceGPU, equal)) // a quarter of 380 and 360
	s.Add(shared, false)
	s.Add(timing(member(0, 1000, SourceGPU), member(0, 1000, SourceGPU)), false)
	testkit.Check(t, s.Count == 5 && s.StartUp == 1 && s.Mixed == 1 && s.Times.Count == 3 && s.Transfers.Count == 3,
		"of %d operations %d are of start-up, %d mixed, %d timed, of %d the transfer is known", s.Count, s.StartUp,
		s.Mixed, s.Times.Count, s.Transfers.Count)
	testkit.Check(t, s.Median() == 95 && s.NobodyLate() == 90 && s.Total() == 9000+80+100+95+1000,
		"median %g, nobody late %g, total %g", s.Median(), s.NobodyLate(), s.Total())
	testkit.Check(t, shared.HasBandwidth() && !timing(member(0, 1, SourceEnqueue)).HasBandwidth(),
		"equal operations of a launch have a bandwidth, enqueueing has none")
	var kept Speed
	kept.Add(timing(member(0, 9000, SourceGPU, startUp)), true)
	testkit.Check(t, kept.Times.Count == 1 && kept.Transfers.Count == 0,
		"the first operation counts on request, one member alone has no last arrival")
	var m Moved
	m.Add(3, 1000, 100)
	m.Add(1, 4000, 0) // its time is not known
	testkit.Check(t, m.Bandwidth() == 10 && Bandwidth(5, 0) == 0, "bandwidth %g", m.Bandwidth())
}
