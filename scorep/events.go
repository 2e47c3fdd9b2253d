// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/nccl-otf2/nccl-otf2/experiment"
	"github.com/nccl-otf2/nccl-otf2/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// placed is what became of the event files.
type placed struct {
	mu             sync.Mutex
	linked, copied int
	rewritten      int                      // of the copied ones, into chunks of another size
	problems       map[int]string           // by location
	others         []string                 // and those of no location
	damaged        []string                 // of them: files that hold less than they should
	lost           map[*jobs.Process]uint64 // records that these held, as far as is known
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
	out := &placed{problems: make(map[int]string), lost: make(map[*jobs.Process]uint64)}
	times := make([]jobs.Lifespan, len(a.locations))
	var done atomic.Int64
	err := jobs.ForEach(len(a.locations), a.opts.workers(), func(i int) error {
		l := a.locations[i]
		to := filepath.Join(dir, fileName(l.Self, ".evt"))
		times[i] = jobs.Lifespan{Begin: math.MaxUint64, End: 0}
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
		if t.Begin <= t.End {
			a.spans = append(a.spans, span{a.locations[i].part, t})
		}
	}
	for _, p := range a.run.Processes {
		for _, s := range p.Shards() {
			out.leaveBehind(p, s)
		}
	}
	for i := range a.locations {
		if text := out.problems[i]; text != "" {
			a.problems = append(a.problems, text)
		}
	}
	a.problems = append(a.problems, out.others...)
	a.damaged = append(a.damaged, out.damaged...)
	slices.Sort(a.damaged)
	for p, n := range out.lost {
		if n > 0 {
			lost := maps.Clone(p.Shard.Counts.Lost)
			if lost == nil {
				lost = make(map[string]map[string]uint64)
			}
			lost[experiment.LostFromDisk] = map[string]uint64{experiment.LostRecords: n}
			p.Shard.Counts.Lost = lost
		}
	}
	for _, p := range a.run.Processes {
		if p.State == jobs.Finished && p.Shard.FirstTime != 0 {
			a.spans = append(a.spans, span{p, jobs.Lifespan{Begin: p.Shard.FirstTime, End: p.Shard.LastTime}})
		}
	}
	a.measure()
	return out, nil
}

// measure finds the first and the last time of all events by the processes' present corrections.
func (a *archive) measure() {
	a.first, a.last = math.MaxUint64, 0
	for _, s := range a.spans {
		a.first, a.last = min(a.first, s.part.At(s.Begin)), max(a.last, s.part.At(s.End))
	}
}

func (a *archive) owner(l *location) string {
	if l.part == nil {
		return "a process without data"
	}
	return l.part.ID()
}

func (a *archive) placeOne(l *location, to string, out *placed, i int, times *jobs.Lifespan) error {
	if l.source == nil {
		return writeEmpty(to)
	}
	if l.part.Pieces != nil {
		return a.placePieces(l, to, out, i, times)
	}
	s := l.part.Shards()[0]
	from := eventFileOf(s, l.number)
	chunk := l.part.Shard.EventChunkSize
	info, err := ownFile(from)
	if err == nil && s.State == jobs.Finished && info.Size() == l.source.Bytes && a.fits(info.Size(), chunk) {
		l.Events = l.source.Events
		return a.link(from, to, out)
	}
	scan, err := out.take(i, l.part, s, l.source, to)
	if err != nil || scan == nil {
		return errors.Join(err, writeEmpty(to))
	}
	out.count(false)
	l.Events = scan.Events
	if scan.Events > 0 {
		*times = jobs.Lifespan{Begin: uint64(scan.First), End: uint64(scan.Last)}
	}
	if info, err := os.Stat(to); err != nil || a.fits(info.Size(), chunk) {
		return err
	}
	return a.rewrite(to, chunk, out)
}

// take copies the event file of a location that a shard has and makes it end after its last whole record. It tells of what is not as the
// shard's description says. nil: there is nothing to be taken.
func (out *placed) take(i int, of *jobs.Process, s *jobs.Piece, l *experiment.Location, to string) (*otf2.ScanResult, error) {
	from := eventFileOf(s, l.Number)
	name := func() string { return fmt.Sprintf("%s, location %d: %s", of.ID(), l.Number, nameIn(s, from)) }
	limit := int64(math.MaxInt64)
	if s.State == jobs.Running || s.Cut() {
		limit = l.Bytes
	}
	info, err := ownFile(from)
	if err == nil {
		err = copyFile(from, to, limit)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if l.Events > 0 {
			out.damage(i, of, l.Events, "%s, with %s, is gone", name(), jobs.Plural(l.Events, "event"))
		}
		return nil, nil
	case err != nil && info != nil && info.Mode().IsRegular():
		return nil, err
	case err != nil:
		out.damage(i, of, l.Events, "%s, with %s, was not taken: %v", name(), jobs.Plural(l.Events, "event"), err)
		return nil, nil
	}
	good := func(*otf2.Event) error { return nil }
	if s.State == jobs.Crashed {
		good = definedIn(s.Shard)
	}
	scan, damage, err := mend(to, s.Shard.EventChunkSize, good)
	if err != nil {
		return nil, err
	}
	written := l.Events
	if s.State == jobs.Crashed && (damage != nil || s.Cut()) { // behind the last flush that the description knows there may be more
		whole, _ := otf2.ScanEventFile(from, s.Shard.EventChunkSize)
		written = max(written, whole.Events)
	}
	missing := written - min(written, scan.Events)
	switch {
	case s.State == jobs.Running: // a file is cut where it ended at the last flush but one, and its end is overwritten
	case damage != nil && !s.Cut():
		out.damage(i, of, missing, "%s is damaged after %s, of %d; they were taken: %v", name(), jobs.Plural(scan.Events, "event"), max(written, scan.Events), damage)
	case scan.Events < l.Events || s.State == jobs.Finished && info.Size() != l.Bytes:
		out.damage(i, of, missing, "%s has %d bytes and %s instead of %d and %d; what is whole of it was taken", name(), info.Size(), jobs.Plural(scan.Events, "event"), l.Bytes, l.Events)
	default:
		out.lose(of, missing)
	}
	return &scan, nil
}

// leaveBehind counts what is in event files of an unfinished shard that its description does not speak of.
func (out *placed) leaveBehind(of *jobs.Process, s *jobs.Piece) {
	if s.State != jobs.Crashed {
		return
	}
	known := make(map[string]bool)
	for _, l := range s.Shard.Locations {
		known[eventFileOf(s, l.Number)] = true
	}
	files, _ := filepath.Glob(filepath.Join(s.Dir, "*.evt"))
	for _, file := range files {
		if known[file] {
			continue
		}
		if whole, _ := otf2.ScanEventFile(file, s.Shard.EventChunkSize); whole.Events > 0 {
			out.lose(of, whole.Events)
			text := fmt.Sprintf("%s: %s, with %s, is left out: the description of its location is missing", of.ID(), nameIn(s, file), jobs.Plural(whole.Events, "event"))
			out.damaged = append(out.damaged, text)
			out.others = append(out.others, text)
		}
	}
}

// eventFile is the path of a location's event file.
func eventFileOf(p *jobs.Piece, number uint32) string {
	return filepath.Join(p.Dir, strconv.FormatUint(uint64(number), 10)+".evt")
}

// nameOf is what a file of the shard is called in messages, from the experiment directory on.
func nameIn(p *jobs.Piece, file string) string {
	return filepath.Join(experiment.Folder, filepath.Base(p.Dir), filepath.Base(file))
}

// definedIn refuses events that refer to what a shard's description does not define. After a power cut there can be more in an
// event file than in the description.
func definedIn(p *experiment.Process) func(*otf2.Event) error {
	known := map[string]int{"StringRef": len(p.Strings), "RegionRef": len(p.Regions), "RmaWinRef": len(p.Wins), "MetricRef": len(p.Metrics), "CommRef": len(p.Comms)}
	return func(e *otf2.Event) error {
		fields := e.Kind.Fields()
		for k := 0; k < len(fields) && k < len(e.Args); k++ {
			if n, ok := known[fields[k].Type]; ok && e.Args[k] >= uint64(n) && e.Args[k] < math.MaxUint32 {
				return fmt.Errorf("%v %s %d is not defined", e.Kind, fields[k].Name, e.Args[k])
			}
		}
		for _, v := range e.Attributes {
			if v.Type == otf2.TypeString && v.Bits >= uint64(len(p.Strings)) && v.Bits < math.MaxUint32 {
				return fmt.Errorf("string %d is not defined", v.Bits)
			}
		}
		return nil
	}
}

// damage notes a problem of a file that holds less than it should, and how many records are missing for it.
func (out *placed) damage(i int, of *jobs.Process, records uint64, format string, args ...any) {
	out.problem(i, format, args...)
	out.lose(of, records)
	out.mu.Lock()
	defer out.mu.Unlock()
	out.damaged = append(out.damaged, out.problems[i])
}

func (out *placed) lose(of *jobs.Process, records uint64) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.lost[of] += records
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
	old := path + ".old" // nobody reads here yet
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
//
// What follows an event that is not good is left out, too.
func mend(path string, chunkSize uint64, good func(*otf2.Event) error) (scan otf2.ScanResult, damage, err error) {
	scan, err = otf2.ScanEventsWhile(path, chunkSize, good)
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
