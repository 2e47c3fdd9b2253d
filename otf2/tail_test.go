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

// Whatever a writer flushes, and whenever, is read once, in order, with the times it was written with.
func TestTailReadsWhatIsFlushed(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(dir, string(rune('a'+n%26))+"-"+rapid.StringMatching(`[a-z]{12}`).Draw(rt, "name")+".evt")
		tail, err := NewEventTail(path, 7, MinChunkSize)
		testkit.Must(rt, err)
		for range tail.Events() {
			rt.Fatal("an event of a file that is not there")
		}
		w, err := CreateEventWriter(path, &EventWriterOptions{ChunkSize: MinChunkSize})
		if err != nil {
			rt.Skip("the name is taken")
		}
		var written, flushed, read int
		times := []Timestamp{}
		now := Timestamp(1000)
		var a AttributeList
		for range rapid.IntRange(1, 12).Draw(rt, "rounds") {
			for range rapid.OneOf(rapid.IntRange(0, 50), rapid.Just(20_000)).Draw(rt, "events") {
				now += Timestamp(rapid.SampledFrom([]uint64{0, 0, 1, 1 << 20}).Draw(rt, "step"))
				a.Reset()
				if written%3 == 0 {
					a.Uint64(1, uint64(written))
				}
				testkit.Must(rt, w.Enter(now, &a, RegionRef(written)))
				times = append(times, now)
				written++
			}
			if rapid.Bool().Draw(rt, "flush") {
				testkit.Must(rt, w.Flush())
				flushed = written
			}
			leaveAt := rapid.IntRange(-1, 300).Draw(rt, "leave after")
			for ev, err := range tail.Events() {
				testkit.Must(rt, err)
				if ev.Kind != EventEnter || ev.Args[0] != uint64(read) || ev.Time != times[read] || ev.Location != 7 ||
					(len(ev.Attributes) > 0) != (read%3 == 0) {
					rt.Fatalf("event %d: %+v", read, ev)
				}
				read++
				if leaveAt--; leaveAt == 0 {
					break
				}
			}
			testkit.Require(rt, leaveAt >= 0 || read >= flushed, "%d of %d flushed events were read", read, flushed)
		}
		testkit.Must(rt, w.Close())
		for range tail.Events() {
			read++
		}
		info, err := os.Stat(path)
		if err != nil || read != written || tail.Offset() != info.Size()-endSize {
			rt.Fatalf("%d of %d events, up to %d of %d: %v", read, written, tail.Offset(), info.Size(), err)
		}
	})
}

func TestTailSkipsToATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.evt")
	w := testkit.Value(CreateEventWriter(path, &EventWriterOptions{ChunkSize: MinChunkSize}))(t)
	for i := range 100_000 {
		testkit.Must(t, w.Enter(Timestamp(i), nil, RegionRef(i)))
	}
	testkit.Must(t, w.Flush())
	tail := testkit.Value(NewEventTail(path, 0, MinChunkSize))(t)
	first := func() uint64 {
		for ev, err := range tail.Events() {
			testkit.Must(t, err)
			return ev.Args[0]
		}
		t.Fatal("no events")
		return 0
	}
	testkit.Must(t, tail.SkipTo(80_000))
	at := first()
	testkit.Check(t, at <= 80_000 && at >= 55_000, "skipping to 80000 goes on at %d", at)
	testkit.Must(t, tail.SkipTo(1000))
	testkit.Equal(t, first(), at+1, "skipping back goes on at")
	testkit.Must(t, tail.SkipTo(1<<60))
	last := first()
	testkit.Check(t, last >= 75_000, "skipping to the end goes on at %d", last)
	missing := testkit.Value(NewEventTail(path+".none", 0, MinChunkSize))(t)
	err := missing.SkipTo(5)
	testkit.Check(t, err == nil, "%v", err)
	_, err = NewEventTail(path, 0, 17)
	testkit.Check(t, errors.Is(err, ErrInvalid), "chunk size 17: %v", err)
}

// Damage is an error of each reading, and nothing behind it is taken for events.
func TestTailOfADamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.evt")
	w := testkit.Value(CreateEventWriter(path, nil))(t)
	for i := range 10 {
		testkit.Must(t, w.Enter(Timestamp(i), nil, RegionRef(i)))
	}
	testkit.Must(t, w.Close())
	b := testkit.Read(t, path)
	b[len(b)-2] = 7 // no record has this id
	testkit.Write(t, path, b)
	tail := testkit.Value(NewEventTail(path, 0, DefaultEventChunkSize))(t)
	for round, want := range []int{10, 0} {
		n, failures := 0, 0
		for _, err := range tail.Events() {
			var damage *FormatError
			switch {
			case err == nil:
				n++
			case errors.As(err, &damage):
				failures++
			default:
				t.Error(err)
			}
		}
		testkit.Check(t, n == want && failures == 1, "reading %d: %d events, %d errors", round, n, failures)
	}
}
