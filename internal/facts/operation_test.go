// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// texts are the names of a made-up process: strings and regions by id; its one communicator is of four ranks.
type texts []string

func (t texts) String(ref otf2.StringRef) string        { return t[int(ref)%len(t)] }
func (t texts) RegionName(ref otf2.RegionRef) string    { return t[int(ref)%len(t)] }
func (t texts) CommSize(otf2.CommRef) int               { return 4 }
func (t texts) Rank(otf2.CommRef, otf2.LocationRef) int { return 1 }
func (t texts) of(text string) uint64                   { return uint64(slices.Index(t, text)) }
func (t texts) attr(a otf2.AttributeRef, text string) otf2.AttributeValue {
	return otf2.AttributeValue{ID: a, Type: otf2.TypeString, Bits: t.of(text)}
}

var named = texts{"gpu", "network", "enqueue", "duration", "AllReduce", "Group (2 ops)", "AlltoAll", "ncclFloat32",
	"RING", "Broadcast", "device", "Group"}

func value(a otf2.AttributeRef, bits uint64) otf2.AttributeValue {
	return otf2.AttributeValue{ID: a, Bits: bits}
}

func event(t otf2.Timestamp, kind otf2.EventKind, attributes []otf2.AttributeValue, args ...uint64) *otf2.Event {
	return &otf2.Event{Location: 7, Time: t, Kind: kind, Args: args, Attributes: attributes}
}

type attrs = []otf2.AttributeValue

// listed reads events and lists what is found, in order.
func listed(events ...*otf2.Event) string { return listedBy(NewReader(named, nil), events...) }

func listedBy(r *Reader, events ...*otf2.Event) string {
	var lines []string
	r.Operation = func(o *Operation) {
		line := fmt.Sprintf("%s %d on %d: %d-%d %s, %d B, sent %d, received %d, launch %d, place %d", o.Function,
			o.Ordinal, o.Comm, o.Begin, o.End, o.Source, o.Size, o.Sent, o.Received, o.Launch, o.Index)
		for _, f := range []struct {
			is   bool
			text string
		}{{o.Grouped, "grouped"}, {o.Leads, "leads"}, {o.Follows, "follows"}, {o.Device, "device"},
			{o.Peer >= 0, fmt.Sprint("peer ", o.Peer)},
			{o.Root != otf2.CollectiveRootNone, fmt.Sprint("root ", o.Root)}} {
			if f.is {
				line += ", " + f.text
			}
		}
		lines = append(lines, line)
	}
	r.Leave = func(l *Region) {
		lines = append(lines, fmt.Sprintf("%s %d: %d-%d, %d of %d ended, grouped %v", named.RegionName(l.Region),
			l.Number, l.Begin, l.End, l.Ended, l.Begun, l.Grouped()))
	}
	for _, ev := range events {
		r.Event(ev)
	}
	return strings.Join(lines, "\n")
}

func TestGrammar(t *testing.T) {
	var said strings.Builder
	none := uint64(otf2.CollectiveRootNone)
	gpu := named.attr(regions.AttrTimingSource, "gpu")
	floats := attrs{value(regions.AttrCount, 100), named.attr(regions.AttrDatatype, "ncclFloat32")}
	reduce, group := named.of("AllReduce"), named.of("Group (2 ops)")
	for _, c := range []struct {
		name   string
		events []*otf2.Event
	}{
		{"a launch of one has its operation's attributes", []*otf2.Event{
			event(10, otf2.EventEnter, append(attrs{gpu, value(regions.AttrOrdinal, 5)}, floats...), reduce),
			event(10, otf2.EventMpiCollectiveBegin, nil),
			event(30, otf2.EventMpiCollectiveEnd, nil, uint64(otf2.CollectiveOpAllreduce), 2, none, 1600, 1600),
			event(30, otf2.EventLeave, nil, reduce),
		}},
		{"of a launch of several the first collective leads, messages follow", []*otf2.Event{
			event(10, otf2.EventEnter, attrs{gpu}, group),
			event(10, otf2.EventNonBlockingCollectiveRequest, floats, 1),
			event(10, otf2.EventMpiIsend, attrs{value(regions.AttrOrdinal, 9)}, 3, 2, 0, 64, 2),
			event(10, otf2.EventMpiIrecvRequest, attrs{named.attr(regions.AttrRecvBuffClass, "device")}, 3),
			event(40, otf2.EventNonBlockingCollectiveComplete, nil, uint64(otf2.CollectiveOpBcast), 2, 0, 0, 400, 1),
			event(40, otf2.EventMpiIsendComplete, nil, 2),
			event(40, otf2.EventMpiIrecv, nil, 3, 2, 0, 32, 3),
			event(40, otf2.EventLeave, nil, group),
		}},
		{"without type and count the bytes tell the size", []*otf2.Event{
			event(10, otf2.EventEnter, attrs{gpu}, reduce),
			event(10, otf2.EventMpiCollectiveBegin, nil),
			event(30, otf2.EventMpiCollectiveEnd, nil, uint64(otf2.CollectiveOpAllreduce), 2, none, 1600, 1600),
		}},
		{"regions without a source are no launches", []*otf2.Event{
			event(10, otf2.EventEnter, nil, reduce),
			event(10, otf2.EventMpiCollectiveBegin, nil),
			event(30, otf2.EventMpiCollectiveEnd, nil, uint64(otf2.CollectiveOpAllreduce), 2, none, 1600, 1600),
			event(30, otf2.EventLeave, nil, reduce),
		}},
		{"ordinals go on behind recorded ones, for each sequence", []*otf2.Event{
			event(10, otf2.EventMpiIsend, attrs{value(regions.AttrOrdinal, 4)}, 3, 2, 0, 64, 1),
			event(11, otf2.EventMpiIsendComplete, nil, 1),
			event(12, otf2.EventMpiIsend, nil, 3, 2, 0, 64, 1),
			event(13, otf2.EventMpiIsendComplete, nil, 1),
			event(14, otf2.EventMpiIsend, nil, 0, 2, 0, 64, 1),
			event(15, otf2.EventMpiIsendComplete, nil, 1),
		}},
		{"what has no end is none", []*otf2.Event{
			event(10, otf2.EventEnter, attrs{gpu}, group),
			event(10, otf2.EventMpiIsend, nil, 3, 2, 0, 64, 1),
			event(10, otf2.EventMpiIsend, nil, 3, 2, 0, 64, 1),
			event(40, otf2.EventLeave, nil, group),
		}},
		{"a launch states how many operations it is of, or is of as many as began in it", []*otf2.Event{
			event(10, otf2.EventEnter, attrs{gpu, value(regions.AttrOperations, 2)}, named.of("Group")),
			event(40, otf2.EventLeave, nil, named.of("Group")),
			event(50, otf2.EventEnter, attrs{gpu}, named.of("Group")),
			event(60, otf2.EventLeave, nil, named.of("Group")),
		}},
		{"damage", []*otf2.Event{
			event(10, otf2.EventLeave, nil, group),
			event(10, otf2.EventMpiIsendComplete, nil, 1),
			event(10, otf2.EventMpiIrecv, nil, 3, 2, 0, 64, 1),
			event(10, otf2.EventNonBlockingCollectiveComplete, nil, uint64(otf2.CollectiveOpBcast), 2, 0, 0, 400, 1),
			event(20, otf2.EventEnter, attrs{gpu}, reduce),
			event(30, otf2.EventMpiCollectiveEnd, nil, uint64(otf2.CollectiveOpAllreduce), 2, none, 1600, 1600),
		}},
	} {
		fmt.Fprintf(&said, "%s:\n%s\n\n", c.name, listed(c.events...))
	}
	golden.Text(t, "testdata/grammar.txt", said.String())
}

// What is kept is what is open, however much has been read.
func TestReaderKeepsWhatIsOpen(t *testing.T) {
	r := NewReader(named, nil)
	n := 0
	r.Operation = func(*Operation) { n++ }
	gpu := attrs{named.attr(regions.AttrTimingSource, "gpu")}
	for i := range uint64(1000) {
		r.Event(event(10, otf2.EventEnter, gpu, named.of("AllReduce")))
		r.Event(event(10, otf2.EventMpiIsend, nil, 3, 2, 0, 64, i))
		r.Event(event(10, otf2.EventMpiIsendComplete, nil, i))
		r.Event(event(10, otf2.EventLeave, nil, named.of("AllReduce")))
	}
	row := r.Row(7)
	if n != 1000 || len(row.started) != 1 || len(row.requests) != 0 || len(row.ordinals) != 0 || cap(row.open) > 8 {
		t.Errorf("%d operations; kept: %d started, %d requests, %d sequences, %d regions", n, len(row.started),
			len(row.requests), len(row.ordinals), cap(row.open))
	}
	if allocated := testing.AllocsPerRun(100, func() {
		r.Event(event(10, otf2.EventMpiIrecvRequest, nil, 1))
		r.Event(event(10, otf2.EventMpiIrecv, nil, 3, 2, 0, 64, 1))
	}); allocated > 4 { // the test's own events
		t.Errorf("%v allocations for each operation", allocated)
	}
}

func TestSourcesHaveOneTable(t *testing.T) {
	for s := range NumSources {
		testkit.Equal(t, SourceOf(s.String()), s, "%d is %q, which", s, s)
	}
	for _, name := range []string{regions.TimingGPU, regions.TimingNetwork, regions.TimingEnqueue,
		regions.TimingDuration} {
		testkit.Check(t, SourceOf(name) != SourceUnknown, "%q is not known", name)
	}
	testkit.Check(t, SourceOf("sundial") == SourceUnknown && !SourceEnqueue.HasLength() && !SourceDuration.HasPlace() &&
		SourceDuration.HasLength() && SourceGPU.HasPlace(), "what times are good for")
}

// FuzzReader gives a reader events in any order.
func FuzzReader(f *testing.F) {
	f.Add([]byte("Enter Begin End Leave"))
	f.Fuzz(func(t *testing.T, data []byte) {
		kinds := []otf2.EventKind{otf2.EventEnter, otf2.EventLeave, otf2.EventMpiCollectiveBegin,
			otf2.EventMpiCollectiveEnd, otf2.EventNonBlockingCollectiveRequest,
			otf2.EventNonBlockingCollectiveComplete, otf2.EventMpiIsend, otf2.EventMpiIsendComplete,
			otf2.EventMpiIrecvRequest, otf2.EventMpiIrecv}
		r := NewReader(named, nil)
		begun, ended := 0, 0
		r.Operation = func(o *Operation) {
			ended++
			testkit.Check(t, !o.Grouped || o.Launch != 0, "%+v", o)
		}
		for i, b := range data {
			k := kinds[int(b)%len(kinds)]
			if k == otf2.EventMpiCollectiveEnd || k == otf2.EventNonBlockingCollectiveRequest ||
				k == otf2.EventMpiIsend || k == otf2.EventMpiIrecvRequest {
				begun++
			}
			arg := uint64(b) / 32
			r.Event(event(otf2.Timestamp(i), k, attrs{value(otf2.AttributeRef(b)%40, uint64(b))}, arg, arg, arg, arg,
				arg, arg))
		}
		testkit.Check(t, ended <= begun, "%d operations of %d have ended", ended, begun)
	})
}

// In archives of other tools, regions that overlap are each left by their own Leave: that of the newest open one of the
// region that it names.
func TestRegionsOverlap(t *testing.T) {
	reduce, group, send := named.of("AllReduce"), named.of("Group (2 ops)"), named.of("Send")
	got := listedBy(
		NewReader(named, attribute.Find(new(otf2.Definitions))),
		event(1, otf2.EventEnter, nil, reduce), event(2, otf2.EventEnter, nil, group),
		event(3, otf2.EventEnter, nil, reduce), event(4, otf2.EventLeave, nil, group),
		event(5, otf2.EventLeave, nil, send), event(6, otf2.EventLeave, nil, reduce),
		event(7, otf2.EventLeave, nil, reduce), event(8, otf2.EventLeave, nil, reduce),
	)
	want := "Group (2 ops) 0: 2-4, 0 of 0 ended, grouped true\nAllReduce 0: 3-6, 0 of 0 ended, grouped " +
		"false\nAllReduce 0: 1-7, 0 of 0 ended, grouped false"
	testkit.Check(t, got == want, "got\n%s\nwant\n%s", got, want)
}
