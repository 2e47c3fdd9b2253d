// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"ncclotf2/otf2"
	"ncclotf2/regular"
)

// placed is what became of the event files.
type placed struct {
	mu             sync.Mutex
	linked, copied int
	rewritten      int            // of the copied ones, into chunks of another size
	problems       map[int]string // by location
}

// endMark closes every event file: end of file, end of buffer.
var endMark = [2]byte{0x02, 0x01}

// lastEventOffset is where a chunk's header has the number of its last event: behind record, byte
// order and the number of the first event.
const lastEventOffset = 10

// placeEvents puts every location's event file into dir and learns its number of events and the
// archive's first and last time.
//
// Files of finished processes are linked, unread, if their chunks fit the archive. Those of others are copied, because their writer
// may still be there, or may have died half-way through a record: up to what the process's
// description says while it runs, else up to the last whole record.
func (a *archive) placeEvents(dir string) (*placed, error) {
	out := &placed{problems: make(map[int]string)}
	times := make([]lifespan, len(a.locations))
	var done atomic.Int64
	err := forEach(len(a.locations), a.opts.workers(), func(i int) error {
		l := a.locations[i]
		to := filepath.Join(dir, fileName(l.Self, ".evt"))
		times[i] = lifespan{math.MaxUint64, 0}
		if err := a.placeOne(l, to, out, i, &times[i]); err != nil {
			return fmt.Errorf("event file of %s, location %d: %w", a.owner(l), l.number, err)
		}
		a.opts.progress("event files", int(done.Add(1)), len(a.locations))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, t := range times {
		if t.begin <= t.end {
			a.spans = append(a.spans, span{a.locations[i].part, t})
		}
	}
	for i := range a.locations {
		if text := out.problems[i]; text != "" {
			a.problems = append(a.problems, text)
		}
	}
	for _, p := range a.run.parts {
		if p.state == Finished && p.process.FirstTime != 0 {
			a.spans = append(a.spans, span{p, lifespan{p.process.FirstTime, p.process.LastTime}})
		}
	}
	a.measure()
	return out, nil
}

// measure finds the first and the last time of all events by the processes' present corrections.
func (a *archive) measure() {
	a.first, a.last = math.MaxUint64, 0
	for _, s := range a.spans {
		a.first, a.last = min(a.first, s.part.at(s.begin)), max(a.last, s.part.at(s.end))
	}
}

func (a *archive) owner(l *location) string {
	if l.part == nil {
		return "a process without data"
	}
	return l.part.id()
}

func (a *archive) placeOne(l *location, to string, out *placed, i int, times *lifespan) error {
	if l.source == nil {
		return writeEmpty(to)
	}
	if l.part.pieces != nil {
		return a.placePieces(l, to, out, i, times)
	}
	from := filepath.Join(l.part.dir, strconv.FormatUint(uint64(l.number), 10)+".evt")
	chunk := l.part.process.EventChunkSize
	info, err := ownFile(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		out.problem(i, "%s, location %d: the event file was not taken: %v", l.part.id(), l.number, err)
		return writeEmpty(to)
	}
	if l.part.state == Finished && err == nil {
		switch whole := info.Size() == l.source.Bytes; {
		case whole && a.fits(info.Size(), chunk):
			l.Events = l.source.Events
			return a.link(from, to, out)
		case !whole:
			out.problem(i, "%s, location %d: the event file has %d bytes instead of %d; what is whole of it was taken",
				l.part.id(), l.number, info.Size(), l.source.Bytes)
		}
	}
	limit := int64(math.MaxInt64)
	if l.part.state == Running {
		limit = l.source.Bytes
	}
	err = copyFile(from, to, limit)
	if errors.Is(err, fs.ErrNotExist) {
		if l.source.Events > 0 {
			out.problem(i, "%s, location %d: the event file with %d events is gone", l.part.id(), l.number, l.source.Events)
		}
		return writeEmpty(to)
	} else if err != nil {
		return err
	}
	out.count(false)
	scan, damage, err := mend(to, chunk)
	if err != nil {
		return err
	}
	// While its writer works a file is cut where it ended at the last flush but one, and its end is overwritten.
	if damage != nil && l.part.state != Running {
		out.problem(i, "%s, location %d: the event file is damaged after %d events; they were taken: %v", l.part.id(), l.number, scan.Events, damage)
	}
	l.Events = scan.Events
	if scan.Events > 0 {
		*times = lifespan{uint64(scan.First), uint64(scan.Last)}
	}
	if info, err := os.Stat(to); err != nil || a.fits(info.Size(), chunk) {
		return err
	}
	return a.rewrite(to, chunk, out)
}

func (out *placed) problem(i int, format string, args ...any) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.problems[i] = fmt.Sprintf(format, args...)
}

func (out *placed) count(linked bool) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if linked {
		out.linked++
	} else {
		out.copied++
	}
}

// fits tells whether an event file can be read in the archive as it is: its chunks have the archive's size, or it has one.
func (a *archive) fits(size int64, chunk uint64) bool {
	return chunk == a.chunk || uint64(size) <= min(chunk, a.chunk)
}

// rewrite gives a copied event file chunks of the archive's size.
func (a *archive) rewrite(path string, chunk uint64, out *placed) error {
	old := path + ".old"
	if err := os.Rename(path, old); err != nil {
		return err
	}
	if _, err := otf2.RewriteEvents(old, path, chunk, a.chunk); err != nil {
		return err
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	out.rewritten++
	return os.Remove(old)
}

// link makes a hard link, or a copy where the file system has none to offer.
func (a *archive) link(from, to string, out *placed) error {
	if linkFile(from, to) == nil {
		out.count(true)
		return nil
	}
	out.count(false)
	return copyFile(from, to, math.MaxInt64)
}

// linkFile is replaced by tests that need a file system without links.
var linkFile = os.Link

// copyFile copies at most limit bytes of a file. On one file system the kernel does it without
// moving the data where it can.
func copyFile(from, to string, limit int64) error {
	in, err := regular.OpenOwn(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := newFile(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, limit))
	return errors.Join(err, out.Close())
}

// writeEmpty writes an event file without events: readers want one for every location.
func writeEmpty(path string) error {
	if err := removeFile(path); err != nil {
		return err
	}
	w, err := otf2.CreateEventWriter(path, nil)
	if err != nil {
		return err
	}
	return w.Close()
}

// mend makes a copied event file end after its last whole record, and brings the number of events
// into the header of its last chunk. damage tells why what follows that record cannot be one, if it
// is not just cut off. A file of which not even a header is there becomes empty.
func mend(path string, chunkSize uint64) (scan otf2.ScanResult, damage, err error) {
	scan, err = otf2.ScanEventFile(path, chunkSize)
	if errors.Is(err, otf2.ErrCorrupt) {
		damage, err = err, nil
	}
	if err != nil {
		return scan, nil, err
	}
	if scan.Events == 0 {
		return scan, damage, writeEmpty(path)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return scan, damage, err
	}
	defer f.Close()
	end := scan.ValidBytes
	chunk := (end - 1) / int64(chunkSize) * int64(chunkSize)
	var count [8]byte
	binary.LittleEndian.PutUint64(count[:], scan.Events)
	if _, err := f.WriteAt(count[:], chunk+lastEventOffset); err != nil {
		return scan, damage, err
	}
	if _, err := f.WriteAt(endMark[:], end); err != nil {
		return scan, damage, err
	}
	if err := f.Truncate(end + int64(len(endMark))); err != nil {
		return scan, damage, err
	}
	return scan, damage, f.Close()
}
