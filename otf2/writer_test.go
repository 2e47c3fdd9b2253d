// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Refused events leave the writer usable and the file as it was.
func TestRefusedEvents(t *testing.T) {
	w := NewMemoryEventWriter(&EventWriterOptions{CheckNesting: true})
	testkit.Must(t, w.Enter(100, nil, 1))
	var te *TimeError
	err := w.Leave(99, nil, 1)
	testkit.Check(t, errors.As(err, &te) && te.Last == 100 && errors.Is(err, ErrInvalid), "event back in time: %v", err)
	var ne *NestingError
	err = w.Leave(101, nil, 2)
	testkit.Check(t, errors.As(err, &ne) && ne.Open == 1, "leave of another region: %v", err)
	err = w.Write(EventLeave, 101, nil, []uint64{2})
	testkit.Check(t, errors.As(err, &ne), "the same by Write: %v", err)
	var a AttributeList
	a.Uint64(1, 1)
	a.Uint8(1, 1)
	err = w.Leave(101, &a, 1)
	testkit.Check(t, errors.Is(err, ErrInvalid), "attribute twice: %v", err)
	testkit.Must(t, w.Leave(101, nil, 1))
	err = w.Leave(102, nil, 1)
	testkit.Check(t, errors.As(err, &ne) && ne.Depth == 0, "leave without enter: %v", err)
	for _, bad := range []struct {
		kind EventKind
		args []uint64
	}{{9, nil}, {93, nil}, {EventEnter, nil}, {EventEnter, []uint64{1, 2}}, {EventMetric, []uint64{1, 2, 4, 5}},
		{EventMetric, []uint64{1, 1 << 63}}} {
		err := w.Write(bad.kind, 103, nil, bad.args)
		testkit.Check(t, errors.Is(err, ErrInvalid), "Write(%v, %v): %v", bad.kind, bad.args, err)
	}
	err = w.Metric(103, nil, 1, []Type{TypeUint64}, nil)
	testkit.Check(t, errors.Is(err, ErrInvalid), "metric without value: %v", err)
	err = w.Metric(103, nil, 1, make([]Type, 256), make([]uint64, 256))
	testkit.Check(t, errors.Is(err, ErrInvalid), "metric with 256 values: %v", err)
	testkit.Must(t, w.Enter(103, nil, 7))
	err = w.Close()
	testkit.Check(t, errors.As(err, &ne) && ne.Open == 7 && ne.Depth == 1, "close with an open region: %v", err)
	err = w.Enter(104, nil, 7)
	testkit.Check(t, errors.Is(err, ErrClosed), "enter after close: %v", err)
	err = w.Close()
	testkit.Check(t, errors.Is(err, ErrClosed), "second close: %v", err)
	events := testkit.Value(readEvents(tempFile(t, w.Bytes()), DefaultEventChunkSize))(t)
	testkit.Check(t, len(events) == 3 && w.Events() == 3 && w.LastTime() == 103,
		"%d events in the file, %d counted, last time %d", len(events), w.Events(), w.LastTime())
}

// The largest record that fits a chunk is written and read; one more argument is refused.
func TestLargestRecord(t *testing.T) {
	w := NewMemoryEventWriter(nil)
	testkit.Must(t, w.Enter(1, nil, 0))
	fits := 0
	for n := 52_000; ; n++ {
		err := w.ProgramBegin(2, nil, 1<<31, bigStrings(n))
		if errors.Is(err, ErrTooLarge) {
			break
		}
		testkit.Must(t, err)
		fits = n
	}
	testkit.Must(t, w.Leave(2, nil, 0))
	testkit.Must(t, w.Close())
	testkit.Check(t, fits >= 52_000 && DefaultEventChunkSize-5*fits <= 60,
		"at most %d arguments in a chunk of %d bytes", fits, DefaultEventChunkSize)
	events := testkit.Value(readEvents(tempFile(t, w.Bytes()), DefaultEventChunkSize))(t)
	n := len(events)
	testkit.Check(t, uint64(n) == w.Events() && len(events[n-2].Args) == fits+2, "read %d events of %d", n, w.Events())
}

func bigStrings(n int) []StringRef {
	list := make([]StringRef, n)
	for i := range list {
		list[i] = 1<<31 + StringRef(i)
	}
	return list
}

// At every chunk border there is room for an end mark, whatever the sizes of the records are.
func TestChunkBorders(t *testing.T) {
	borders := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := NewMemoryEventWriter(nil)
		step := rapid.IntRange(1, 30).Draw(rt, "step")
		count := 0
		add := func(at Timestamp, n int) {
			count++
			testkit.Must(t, w.ProgramBegin(at, nil, 1<<31, bigStrings(n)))
		}
		add(1, 52_000-rapid.IntRange(0, 40).Draw(rt, "start"))
		for i := range 700 { // small records approach the border by steps of every size, new stamps and all
			add(Timestamp(2+i/step), i%4)
		}
		testkit.Must(t, w.Close())
		b := w.Bytes()
		for end := DefaultEventChunkSize; end < len(b); end += DefaultEventChunkSize {
			borders++
			if b[end-1] != 0 || b[end-2] != 0 {
				rt.Fatalf("chunk ends in % x", b[end-8:end])
			}
		}
		events := testkit.Value(readEvents(tempFile(t, b), DefaultEventChunkSize))(t)
		testkit.Require(rt, len(events) == count, "read %d events of %d", len(events), count)
	})
	testkit.Check(t, borders != 0, "no border was reached")
}

// The one case in which libotf2's estimate leaves a single byte: the record moves to the next chunk.
func TestRecordLeavingOneByte(t *testing.T) {
	w := NewMemoryEventWriter(nil)
	full := DefaultEventChunkSize
	// MpiIsendComplete with a huge id takes its whole estimate of 10 bytes, with a stamp 19.
	at := Timestamp(0)
	for w.pos+1+10+9 < full-700 {
		at++
		testkit.Must(t, w.MpiIsendComplete(at, nil, 1<<63))
	}
	for full-w.pos != 10+9+1 { // approach to exactly one byte more than the record and its stamp
		switch free := full - w.pos; {
		case free > 40+20:
			testkit.Must(t, w.Enter(at, nil, 1<<31)) // 6 bytes, no stamp
		case (free-20)%6 == 0 && free >= 20:
			testkit.Must(t, w.Enter(at, nil, 1<<31))
		default:
			testkit.Must(t, w.Enter(at, nil, 0)) // 2 bytes
			if (free-20)%2 != 0 {
				testkit.Must(t, w.Enter(at, nil, 1)) // 3 bytes
			}
		}
		testkit.Require(t, full-w.pos >= 20, "missed the border: %d bytes free", full-w.pos)
	}
	base := w.base
	testkit.Must(t, w.MpiIsendComplete(at+1, nil, 1<<63))
	testkit.Check(t, w.base == base+int64(full) && w.pos == headerSize+stampSize+10,
		"record stands at %d of chunk %d, want the start of the next chunk", w.pos, w.base/int64(full))
	n := w.Events()
	testkit.Must(t, w.Close())
	s, err := ScanEventFile(tempFile(t, w.Bytes()), DefaultEventChunkSize)
	testkit.Check(t, err == nil && s.Events == n && s.Complete && s.Last == at+1, "%+v, %v; want %d events", s, err, n)
}

// Hot paths do not allocate once their buffers have grown.
func TestWritingDoesNotAllocate(t *testing.T) {
	w := testkit.Value(CreateEventWriter(filepath.Join(t.TempDir(), "0.evt"), nil))(t)
	defer w.Close()
	var a AttributeList
	at := Timestamp(0)
	round := func() {
		at++
		a.Reset()
		a.Uint64(0, 77)
		a.Uint32(1, 5)
		a.Int64(2, -5)
		a.String(3, 9)
		a.Uint8(4, 1)
		a.Double(5, 0.5)
		_ = w.Enter(at, &a, 3)
		_ = w.MpiCollectiveBegin(at+1, nil)
		_ = w.MpiCollectiveEnd(at+2, nil, CollectiveOpAllreduce, 1, CollectiveRootNone, 1<<20, 1<<20)
		at += 3
		_ = w.Leave(at, nil, 3)
	}
	for range 20_000 {
		round()
	}
	testkit.Equal(t, testing.AllocsPerRun(20_000, round), 0, "allocations per round")
	testkit.Equal(t, testing.AllocsPerRun(100, func() { round(); _ = w.Flush() }), 0, "allocations per flush")
}

// Wrong options, paths and definitions are refused.
func TestRefusedFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "0.evt")
	for _, size := range []uint64{1, MinChunkSize - 1, MaxChunkSize + 1} {
		_, err := CreateEventWriter(path, &EventWriterOptions{ChunkSize: size})
		testkit.Check(t, errors.Is(err, ErrInvalid), "chunk size %d: %v", size, err)
	}
	w := testkit.Value(CreateEventWriter(path, nil))(t)
	testkit.Must(t, w.Close())
	_, err := CreateEventWriter(path, nil)
	testkit.Check(t, errors.Is(err, os.ErrExist), "file that exists: %v", err)
	defs := filepath.Join(dir, "l.def")
	one := []ClockOffset{{Time: 5}, {Time: 5}}
	err = WriteLocalDefs(defs, nil, one, 0)
	testkit.Check(t, errors.Is(err, ErrInvalid), "two offsets at one time: %v", err)
	m := NewDenseMapping(MappingString, []uint64{1})
	err = WriteLocalDefs(defs, []*MappingTable{m, nil, m}, nil, 0)
	testkit.Check(t, errors.Is(err, ErrInvalid), "two tables of a type: %v", err)
	err = WriteLocalDefs(defs, []*MappingTable{NewDenseMapping(MappingString, nil)}, nil, 0)
	testkit.Check(t, errors.Is(err, ErrInvalid), "empty table: %v", err)
	g := testkit.Value(CreateGlobalDefWriter(filepath.Join(dir, "g.def"), 0))(t)
	err = g.String(0, "a\x00b")
	testkit.Check(t, errors.Is(err, ErrInvalid), "text with NUL: %v", err)
	err = g.Group(0, 0, GroupTypeRegions, 0, 0, make([]uint64, 5<<20))
	testkit.Check(t, errors.Is(err, ErrTooLarge), "group larger than a chunk: %v", err)
	testkit.Must(t, g.String(0, ""))
	testkit.Equal(t, g.Count(), 1, "records counted")
	g.Abort()
	for _, name := range []string{"", "A", "A::", "::A", "A:B", "A::B C", "A::B:"} {
		err := WriteAnchor(filepath.Join(dir, "a.otf2"), &Anchor{Properties: []Property{{Name: name}}})
		testkit.Check(t, errors.Is(err, ErrInvalid), "property name %q: %v", name, err)
	}
	left := testkit.Value(os.ReadDir(dir))(t)
	testkit.Equal(t, len(left), 1, "left behind: %v", left)
}

// A refused event leaves no trace, also where it would have begun a chunk: the event after it, at the time of the one
// before it, is read with its own time.
func TestRefusedEventsAtChunkBorders(t *testing.T) {
	var twice AttributeList
	twice.Uint64(1, 5)
	twice.Uint64(1, 6)
	refusals, borders := 0, 0
	for shift := range Timestamp(40) { // moves the border through the records
		w := NewMemoryEventWriter(nil)
		var want []Timestamp
		write := func(at Timestamp) {
			testkit.Must(t, w.Enter(at, nil, 70_000))
			want = append(want, at)
		}
		for range shift {
			testkit.Must(t, w.Leave(1, nil, 0)) // 2 bytes each, behind one stamp
			want = append(want, 1)
		}
		for at := Timestamp(2); w.Events() < 2*DefaultEventChunkSize/18; at += 10 {
			write(at)
			if w.pos > w.size-100 || w.pos < 100 {
				base := w.base
				if err := w.Enter(at+5, &twice, 1); !errors.Is(err, ErrInvalid) || w.LastTime() != at {
					t.Fatalf("%v, last time %d, want ErrInvalid and %d", err, w.LastTime(), at)
				}
				refusals++
				if w.base != base {
					borders++
				}
				write(at)
			}
		}
		testkit.Must(t, w.Close())
		events := testkit.Value(readEvents(tempFile(t, w.Bytes()), DefaultEventChunkSize))(t)
		testkit.Require(t, len(events) == len(want), "%d events, want %d", len(events), len(want))
		for i := range events {
			testkit.Require(t, events[i].Time == want[i],
				"shift %d: event %d has time %d, want %d", shift, i, events[i].Time, want[i])
		}
	}
	testkit.Check(t, refusals >= 300 && borders >= 40, "only %d refusals, %d of them at borders", refusals, borders)
}
