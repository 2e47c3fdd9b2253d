// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Events places event files in an archive, and counts how each was placed.
type Events struct {
	chunk          uint64 // chunk size of the archive, in bytes
	mu             sync.Mutex
	Linked, Copied int
	Rewritten      int                      // copied files that were rewritten into another chunk size
	Problems       map[int]string           // by the location's index in the archive's list
	Others         []string                 // problems that concern no location of the archive
	Damaged        []string                 // the problems of files that hold less than they should
	Lost           map[*jobs.Process]uint64 // known number of lost records
}

// New returns an Events for an archive with the given event chunk size in bytes.
func New(chunk uint64) *Events {
	return &Events{chunk: chunk, Problems: make(map[int]string), Lost: make(map[*jobs.Process]uint64)}
}

// Row is a row of the archive.
type Row struct {
	Process *jobs.Process         // nil: the row stands for processes without data
	Number  uint32                // location number in the process
	Source  *description.Location // nil: the row has no events
	Events  uint64                // number of events in its file; set by Place
}

// endMark ends every event file: end of file, end of buffer.
var endMark = [2]byte{0x02, 0x01}

// lastEventOffset is the offset, in a chunk's header, of the number of its last event: after record type, byte order
// and the number of its first event.
const lastEventOffset = 10

// Place creates the event file of a row at to; i is the row's index in the archive's list. It sets the row's number of
// events and, if it had to read them, the range of their times.
//
// Files of finished processes are linked, unread, if their chunk size fits the archive. Others are copied, because
// their writer may still be running, or it died or its disk failed in the middle of a record. The copy ends where the
// process's description says, if the process is running or its writer vouches for no more; otherwise after the last
// whole record.
func (out *Events) Place(i int, l *Row, to string, times *jobs.Lifespan) error {
	if l.Source == nil {
		return writeEmpty(to)
	}
	if l.Process.Pieces != nil {
		return out.placePieces(i, l, to, times)
	}
	s := l.Process.Shards()[0]
	from := experiment.EventFile(s.Dir, l.Number)
	chunk := l.Process.Shard.EventChunkSize
	info, err := ownFile(from)
	if err == nil && s.State == jobs.Finished && !s.CutBack() && info.Size() == l.Source.Bytes &&
		out.fits(info.Size(), chunk) {
		l.Events = l.Source.Events
		return out.Link(from, to)
	}
	scan, err := out.copyFile(i, l.Process, s, l.Source, to)
	if err != nil || scan == nil {
		return errors.Join(err, writeEmpty(to))
	}
	out.count(false)
	l.Events = scan.Events
	if scan.Events > 0 {
		*times = jobs.Lifespan{Begin: uint64(scan.First), End: uint64(scan.Last)}
	}
	if info, err := os.Stat(to); err != nil || out.fits(info.Size(), chunk) {
		return err
	}
	return out.rewrite(to, chunk)
}

// copyFile copies the event file of a shard's location up to its last whole record, and records problems and losses if
// the file differs from the shard's description. It returns nil if there is nothing to copy.
func (out *Events) copyFile(i int, of *jobs.Process, s *jobs.Piece, l *description.Location, to string) (
	*otf2.ScanResult, error) {
	from := experiment.EventFile(s.Dir, l.Number)
	name := func() string { return fmt.Sprintf("%s, location %d: %s", of.ID(), l.Number, nameIn(s, from)) }
	limit := int64(math.MaxInt64)
	if s.State == jobs.Running || s.Cut() || s.CutBack() {
		limit = l.Bytes
	}
	info, err := ownFile(from)
	if err == nil {
		err = copyFile(from, to, limit)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if l.Events > 0 {
			out.damage(i, of, l.Events, "%s, with %s, is gone", name(), units.Plural(l.Events, "event"))
		}
		return nil, nil
	case err != nil && info != nil && info.Mode().IsRegular():
		return nil, err
	case err != nil:
		out.damage(i, of, l.Events, "%s, with %s, was not taken: %v", name(), units.Plural(l.Events, "event"), err)
		return nil, nil
	}
	good := func(*otf2.Event) error { return nil }
	if s.State == jobs.Crashed {
		good = definedIn(s.Shard)
	}
	scan, damage, err := repairFile(to, s.Shard.EventChunkSize, good)
	if err != nil {
		return nil, err
	}
	written := l.Events
	// the file may hold more than the last flush in the description
	if s.State == jobs.Crashed && (damage != nil || s.Cut()) {
		whole, _ := otf2.ScanEventFile(from, s.Shard.EventChunkSize)
		written = max(written, whole.Events)
	}
	missing := written - min(written, scan.Events)
	switch {
	case s.State == jobs.Running: // expected: flushes go on, and each overwrites the end of the file
	case damage != nil && !s.Cut():
		out.damage(i, of, missing, "%s is damaged after %s, of %d; they were taken: %v", name(),
			units.Plural(scan.Events, "event"), max(written, scan.Events), damage)
	case scan.Events < l.Events || s.State == jobs.Finished && info.Size() != l.Bytes && !s.CutBack():
		out.damage(i, of, missing, "%s has %d bytes and %s instead of %d and %d; what is whole of it was taken", name(),
			info.Size(), units.Plural(scan.Events, "event"), l.Bytes, l.Events)
	default:
		out.countLost(of, missing)
	}
	return &scan, nil
}

// LeaveBehind counts as lost the events in files of an unfinished shard that its description does not cover.
func (out *Events) LeaveBehind(of *jobs.Process, s *jobs.Piece) {
	if s.State != jobs.Crashed {
		return
	}
	known := make(map[string]bool)
	for _, l := range s.Shard.Locations {
		known[experiment.EventFile(s.Dir, l.Number)] = true
	}
	for _, file := range experiment.EventFiles(s.Dir) {
		if known[file] {
			continue
		}
		if whole, _ := otf2.ScanEventFile(file, s.Shard.EventChunkSize); whole.Events > 0 {
			out.countLost(of, whole.Events)
			text := fmt.Sprintf("%s: %s, with %s, is left out: the description of its location is missing", of.ID(),
				nameIn(s, file), units.Plural(whole.Events, "event"))
			out.Damaged = append(out.Damaged, text)
			out.Others = append(out.Others, text)
		}
	}
}

// nameIn returns the name of a shard's file in messages, relative to the experiment directory.
func nameIn(p *jobs.Piece, file string) string {
	return filepath.Join(experiment.Folder, filepath.Base(p.Dir), filepath.Base(file))
}

// definedIn returns a function that rejects events with references that the shard's description does not define. After
// a power failure, an event file may be newer than the description.
func definedIn(p *description.Process) func(*otf2.Event) error {
	known := map[string]int{"StringRef": len(p.Strings), "RegionRef": len(p.Regions), "RmaWinRef": len(p.Wins),
		"MetricRef": len(p.Metrics), "CommRef": len(p.Comms)}
	values := map[otf2.Type]int{otf2.TypeString: len(p.Strings), otf2.TypeComm: len(p.Comms),
		otf2.TypeRmaWin: len(p.Wins)}
	return func(e *otf2.Event) error {
		fields := e.Kind.Fields()
		for k := 0; k < len(fields) && k < len(e.Args); k++ {
			if n, ok := known[fields[k].Type]; ok && e.Args[k] >= uint64(n) && e.Args[k] < math.MaxUint32 {
				return fmt.Errorf("%v %s %d is not defined", e.Kind, fields[k].Name, e.Args[k])
			}
		}
		for _, v := range e.Attributes {
			if n, ok := values[v.Type]; ok && v.Bits >= uint64(n) && v.Bits < math.MaxUint32 {
				return fmt.Errorf("%v %d is not defined", v.Type, v.Bits)
			}
		}
		return nil
	}
}

// damage records a problem of a file that holds less than it should, and the number of records missing.
func (out *Events) damage(i int, of *jobs.Process, records uint64, format string, args ...any) {
	out.problem(i, format, args...)
	out.countLost(of, records)
	out.mu.Lock()
	defer out.mu.Unlock()
	out.Damaged = append(out.Damaged, out.Problems[i])
}

func (out *Events) countLost(of *jobs.Process, records uint64) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.Lost[of] += records
}

func (out *Events) problem(i int, format string, args ...any) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.Problems[i] = fmt.Sprintf(format, args...)
}

func (out *Events) count(linked bool) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if linked {
		out.Linked++
	} else {
		out.Copied++
	}
}

// Moved counts linked files that were then rewritten as copied.
func (out *Events) Moved(files int) {
	out.mu.Lock()
	defer out.mu.Unlock()
	moved := min(files, out.Linked)
	out.Linked, out.Copied = out.Linked-moved, out.Copied+moved
}

// fits reports whether an event file of the given size can be read in the archive unchanged: its chunks have the
// archive's size, or it is a single chunk of any size.
func (out *Events) fits(size int64, chunk uint64) bool {
	return chunk == out.chunk || uint64(size) <= min(chunk, out.chunk)
}

// rewrite rewrites a copied event file into chunks of the archive's size.
func (out *Events) rewrite(path string, chunk uint64) error {
	old := path + ".old"
	if err := os.Rename(path, old); err != nil {
		return err
	}
	if _, err := otf2.RewriteEvents(old, path, chunk, out.chunk); err != nil {
		return err
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	out.Rewritten++
	return os.Remove(old)
}

// Link makes a hard link, or a copy if the file system does not support it.
func (out *Events) Link(from, to string) error {
	if Link(from, to) == nil {
		out.count(true)
		return nil
	}
	out.count(false)
	return copyFile(from, to, math.MaxInt64)
}

// Link is a variable so that tests can simulate a file system without hard links.
var Link = os.Link

// copyFile copies at most limit bytes of a file. Where it can, the kernel copies within a file system without moving
// the data.
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

// writeEmpty writes an event file without events, because readers expect a file for every location.
func writeEmpty(path string) error {
	if err := Remove(path); err != nil {
		return err
	}
	w, err := otf2.CreateEventWriter(path, nil)
	if err != nil {
		return err
	}
	return w.Close()
}

// repairFile truncates a copied event file after its last whole record, and updates the number of events in the header
// of its last chunk. Events from the first one that good rejects on are dropped, too. damage is the reason why the
// bytes that follow are not a record; nil if they are only cut off. A file without a whole header becomes empty.
func repairFile(path string, chunkSize uint64, good func(*otf2.Event) error) (scan otf2.ScanResult, damage, err error) {
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
