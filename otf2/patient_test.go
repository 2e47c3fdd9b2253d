// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// flaky is a sink of which some operations fail, a writing one after half of it.
type flaky struct {
	memoryFile
	calls       int
	from, times int  // operations from ≤ number < from+times fail
	shortens    bool // it can be truncated all the same, as a full disk's, and nothing is written where writing fails
}

func (f *flaky) fails() bool {
	f.calls++
	return f.from <= f.calls && f.calls < f.from+f.times
}

func (f *flaky) WriteAt(p []byte, off int64) (int, error) {
	if f.fails() {
		if f.shortens {
			return 0, syscall.EIO
		}
		n, _ := f.memoryFile.WriteAt(p[:len(p)/2], off)
		return n, syscall.EIO
	}
	return f.memoryFile.WriteAt(p, off)
}

func (f *flaky) Truncate(size int64) error {
	if !f.shortens && f.fails() {
		return syscall.EIO
	}
	return f.memoryFile.Truncate(size)
}

// writeFlaky writes events of several chunks, with a flush now and then, and calls failed after each that failed.
func writeFlaky(t *testing.T, sink *flaky, failed func(w *EventWriter)) (tries int) {
	t.Helper()
	unasked := 0
	w := testkit.Value(newEventWriter(&EventWriterOptions{Patient: func(error) { unasked++ }}))(t)
	w.file.sink = sink
	flush := func() bool {
		if w.Flush() == nil {
			return true
		}
		tries++
		if failed != nil {
			failed(w)
		}
		return false
	}
	var long AttributeList // fills chunks with few events, as each is encoded anew for each operation that fails
	for k := range 20 {
		long.Uint64(AttributeRef(k), 1<<63)
	}
	for i := range 4200 {
		testkit.Must(t, w.Enter(Timestamp(i/2), &long, RegionRef(i)))
		testkit.Must(t, w.Leave(Timestamp(i/2), nil, RegionRef(i)))
		if i%101 == 0 {
			flush()
		}
	}
	for range 100 {
		if flush() {
			break
		}
	}
	testkit.Must(t, w.Close())
	return tries + unasked
}

// Whatever operation fails, and for how long: nothing of what was written is lost, and meanwhile the file is whole,
// with as many events as the writer says. One that is as long as the writer says ends there.
func TestPatientWriterLosesNothing(t *testing.T) {
	for _, shortens := range []bool{false, true} {
		t.Run(fmt.Sprintf("shortens=%t", shortens), func(t *testing.T) { losesNothing(t, shortens) })
	}
}

func losesNothing(t *testing.T, shortens bool) {
	whole := &flaky{shortens: shortens}
	writeFlaky(t, whole, nil)
	testkit.Require(t, len(whole.data) >= 3*DefaultEventChunkSize,
		"%d bytes, want more than three chunks", len(whole.data))
	path := filepath.Join(t.TempDir(), "0.evt")
	for _, times := range []int{1, 2, 3, 40} {
		for from := 1; from <= whole.calls; from += []int{1, 7}[min(times-1, 1)] {
			sink := &flaky{from: from, times: times, shortens: shortens}
			tries := writeFlaky(t, sink, func(w *EventWriter) {
				if w.Size() == 0 {
					return // it could not even be made
				}
				testkit.Must(t, os.WriteFile(path, sink.data, 0o600))
				s, err := ScanEventFile(path, DefaultEventChunkSize)
				cleaned := sink.calls >= sink.from+sink.times // no operation failed that was to bring back what was
				if err != nil || cleaned && !s.Complete || s.Events < w.Flushed() || int64(len(sink.data)) < w.Size() {
					t.Fatalf(
						"operations %d+%d fail: the file has %+v, %v, %d bytes; the writer says %d events, %d bytes",
						from, times, s, err, len(sink.data), w.Flushed(), w.Size())
				}
				testkit.Require(t, int64(len(sink.data)) != w.Size() || s.Complete,
					"operations %d+%d fail: the file has no end, and %d bytes, as the writer says", from, times,
					len(sink.data))
				if times == 1 {
					start := (len(sink.data) - 1) / DefaultEventChunkSize * DefaultEventChunkSize
					n := binary.LittleEndian.Uint64(sink.data[start+lastEventAt:])
					if s.Events != w.Flushed() || int64(len(sink.data)) != w.Size() || n != w.Flushed() {
						t.Fatalf(
							"operation %d fails: %d events, %d in the header, %d bytes; the writer says %d events, "+
								"%d bytes",
							from, s.Events, n, len(sink.data), w.Flushed(), w.Size())
					}
				}
			})
			testkit.Require(t, tries != 0, "operations %d+%d: no error was returned", from, times)
			testkit.Require(t, bytes.Equal(sink.data, whole.data),
				"operations %d+%d fail: the file is another one", from, times)
		}
	}
}
