// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// write is one operation of a sink.
type write struct {
	data []byte
	off  int64
}

// journal is a sink that remembers its operations, so that a crash after any part of them can be played back.
type journal struct {
	memoryFile
	writes []write
}

func (j *journal) WriteAt(p []byte, off int64) (int, error) {
	j.writes = append(j.writes, write{bytes.Clone(p), off})
	return j.memoryFile.WriteAt(p, off)
}

// page is the unit in which a write may be cut short by the end of the process.
const page = 4096

// cuts lists the positions at which a write may be interrupted: before it, and where it reaches a new page.
func (w *write) cuts() []int {
	list := []int{0}
	for p := w.off - w.off%page + page; p < w.off+int64(len(w.data)); p += page {
		list = append(list, int(p-w.off))
	}
	return list
}

// crashWriter writes events of several kinds, flushed at odd moments, over several chunks. It calls flushed with
// the number of events after every operation that makes them durable.
func crashWriter(t testing.TB, w *EventWriter, flushed func(events uint64)) {
	var a AttributeList
	for i := range 60_000 {
		at := Timestamp(i / 3)
		switch i % 4 {
		case 0:
			a.Reset()
			a.Uint64(0, uint64(i)<<20)
			a.String(1, StringRef(i))
			testkit.Must(t, w.Enter(at, &a, RegionRef(i)))
		case 1:
			testkit.Must(t, w.MpiCollectiveBegin(at, nil))
		case 2:
			testkit.Must(t, w.MpiCollectiveEnd(at, nil, CollectiveOpAllgather, CommRef(i%7), CollectiveRootNone,
				uint64(i), uint64(i)<<13))
		case 3:
			testkit.Must(t, w.Leave(at, nil, RegionRef(i)))
		}
		overPages := (w.base+int64(w.pos))%page == page-1 // the end mark will lie on two pages
		if overPages || i%1013 == 0 || i == 1 || i == 2 || i%9001 == 1 {
			testkit.Must(t, w.Flush())
			flushed(w.Events())
		}
	}
	testkit.Must(t, w.Close())
	flushed(w.Events())
}

// Whenever the process ends, the file is whole: it has an end mark behind the last event of the last flush, or of
// the one under way.
func TestCrashLeavesWholeFile(t *testing.T) {
	w := testkit.Value(newEventWriter(nil))(t)
	j := &journal{}
	testkit.Must(t, w.open(j))
	type durable struct {
		writes int // operations done
		events uint64
	}
	states := []durable{{len(j.writes), 0}}
	crashWriter(t, w, func(events uint64) { states = append(states, durable{len(j.writes), events}) })
	testkit.Require(t, len(j.memoryFile.data) >= 3*DefaultEventChunkSize,
		"%d bytes, want more than three chunks", len(j.memoryFile.data))
	path := filepath.Join(t.TempDir(), "0.evt")
	f := testkit.Value(os.Create(path))(t)
	defer f.Close()
	apply := func(data []byte, off int64) { testkit.Value(f.WriteAt(data, off))(t) }
	// events lists how many events a reader may find after a number of whole operations.
	done, crashes := 0, 0
	var last ScanResult
	inspect := func(torn bool) {
		crashes++
		s, err := ScanEventFile(path, DefaultEventChunkSize)
		testkit.Require(t, err == nil && s.Complete, "after %d writes (torn: %v): %+v, %v", done, torn, s, err)
		testkit.Require(t, s.Events >= last.Events,
			"after %d writes: %d events, %d before", done, s.Events, last.Events)
		for len(states) > 0 && states[0].writes <= done {
			testkit.Require(t, s.Events >= states[0].events,
				"after %d writes: %d events, %d were flushed", done, s.Events, states[0].events)
			testkit.Require(t, states[0].writes != done || torn || s.Events == states[0].events,
				"after %d writes: %d events, want %d", done, s.Events, states[0].events)
			states = states[1:]
		}
		last = s
	}
	for i := range j.writes {
		op := &j.writes[i]
		if i == 0 { // creation: before it there is no file worth the name
			apply(op.data, op.off)
			done = 1
			inspect(false)
			continue
		}
		for _, cut := range op.cuts() {
			if cut > 0 {
				apply(op.data[:cut], op.off)
				inspect(true)
			}
		}
		apply(op.data, op.off)
		done = i + 1
		inspect(false)
	}
	testkit.Check(t, len(states) == 0 && last.Events == w.Events() && crashes >= 200,
		"%d events of %d, %d flushes not seen, %d crashes", last.Events, w.Events(), len(states), crashes)
}

// faulty fails from a write on, having written a part of it.
type faulty struct {
	memoryFile
	left int // bytes until the disk is full
}

func (f *faulty) WriteAt(p []byte, off int64) (int, error) {
	if len(p) <= f.left {
		f.left -= len(p)
		return f.memoryFile.WriteAt(p, off)
	}
	n, _ := f.memoryFile.WriteAt(p[:f.left], off)
	f.left = 0
	return n, syscall.ENOSPC
}

// A full disk: the error sticks, and the file is that of the last good flush.
func TestFullDisk(t *testing.T) {
	for _, room := range []int{25, 29, 30, 40, 100, 5000, DefaultEventChunkSize - 3, DefaultEventChunkSize + 7} {
		w := testkit.Value(newEventWriter(nil))(t)
		sink := &faulty{left: room}
		testkit.Must(t, w.open(sink))
		var failure error
		good := uint64(0)
		for i := 0; failure == nil && i < 1_000_000; i++ {
			if failure = w.Enter(Timestamp(i), nil, RegionRef(i)); failure == nil && i%11 == 0 {
				if failure = w.Flush(); failure == nil {
					good = w.Events()
				}
			}
		}
		testkit.Require(t, errors.Is(failure, syscall.ENOSPC), "room %d: %v, want ENOSPC", room, failure)
		for name, err := range map[string]error{"Enter": w.Enter(1<<40, nil, 0), "Flush": w.Flush(), "Sync": w.Sync(),
			"Close": w.Close()} {
			testkit.Check(t, errors.Is(err, syscall.ENOSPC), "room %d: %s afterwards: %v, want ENOSPC", room, name, err)
		}
		b := sink.data
		s, err := ScanEventFile(tempFile(t, b), DefaultEventChunkSize)
		// A full chunk is flushed without Flush, and the count in the header may be what failed.
		testkit.Check(t, err == nil && s.Complete && s.Events >= good,
			"room %d: %+v, %v; %d events were flushed", room, s, err, good)
		testkit.Equal(t, string(b[len(b)-2:]), "\x02\x01", "room %d: file ends in % x", room, b[len(b)-2:])
	}
}

// Files cut anywhere are read up to the cut, and repaired.
func TestScanAndRepairCutFiles(t *testing.T) {
	whole := NewMemoryEventWriter(nil)
	crashWriter(t, whole, func(uint64) {})
	b := whole.Bytes()
	all := testkit.Value(readEvents(tempFile(t, b), DefaultEventChunkSize))(t)
	for _, cut := range []int{0, 1, 17, 18, 19, 26, 27, 28, 200, 4711, DefaultEventChunkSize - 1, DefaultEventChunkSize,
		DefaultEventChunkSize + 5,
		DefaultEventChunkSize + headerSize, 2*DefaultEventChunkSize + 1234, len(b) - 2, len(b) - 1} {
		path := tempFile(t, b[:cut])
		events, err := readEvents(path, DefaultEventChunkSize)
		complete := cut == len(b)-1 // the first byte of the end mark is there
		var ferr *FormatError
		testkit.Require(t, complete == (err == nil) &&
			(err == nil || errors.Is(err, ErrTruncated) && errors.As(err, &ferr)), "cut at %d: %v", cut, err)
		for i := range events {
			testkit.Require(t, events[i].Time == all[i].Time && events[i].Kind == all[i].Kind,
				"cut at %d: event %d is %v, want %v", cut, i, events[i], all[i])
		}
		s, err := ScanEventFile(path, DefaultEventChunkSize)
		testkit.Require(t, err == nil && s.Complete == complete && s.Events == uint64(len(events)),
			"cut at %d: scanned as %+v, %v; want %d events", cut, s, err, len(events))
	}
}

var _ io.WriterAt = (*journal)(nil)
