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
