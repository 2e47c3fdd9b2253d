// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What is written comes back, over the ends of chunks.
func TestSpoolWriter(t *testing.T) {
	var out bytes.Buffer
	h := Header{PID: 4711, Tag: 7, ClockSource: ClockHost, APIVersion: 6,
		Created: ClockTuple{Ticks: 1, Raw: 1, Mono: 2, Real: 3}}
	copy(h.Hostname[:], "far")
	w := NewSpoolWriter(&out, &h)
	const rings, each = 3, 4000
	want := make([][]Record, rings)
	for i := range each {
		for ring := range rings {
			r := Record{
				Ticks: uint64(10 + i), Kind: RecordStart, Type: EventColl, Aux: 1, Handle: uint64(i), Seq: uint64(i),
				Func: "AllReduce",
				Algo: fmt.Sprintf("RING%d", i%5), NChannels: 4, Count: uint64(ring),
			}
			if i%3 == 0 {
				r = Record{Ticks: uint64(10 + i), Kind: RecordStop, Type: EventColl, Handle: uint64(i)}
			}
			w.Record(ring, &r)
			want[ring] = append(want[ring], r)
		}
	}
	comm := Comm{
		APIVersion: 6, ID: 99, NRanks: 4, Rank: 2, NNodes: 1, Device: 3, InitTicks: 5, FinalTicks: 50, InitTID: 4712,
		Name: "world",
		UUID: "GPU-00112233-4455-6677-8899-aabbccddeeff", PCI: "00000000:07:00",
	}
	w.Comm(1, &comm)
	testkit.Must(t, w.Close(ClockTuple{Ticks: 10 + each, Raw: 10 + each}))

	s := testkit.Value(OpenSpool(&out, int64(out.Len())))(t)
	for ended := false; !ended; {
		round := testkit.Value(s.Refresh())(t)
		ended = round.Ended
	}
	if got := s.Header(); got.PID != 4711 || got.Host() != "far" || got.Created != h.Created {
		t.Errorf("header: pid %d, host %q, created %v", got.PID, got.Host(), got.Created)
	}
	testkit.Check(t, s.Orderly() && s.Cut() == "" && s.Lacking() == 0,
		"orderly %v, cut %q, lacking %d", s.Orderly(), s.Cut(), s.Lacking())
	_, ready := s.Comm(0)
	testkit.Check(t, !ready, "entry 0 is ready")
	got, _ := s.Comm(1)
	testkit.Check(t, cmp.Equal(got, comm), "communicator: %s", cmp.Diff(comm, got))
	for ring := range rings {
		var got []Record
		for r := new(Record); s.Rings()[ring].Next(r); {
			got = append(got, *r)
		}
		if err := s.Rings()[ring].Err(); err != nil || !cmp.Equal(got, want[ring]) {
			t.Errorf("ring %d: %d of %d records, %v", ring, len(got), len(want[ring]), err)
		}
	}
	testkit.Check(t, s.Strings().Missing == 0, "%d strings are missing", s.Strings().Missing)
}

// What the layout has no room for is an error or cut as the plugin cuts it, and an error stays.
func TestSpoolWriterLimits(t *testing.T) {
	for name, put := range map[string]func(*SpoolWriter){
		"communicator": func(w *SpoolWriter) { w.Comm(CommMax, &Comm{}) },
		"ring":         func(w *SpoolWriter) { w.Record(RingMax, &Record{Kind: RecordStop}) },
	} {
		w := NewSpoolWriter(new(bytes.Buffer), &Header{})
		put(w)
		err := w.Close(ClockTuple{})
		testkit.Check(t, err != nil && strings.Contains(err.Error(), name), "%s: %v", name, err)
	}
	err := NewSpoolWriter(full{}, &Header{}).Close(ClockTuple{})
	testkit.Check(t, errors.Is(err, errFull), "%v", err)
	w := NewSpoolWriter(new(bytes.Buffer), &Header{})
	testkit.Check(t, w.id(strings.Repeat("x", StringMax+1)) == w.id(strings.Repeat("x", StringMax)),
		"a string is longer than the plugin's")
	for i := range StringSize / 8 {
		w.id(fmt.Sprint(i))
	}
	testkit.Check(t, len(w.heap) <= StringSize && w.id("one more") == 0, "the heap has %d bytes", len(w.heap))
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
