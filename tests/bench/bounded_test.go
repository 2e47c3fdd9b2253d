// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// heap keeps the largest size of Go's heap, garbage and unused room in it included.
type heap struct {
	samples []metrics.Sample
	peak    uint64
}

func newHeap() *heap {
	runtime.GC() // what tests before left
	return &heap{samples: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}}}
}

func (h *heap) look() {
	metrics.Read(h.samples)
	h.peak = max(h.peak, h.samples[0].Value.Uint64()+h.samples[1].Value.Uint64())
}

// TestBoundedMemory writes an archive that is much larger than the heap may get and reads it. With BENCH_LARGE=1 it has
// 4 GiB, in the temporary folder (TMPDIR), and the heap 64 MiB; otherwise both are smaller.
func TestBoundedMemory(t *testing.T) {
	size, limit := int64(64<<20), uint64(16<<20)
	if os.Getenv("BENCH_LARGE") == "1" {
		size, limit = 4<<30, 64<<20
	}
	const locations, every = 8, 1 << 12
	dir := t.TempDir()
	h := newHeap()

	var writers [locations]*otf2.EventWriter
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "traces"), 0o755))
	for l := range writers {
		w := testkit.Value(otf2.CreateEventWriter(filepath.Join(dir, "traces", fmt.Sprintf("%d.evt", l)), nil))(t)
		writers[l] = w
	}
	var list otf2.AttributeList
	var written, wantSum uint64
	for round := uint64(0); ; round++ {
		if round%every == 0 {
			var bytes int64
			for _, w := range writers {
				bytes += w.Size()
			}
			if bytes >= size {
				break
			}
		}
		for l, w := range writers {
			at := otf2.Timestamp(10*round*locations + uint64(l))
			list.Reset()
			list.Uint64(0, round<<20)
			list.Uint32(1, uint32(l))
			testkit.Must(t, w.Enter(at, &list, otf2.RegionRef(l)))
			testkit.Must(t, w.Leave(at+5, nil, otf2.RegionRef(l)))
			written += 2
			wantSum += 2*uint64(at) + 5 + round<<20
		}
		if round%(every/locations) == 0 {
			h.look()
		}
	}
	var bytes int64
	for _, w := range writers {
		testkit.Must(t, w.Close())
		bytes += w.Size()
	}
	h.look()
	t.Logf("%d events, %d MiB written with a heap of at most %.1f MiB", written, bytes>>20, float64(h.peak)/(1<<20))
	testkit.Check(t, h.peak <= limit, "writing: heap of %d bytes, want at most %d", h.peak, limit)
	finish(t, dir, locations, written/locations)

	h = newHeap()
	a := testkit.Value(otf2.Open(filepath.Join(dir, "traces.otf2"), nil))(t)
	defer a.Close()
	var read, sum uint64
	for e, err := range a.Events(nil) {
		testkit.Must(t, err)
		sum += uint64(e.Time)
		if e.Kind == otf2.EventEnter {
			sum += e.Attributes[0].Bits
		}
		if read++; read%every == 0 {
			h.look()
		}
	}
	h.look()
	t.Logf("read with a heap of at most %.1f MiB", float64(h.peak)/(1<<20))
	testkit.Check(t, read == written && sum == wantSum,
		"read %d events with sum %d, written %d with sum %d", read, sum, written, wantSum)
	testkit.Check(t, h.peak <= limit, "reading: heap of %d bytes, want at most %d", h.peak, limit)
}

// finish writes what makes event files an archive.
func finish(t *testing.T, dir string, locations, events uint64) {
	t.Helper()
	n := testkit.Value(writeDefinitions(filepath.Join(dir, "traces.def"), locations, events))(t)
	testkit.Must(t, otf2.WriteAnchor(filepath.Join(dir, "traces.otf2"),
		&otf2.Anchor{Locations: locations, GlobalDefs: n, TraceID: 1}))
}

// TestOpenFiles reads 10 000 locations whose events interleave while this process may have 256 files open only.
func TestOpenFiles(t *testing.T) {
	const locations, events, most = 10_000, 20, 256
	dir := t.TempDir()
	testkit.Value(writeArchive(enterLeave, locations, events, 0, dir))(t)
	var old unix.Rlimit
	testkit.Must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	testkit.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: old.Max}))
	defer func() {
		err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
		testkit.Check(t, err == nil, "%v", err)
	}()
	before := testkit.Value(openFiles())(t)
	a := testkit.Value(otf2.Open(filepath.Join(dir, "traces.otf2"), nil))(t)
	defer a.Close()
	perLocation := make([]int, locations)
	last, peak, n := otf2.Timestamp(0), 0, 0
	for e, err := range a.Events(nil) {
		testkit.Must(t, err)
		testkit.Require(t, e.Time > last, "event %d: time %d follows %d", n, e.Time, last)
		last = e.Time
		perLocation[e.Location]++
		if n%500 == 0 {
			now := testkit.Value(openFiles())(t)
			peak = max(peak, now)
		}
		n++
	}
	for l, n := range perLocation {
		testkit.Require(t, n == events, "location %d: %d events, want %d", l, n, events)
	}
	t.Logf("at most %d open files, %d of them before reading", peak, before)
	testkit.Check(t, peak <= most, "%d open files, want at most %d", peak, most)
	testkit.Check(t, peak > before, "%d open files while reading, as before: the count is wrong", peak)
}
