// SPDX-License-Identifier: Apache-2.0

package waits_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/attribute"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/report"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// uncertain sets the uncertainty of the operations on each of the sample's ranks.
func uncertain(s *jobtest.Sample, ns func(rank int) uint64) {
	for r := range 3 {
		events := s.Events[jobtest.Stream(r)]
		for i := range events {
			if events[i].Kind == otf2.EventEnter {
				events[i].Attributes = append(events[i].Attributes,
					otf2.AttributeValue{ID: regions.AttrUncertainty, Type: otf2.TypeUint64, Bits: ns(r)})
			}
		}
	}
}

func TestUncertaintyOfWaits(t *testing.T) {
	s := jobtest.Load(t, jobtest.WithWaits(t))
	uncertain(s, func(rank int) uint64 { return []uint64{1, 2, 9}[rank] * us })
	w := jobtest.Operations(t, s.Write()).WaitStates
	// Waits with the sum of both ranks' uncertainties: AllReduce 20±10, 10±11; Broadcast 30±3, 10±11, 10±3, 5±11;
	// Reduce 20±3, 10±11, 20±3, 10±11; messages 40±3, 15±10, 5±10, ring 30±3, 20±11.
	want := waits.Sums{Parts: 24, Time: 940 * us, Waits: 15, Waited: 255 * us,
		Uncertainty: (10 + 11 + 3 + 11 + 3 + 11 + 3 + 11 + 3 + 11 + 3 + 10 + 10 + 3 + 11) * us, Below: 6,
		BelowTime: 50 * us}
	testkit.Same(t, want, w.Total)
	u := w.Worst[0].Uncertainty
	testkit.Check(t, u != nil && *u == 14*us, "%+v", w.Worst[0])
	var b bytes.Buffer
	testkit.Must(t, report.Waits(w, report.Clock{Begin: jobtest.T0}).WriteText(&b))
	if want :=
		"waited 255 µs of 940 µs, 27.1 %, ± 114 µs; 50 µs of it in 6 waits no longer than the " +
			"uncertainty\n"; !bytes.Contains(b.Bytes(), []byte(want)) {
		t.Errorf("%s\nwant: %s", b.String(), want)
	}
}

// Only times of the same source are compared: here those of one rank, and of two, have a weaker source.
func TestOnlyTimesOfOneKindAreCompared(t *testing.T) {
	sourceOfRank := func(rank int, name string) func(*jobtest.Sample) {
		return func(s *jobtest.Sample) {
			var ref otf2.StringRef
			for _, d := range s.Defs.Strings {
				if d.Text == name {
					ref = d.Self
				}
			}
			if ref == 0 {
				ref = otf2.StringRef(100_001 + rank)
				s.Defs.Strings = append(s.Defs.Strings, otf2.String{Self: ref, Text: name})
			}
			attributes := attribute.Find(s.Defs)
			for i := range s.Events[jobtest.Stream(rank)] {
				for k := range s.Events[jobtest.Stream(rank)][i].Attributes {
					if a := &s.Events[jobtest.Stream(rank)][i].Attributes[k]; isSource(attributes, a.ID) {
						a.Bits = uint64(ref)
					}
				}
			}
		}
	}
	all := func(changes ...func(*jobtest.Sample)) *waits.States {
		s := jobtest.Load(t, jobtest.WithWaits(t))
		for _, c := range changes {
			c(s)
		}
		return jobtest.Operations(t, s.Write()).WaitStates
	}
	t.Run("one rank enqueue", func(t *testing.T) {
		w := all(sourceOfRank(2, "enqueue"))
		// AllReduce: 10 on rank 0; Broadcast 30 and 10 on 0; Reduce 20 and 20 on 0; message 40 on 1; ring: 30 on 0.
		testkit.Check(t, w.Total.Waited == (10+30+10+20+20+40+30)*us && w.NotCompared.Members == 6 &&
			w.NotCompared.Messages == 4 && w.Enqueue.Collectives == 0, "%+v", w)
		testkit.Same(t, map[string]uint64{"gpu": 5 + 2}, w.Times)
	})
	t.Run("two ranks network", func(t *testing.T) {
		w := all(sourceOfRank(1, "network"), sourceOfRank(2, "network"))
		// AllReduce: 10 on 1; Broadcast from 1: 10 on 2; from 0: its root is of another kind; Reduce to 0 the same,
		// to 1: 10 on 2; ring: 20 on 2.
		testkit.Check(t, w.Total.Waited == (10+10+10+20)*us && w.NotCompared.NoTimes == 2 && w.Times["network"] == 3+1,
			"%+v", w)
	})
	t.Run("light", func(t *testing.T) {
		w := all(sourceOfRank(0, "enqueue"), sourceOfRank(1, "enqueue"), sourceOfRank(2, "enqueue"))
		testkit.Check(t, w.Total == (waits.Sums{}) && w.Collectives == 0 && w.NotCompared.NoTimes == 6 &&
			w.NotCompared.Messages == 6, "%+v", w)
		// The start-up is one of them: skews 14, 20, 30, 10, 20, 20. Messages add 135 µs, 50 of them on rank 1.
		e := w.Enqueue
		testkit.Check(t, e.Collectives == 6 && e.Messages == 6 && e.SkewAvg*12 == (114+135)*us && e.SkewMax == 40*us &&
			e.Ranks[1].Last == 4+2 && e.Ranks[2].Last == 2+3 && e.Ranks[1].Behind == (7+10+30+10+20+20+50)*us, "%+v", e)
		_, found := e.LastCaller()
		testkit.Check(t, !found, "rank 1, with half of it, is said to be the last caller")
		e.Ranks[1].Behind *= 4
		rank, found := e.LastCaller()
		testkit.Check(t, found && rank == 1, "rank %d is the last caller (%v)", rank, found)
		for _, format := range []func(*report.Document, *bytes.Buffer) error{
			func(d *report.Document, b *bytes.Buffer) error { return d.WriteText(b) },
			func(d *report.Document, b *bytes.Buffer) error { return d.WriteMarkdown(b) },
		} {
			var b bytes.Buffer
			testkit.Must(t, format(report.Waits(w, report.Clock{Begin: jobtest.T0}), &b))
			testkit.Check(t, bytes.Contains(b.Bytes(), []byte("Enqueue arrival")) &&
				!bytes.Contains(b.Bytes(), []byte("By rank")), "%v", b.String())
		}
	})
}

// Waits count into the phases of the application in which the operations were called.
func TestWaitsByPhase(t *testing.T) {
	s := jobtest.Load(t, jobtest.WithWaits(t))
	// All calls are made on the thread in a phase "step 6" until 300 µs, then "step 7"; the operations name them as
	// their parents.
	text := func(ref otf2.StringRef, name string) {
		s.Defs.Strings = append(s.Defs.Strings, otf2.String{Self: ref, Text: name})
	}
	text(50_000, "step 7")
	text(50_004, "step 6")
	text(50_001, "ncclAnything")
	text(50_002, "Application")
	text(50_003, "NCCL API")
	s.Defs.Regions = append(s.Defs.Regions,
		otf2.Region{Self: 900, Name: 50_000, CanonicalName: 50_000, Role: otf2.RegionRoleCode,
			Paradigm: otf2.ParadigmUser, SourceFile: otf2.UndefinedString},
		otf2.Region{Self: 902, Name: 50_004, CanonicalName: 50_004, Role: otf2.RegionRoleCode,
			Paradigm: otf2.ParadigmUser, SourceFile: otf2.UndefinedString},
		otf2.Region{Self: 901, Name: 50_001, CanonicalName: 50_001, Role: otf2.RegionRoleFunction,
			Paradigm: otf2.ParadigmCUDA, SourceFile: otf2.UndefinedString})
	s.Defs.Groups = append(s.Defs.Groups,
		otf2.Group{Self: 900, Name: 50_002, Type: otf2.GroupTypeRegions, Paradigm: otf2.ParadigmUser,
			Members: []uint64{900, 902}},
		otf2.Group{Self: 901, Name: 50_003, Type: otf2.GroupTypeRegions, Paradigm: otf2.ParadigmCUDA,
			Members: []uint64{901}})
	for r := range 3 {
		var calls []otf2.Event
		next, time := uint64(1), otf2.Timestamp(t0+190*us)
		event := func(kind otf2.EventKind, region uint64, attributes ...otf2.AttributeValue) {
			calls = append(calls, otf2.Event{Location: jobtest.Thread(r), Time: time, Kind: kind,
				Args: []uint64{region}, Attributes: attributes})
		}
		in := uint64(902)
		event(otf2.EventEnter, in)
		for i := range s.Events[jobtest.Stream(r)] {
			ev := &s.Events[jobtest.Stream(r)][i]
			if ev.Kind != otf2.EventEnter || ev.Time < t0+190*us || ev.Time > t0+500*us {
				continue
			}
			if in == 902 && ev.Time >= t0+300*us {
				event(otf2.EventLeave, in)
				in = 900
				event(otf2.EventEnter, in)
			}
			event(otf2.EventEnter, 901, otf2.AttributeValue{ID: regions.AttrEventID, Type: otf2.TypeUint64, Bits: next},
				otf2.AttributeValue{ID: regions.AttrCount, Type: otf2.TypeUint64, Bits: 1})
			event(otf2.EventLeave, 901)
			ev.Attributes = append(ev.Attributes, otf2.AttributeValue{ID: regions.AttrParentID, Type: otf2.TypeUint64,
				Bits: next})
			next++
		}
		event(otf2.EventLeave, in)
		s.Events[jobtest.Thread(r)] = append(s.Events[jobtest.Thread(r)], calls...)
		slices.SortStableFunc(s.Events[jobtest.Thread(r)],
			func(a, b otf2.Event) int { return int(int64(a.Time) - int64(b.Time)) })
	}
	s.Recount()
	w := jobtest.Operations(t, s.Write()).WaitStates
	for i := range w.Worst {
		want := ""
		switch at := w.Worst[i].At; {
		case at >= t0+190*us && at < t0+300*us:
			want = "step 6"
		case at >= t0+300*us && at < t0+500*us:
			want = "step 7"
		}
		testkit.Check(t, w.Worst[i].Phase == want, "%+v: want the phase %q", w.Worst[i], want)
	}
	// The AllReduce and both Broadcasts, and on rank 0 the Reduce.
	testkit.Check(t, len(w.Phases) == 1 && w.Phases[0].Name == "step *" && w.Phases[0].Waited == (30+55+20)*us &&
		w.Phases[0].Parts == 10, "%+v", w.Phases)
}

// By hand, in µs: the times of the collectives are 60+50+40; 60+30+40 and 60+50+55; 60+40+50 and 25+5+15, their skews
// 20, 30, 10, 20 and 20, and after the last begin it takes 40, 30, 50, 40 and 5. Of the receives from 1 one is in the
// ring, and 0 sends to 1 in the ring. In the network the others waited for rank r what the one before it did, 2(r+1),
// and r+1 of their own of the one behind it.
func TestWaitsInAllFormats(t *testing.T) {
	s := jobtest.Load(t, jobtest.WithWaits(t))
	uncertain(s, func(rank int) uint64 { return uint64(rank+1) * 4 * us })
	w := jobtest.Operations(t, s.Write()).WaitStates
	var text, values, markdown bytes.Buffer
	testkit.Must(t, report.Waits(w, report.Clock{Begin: jobtest.T0}).WriteText(&text))
	testkit.Must(t, report.Waits(w, report.Clock{Begin: jobtest.T0}).WriteCSV(&values))
	testkit.Must(t, report.Waits(w, report.Clock{Begin: jobtest.T0}).WriteMarkdown(&markdown))
	golden.Text(t, "testdata/waits.txt", text.String())
	golden.Text(t, "testdata/waits.csv", values.String())
	golden.Text(t, "testdata/waits.md", markdown.String())
	b := testkit.Value(json.MarshalIndent(w, "", "  "))(t)
	golden.Text(t, "testdata/waits.json", string(b)+"\n")
}

// Messages whose other end is not in the archive, or comes very late, are counted when the data has ended.
func TestMessagesWithoutTheOtherEnd(t *testing.T) {
	s := jobtest.Load(t, jobtest.WithWaits(t))
	// Without the ring's and all other receives of rank 2.
	s.Events[jobtest.Stream(2)] = slices.DeleteFunc(
		s.Events[jobtest.Stream(2)], func(ev otf2.Event) bool { return ev.Kind == otf2.EventMpiIrecv })
	w := jobtest.Operations(t, s.Write()).WaitStates
	testkit.Check(t, w.NotCompared.Unmatched == 3 && w.Messages == 3 && w.Total.Unstated == w.Total.Waits, "%+v", w)
	// Rank 2 waited for nobody: what it sent in the ring was awaited.
	testkit.Equal(t, w.Ranks[2].Waited, (10+5+10+10)*us, "rank 2 waited")
}

func isSource(attributes *attribute.Table, id otf2.AttributeRef) bool {
	ref, ok := attributes.Resolve(id)
	return ok && ref == regions.AttrTimingSource
}

// Times in the test jobs.
const (
	t0 = jobtest.T0
	us = jobtest.Microsecond
)

// If ordinals show that recording began later, there is no start-up in waits, causes and times.
func TestALaterRecordingHasNoStartUp(t *testing.T) {
	whole := jobtest.Operations(t, jobtest.WithWaits(t))
	s := jobtest.Load(t, jobtest.WithWaits(t))
	for _, events := range s.Events {
		for i := range events {
			for k := range events[i].Attributes {
				if a := &events[i].Attributes[k]; s.Defs.String(
					s.Defs.Attributes[a.ID].Name) == regions.Attributes[regions.AttrOrdinal].Name {
					a.Bits += 5
				}
			}
		}
	}
	later := jobtest.Operations(t, s.Write())
	for _, o := range later.Operations {
		testkit.Check(t, o.StartUp <= 0, "%s: %d operations of start-up", o.Operation, o.StartUp)
	}
	a, b := whole.WaitStates, later.WaitStates
	testkit.Check(t, a.StartUp.Waited != 0 && b.StartUp == (waits.StartUp{}) &&
		b.Total.Waited == a.Total.Waited+a.StartUp.Waited, "waited %d, at the start %d; of all %d, at the start %d",
		b.Total.Waited, b.StartUp.Waited, a.Total.Waited, a.StartUp.Waited)
	const ring = 20 * us // between ranks that meet first in the ring, whose messages have no ordinals
	if c := later.Causes; c.StartUp != ring || c.Waited+ring != whole.Causes.Waited+whole.Causes.StartUp {
		t.Errorf("causes of %g ns, of start-up %g; of all %g, of start-up %g", c.Waited, c.StartUp, whole.Causes.Waited,
			whole.Causes.StartUp)
	}
}
