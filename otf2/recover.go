// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// RecoverOptions adjust Recover. The zero value is useful.
type RecoverOptions struct {
	DryRun        bool // say what would be done, change nothing
	DropOriginals bool // do not keep changed files as <file>.orig
}

// RecoverAction is what became of a file.
type RecoverAction string

// What Recover does with files.
const (
	RecoverWhole    RecoverAction = "whole"    // nothing was wrong
	RecoverRepaired RecoverAction = "repaired" // the file was replaced by a repaired copy
	RecoverCreated  RecoverAction = "created"  // the file was missing
	RecoverFailed   RecoverAction = "failed"   // the file is at fault and was left as it is
)

// RecoveredFile says what was done with one file.
type RecoveredFile struct {
	Path     string        `json:"path"`
	Action   RecoverAction `json:"action"`
	Records  uint64        `json:"records"`            // whole records: events, definitions, …; 0 for an anchor
	Dropped  int64         `json:"dropped"`            // bytes that the file had and has no more, end marks included
	Detail   string        `json:"detail,omitempty"`   // what was wrong and what was done about it
	Original string        `json:"original,omitempty"` // name under which the file was kept
}

// String is one line about the file.
func (f *RecoveredFile) String() string {
	s := f.Path + ": " + string(f.Action)
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}

// RecoverResult is the outcome of Recover.
type RecoverResult struct {
	Anchor string          `json:"anchor"` // path of the anchor
	Files  []RecoveredFile `json:"files"`  // all files of the archive, in the order in which they were handled
	Lost   []string        `json:"lost"`   // what is missing afterwards, one line each; empty if nothing is
}

// Changed reports whether a file was (or with DryRun: would be) changed or made.
func (r *RecoverResult) Changed() bool {
	return slices.ContainsFunc(r.Files, func(f RecoveredFile) bool {
		return f.Action == RecoverRepaired || f.Action == RecoverCreated
	})
}

// Failed reports whether files are at fault still.
func (r *RecoverResult) Failed() bool {
	return slices.ContainsFunc(r.Files, func(f RecoveredFile) bool { return f.Action == RecoverFailed })
}

// Recover makes the files of an archive whole again whose writers were killed, or whose files were cut off:
//
//   - event and snapshot files are cut behind the last whole record, the end mark is put there and the chunk
//     headers get the numbers of their events;
//   - definition, marker and thumbnail files keep their whole records, those of later chunks included;
//   - the number of events in Location definitions becomes that of the event files;
//   - global definitions that this package's writer had not yet given their name are taken from its temporary file;
//   - a location without event file gets an empty one, as readers want one;
//   - a missing or damaged anchor is made anew: chunk sizes from the borders between chunks, else the defaults;
//     counts from the files; names and properties as far as the old one had them. A good anchor gets the right
//     counts.
//
// Nothing is invented: definitions that are lost stay lost, and Lost says so.
//
// anchorOrDir is the anchor's path, which need not exist, or a directory with one archive in it. A changed file is
// written under another name first and then renamed; the original stays beside it as <file>.orig. On an archive
// that is whole nothing happens, so that a second call changes nothing. The archive must not be written at the same
// time.
//
// Files that cannot be helped are in the result; errors are those of finding the archive, and ErrNotSupported for
// compressed archives and SIONlib containers.
func Recover(anchorOrDir string, opts *RecoverOptions) (*RecoverResult, error) {
	r := &recovery{}
	if opts != nil {
		r.opts = *opts
	}
	path, err := findAnchor(anchorOrDir)
	if err != nil {
		return nil, err
	}
	r.res.Anchor, r.res.Lost = path, []string{}
	r.base = strings.TrimSuffix(path, filepath.Ext(path))
	// the files that it leads to would be changed
	if info, err := os.Lstat(r.base); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if err := atomicfile.RefuseOthers(r.base, info); err != nil {
			return nil, err
		}
	}
	if err := r.readAnchor(); err != nil {
		return nil, err
	}
	if err := r.list(); err != nil {
		return nil, err
	}
	r.defsFrom = r.base + ".def"
	if !exists(r.defsFrom) {
		r.findUnfinished()
	}
	if r.anchor == nil {
		r.deduce()
	}
	r.readDefinitions()
	for _, loc := range r.locations {
		r.location(loc)
	}
	r.definitions()
	r.records(r.base+".marker", &markerTable, r.defChunk, "record", "markers may be lost")
	for i := range r.thumbnails {
		r.thumbnail(i)
	}
	r.finishAnchor()
	return &r.res, nil
}

// recovery is the state of a Recover.
type recovery struct {
	opts RecoverOptions
	res  RecoverResult
	base string // path of the archive's files without extension

	anchor               *Anchor // nil if it is missing or damaged
	anchorFlaw           string  // why it is nil
	old                  *Anchor // what a damaged anchor still says
	eventChunk, defChunk uint64

	locations  []LocationRef            // defined, or with files
	files      map[LocationRef][]string // extensions of the files that are there; a key for every location
	thumbnails uint32

	defsFrom  string                 // file that holds the global definitions
	defs      *scanned               // global definitions; nil if they cannot be read
	defsBad   bool                   // they were left as they are, damaged
	defined   map[LocationRef]uint64 // events that Location definitions name
	clock     bool                   // there are ClockProperties
	events    map[LocationRef]uint64 // whole events, of the files that could be read
	snapshots uint32                 // most snapshots of a location
}

// findAnchor gives the path that the anchor has or should have.
func findAnchor(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && isAnchorName(path)) {
		return "", err
	}
	if err != nil || !info.IsDir() {
		if !isAnchorName(path) {
			return "", fmt.Errorf("otf2: %s: the name of an anchor ends in .otf2: %w", path, ErrInvalid)
		}
		base := strings.TrimSuffix(path, filepath.Ext(path))
		if err != nil && !exists(base+".def") && !exists(base) {
			return "", fmt.Errorf("otf2: no archive %s: neither it nor %s.def nor the folder %s is there: %w", path,
				base, base, fs.ErrNotExist)
		}
		return path, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", err
	}
	var anchors, definitions, folders []string
	for _, e := range entries {
		full := filepath.Join(path, e.Name())
		switch {
		case e.IsDir():
			if len(regular.Matches(full, "*.evt")) > 0 {
				folders = append(folders, full+".otf2")
			}
		case isAnchorName(e.Name()):
			anchors = append(anchors, full)
		case filepath.Ext(e.Name()) == ".def":
			definitions = append(definitions, strings.TrimSuffix(full, ".def")+".otf2")
		}
	}
	for _, candidates := range [][]string{anchors, definitions, folders} {
		switch len(candidates) {
		case 0:
			continue
		case 1:
			return candidates[0], nil
		}
		return "", fmt.Errorf("otf2: %s holds several archives, name one of %s: %w", path,
			strings.Join(candidates, ", "), ErrInvalid)
	}
	return "", fmt.Errorf("otf2: %s holds no archive: %w", path, fs.ErrNotExist)
}

func isAnchorName(path string) bool { return strings.EqualFold(filepath.Ext(path), ".otf2") }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// list finds the archive's files.
func (r *recovery) list() error {
	r.files = map[LocationRef][]string{}
	r.events = map[LocationRef]uint64{}
	entries, err := os.ReadDir(r.base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		id, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), ext), 10, 64)
		if err != nil || !slices.Contains([]string{".evt", ".def", ".snap"}, ext) {
			continue
		}
		r.add(LocationRef(id), ext)
	}
	for exists(r.thumbnailPath(r.thumbnails)) {
		r.thumbnails++
	}
	return nil
}

// add notes a location, and a file of it.
func (r *recovery) add(loc LocationRef, ext ...string) {
	have, known := r.files[loc]
	if !known {
		r.locations = append(r.locations, loc)
	}
	r.files[loc] = append(have, ext...)
}

func (r *recovery) thumbnailPath(i uint32) string {
	return r.base + "." + strconv.FormatUint(uint64(i), 10) + ".thumb"
}

func (r *recovery) lost(format string, args ...any) {
	r.res.Lost = append(r.res.Lost, fmt.Sprintf(format, args...))
}

// readDefinitions finds out what the global definitions say of locations.
func (r *recovery) readDefinitions() {
	r.defined = map[LocationRef]uint64{}
	walk := frames{table: &globalDefTable, chunk: int64(r.defChunk)}
	walk.record = func(big bool, raw []byte, head int) {
		switch DefKind(raw[0]) {
		case DefClockProperties:
			r.clock = true
		case DefLocation:
			d := fieldDecoder{buf: raw, pos: head, big: big}
			loc := LocationRef(d.c64())
			d.c32() // name
			d.u8()  // type
			if _, ok := r.defined[loc]; !ok {
				r.defined[loc] = d.c64()
			}
			r.add(loc)
		}
	}
	// An error of reading is met again, and reported, when the file is to be repaired.
	r.defs, _ = walk.walk(r.defsFrom, true)
	slices.Sort(r.locations)
}

// findUnfinished looks for global definitions that were being written under a temporary name when the writer was
// killed, those of this package's writers, and takes the largest such file.
func (r *recovery) findUnfinished() {
	dir, name := filepath.Split(r.base + ".def")
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return
	}
	largest := int64(headerSize)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "."+name+".") || !strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		if info, err := e.Info(); err == nil && info.Size() > largest {
			largest, r.defsFrom = info.Size(), filepath.Join(dir, e.Name())
		}
	}
}

// location repairs the files of a location.
func (r *recovery) location(loc LocationRef) {
	has := func(ext string) bool { return slices.Contains(r.files[loc], ext) }
	_, defined := r.defined[loc]
	if has(".evt") {
		if n, known := r.counted(locationFile(r.base, loc, ".evt"), &eventTable, "event"); known {
			r.events[loc] = n
		}
	} else if defined {
		r.events[loc] = 0
		r.createEmpty(locationFile(r.base, loc, ".evt"), "the location has no event file: an empty one")
	}
	if has(".snap") {
		r.counted(locationFile(r.base, loc, ".snap"), &snapshotTable, "snapshot record")
	} else if defined && r.anchor != nil && r.anchor.Snapshots > 0 {
		r.createEmpty(locationFile(r.base, loc, ".snap"), "the location has no snapshot file: an empty one")
	}
	if has(".def") {
		r.records(locationFile(r.base, loc, ".def"), &localDefTable, r.defChunk, "local definition", fmt.Sprintf(
			"location %d: mapping tables or clock offsets may be lost; without them its ids and times are its own",
			loc))
	} else if defined && r.hasLocalDefs() {
		path := locationFile(r.base, loc, ".def")
		if n, known := r.events[loc]; known && n == 0 {
			r.createEmpty(path, "the location has no local definitions, and no events that need some: an empty file")
		} else {
			r.noteUnrepairable(path, 0,
				"the location's local definitions are missing: without them its events cannot be read")
			r.lost("location %d: mapping tables and clock offsets, and with them its events", loc)
		}
	}
	if n := r.events[loc]; !defined && n > 0 {
		r.lost("location %d: %d events, but no Location definition: they are not read with the archive", loc, n)
	}
}

// hasLocalDefs is [Archive.hasLocalDefs] of the archive as it was found.
func (r *recovery) hasLocalDefs() bool {
	for _, found := range r.files {
		if slices.Contains(found, ".def") {
			return true
		}
	}
	return r.anchor != nil && r.anchor.promisesLocalDefs() || r.old != nil && r.old.promisesLocalDefs()
}

// countedChange is what has to be done to an event or snapshot file.
type countedChange struct {
	cut    bool
	chunks []scannedChunk // that stay, with the numbers they should have
	wrong  int            // chunks whose numbers are not those
}

// counted repairs an event or snapshot file and returns the number of its whole records, if that is known.
func (r *recovery) counted(path string, table *recordTable, word string) (records uint64, known bool) {
	walk := frames{table: table, stamped: true, chunk: int64(r.eventChunk)}
	if table == &snapshotTable {
		starts := uint32(0)
		walk.record = func(_ bool, raw []byte, _ int) {
			if SnapshotKind(raw[0]) == SnapshotStart {
				starts++
				r.snapshots = max(r.snapshots, starts)
			}
		}
	}
	s, err := walk.walk(path, false)
	if err != nil {
		r.noteUnrepairable(path, 0, err.Error())
		return 0, false
	}
	if r.otherChunkSize(path, s, table, true, r.eventChunk) {
		return 0, false
	}
	c := countedChange{cut: s.flaw != nil}
	number := uint64(0)
	for _, chunk := range s.chunks {
		if c.cut && chunk.start > 0 && chunk.start >= s.end {
			break // begun, but without a record
		}
		first, last := chunk.first, chunk.last
		chunk.first, chunk.last = number+1, number+chunk.records
		number = chunk.last
		if first != chunk.first || last != chunk.last {
			c.wrong++
		}
		c.chunks = append(c.chunks, chunk)
	}
	switch {
	case !c.cut && c.wrong == 0:
		r.noteWhole(path, s.records)
	case len(s.chunks) == 0 && s.size >= headerSize && !zeroed(path):
		r.noteUnrepairable(path, 0, fmt.Sprintf("no chunk header at its start (%v): nothing is known of it", s.flaw))
		return 0, false
	case len(s.chunks) == 0:
		r.replace(RecoveredFile{Path: path, Dropped: s.size,
			Detail: fmt.Sprintf("%d bytes without a %s: made an empty file", s.size, word)}, emptyFile())
	case !c.cut:
		r.renumber(path, s, &c)
	default:
		r.cut(path, s, &c, word)
	}
	return s.records, true
}

// otherChunkSize reports, and records as a failure, that a damaged file was written with another chunk size than
// the archive's: cutting it would destroy good data.
func (r *recovery) otherChunkSize(path string, s *scanned, table *recordTable, stamped bool, chunk uint64) bool {
	if s.flaw == nil {
		return false
	}
	size, err := deduceChunkSize(path, table, stamped)
	if err != nil || size == 0 || size == chunk {
		return false
	}
	r.noteUnrepairable(path, s.records, fmt.Sprintf(
		"its chunks have %d bytes, those of the archive %d: it belongs to another archive or the anchor is wrong", size,
		chunk))
	return true
}

// zeroed reports whether a file holds nothing but zeros, as a machine's crash may leave it, as far as its first chunk
// can reach: behind that nothing can be understood.
func zeroed(path string) bool {
	f, err := openRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	buf, in := make([]byte, 64<<10), io.LimitReader(f, MaxChunkSize)
	for {
		n, err := in.Read(buf)
		for _, b := range buf[:n] {
			if b != 0 {
				return false
			}
		}
		if err != nil {
			return n == 0
		}
	}
}

// emptyFile is a file without records.
func emptyFile() []byte { return newChunkBuilder(MinChunkSize).finish() }

// records repairs a file without time stamps: its whole records are put into new chunks.
func (r *recovery) records(path string, table *recordTable, chunk uint64, word, loss string) {
	if !exists(path) {
		return
	}
	built := newChunkBuilder(int64(chunk))
	walk := frames{table: table, chunk: int64(chunk)}
	walk.record = func(big bool, raw []byte, _ int) { built.add(big, raw) }
	s, err := walk.walk(path, true)
	switch {
	case err != nil:
		r.noteUnrepairable(path, 0, err.Error())
	case s.flaw == nil:
		r.noteWhole(path, s.records)
	case r.otherChunkSize(path, s, table, false, chunk):
	case len(s.chunks) == 0 && s.size >= headerSize && !zeroed(path):
		r.noteUnrepairable(path, 0, fmt.Sprintf("no chunk header at its start (%v): nothing is known of it", s.flaw))
		r.lost("%s: %s", path, loss)
	default:
		out := built.finish()
		r.lost("%s", loss)
		r.replace(RecoveredFile{Path: path, Records: s.records, Dropped: max(0, s.size-int64(len(out))),
			Detail: damageDetail(s, word)}, out)
	}
}

// damageDetail says what was wrong with a file and what stays of it.
func damageDetail(s *scanned, word string) string {
	text := fmt.Sprintf("%v at byte %d of %d: kept %s", cause(s.flaw), s.flawAt, s.size, plural(s.records, word))
	if s.end > s.flawAt {
		text += ", those of the chunks behind included"
	}
	return text
}

// cause is the damage in words.
func cause(err error) error {
	if errors.Is(err, ErrTruncated) {
		return ErrTruncated
	}
	return err
}

func plural(n uint64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.FormatUint(n, 10) + " " + word + "s"
}

// thumbnail repairs a thumbnail, which is nothing without its first record.
func (r *recovery) thumbnail(i uint32) {
	path := r.thumbnailPath(i)
	const header = 10
	first := uint8(0)
	walk := frames{table: &thumbnailTable, chunk: ThumbnailChunkSize}
	walk.record = func(_ bool, raw []byte, _ int) {
		if first == 0 {
			first = raw[0]
		}
	}
	s, err := walk.walk(path, true)
	if err == nil && s.flaw != nil && first != header {
		r.noteUnrepairable(path, 0, fmt.Sprintf("%v at byte %d of %d: the thumbnail's header is lost", cause(s.flaw),
			s.flawAt, s.size))
		return
	}
	r.records(path, &thumbnailTable, ThumbnailChunkSize, "record", fmt.Sprintf("thumbnail %d: samples may be lost", i))
}

// definitions repairs the global definitions.
func (r *recovery) definitions() {
	path := r.base + ".def"
	if !exists(r.defsFrom) {
		r.defsBad = true
		r.noteUnrepairable(path, 0, "the global definitions are missing: without them the archive cannot be read")
		r.lost("all global definitions")
		return
	}
	corrected := 0
	built := newChunkBuilder(int64(r.defChunk))
	walk := frames{table: &globalDefTable, chunk: int64(r.defChunk)}
	walk.record = func(big bool, raw []byte, head int) {
		if DefKind(raw[0]) == DefLocation {
			d := fieldDecoder{buf: raw, pos: head, big: big}
			loc := LocationRef(d.c64())
			d.c32() // name
			d.u8()  // type
			if n, known := r.events[loc]; known && d.c64() != n {
				raw = withEvents(big, raw, head, n)
				corrected++
			}
		}
		built.add(big, raw)
	}
	s, err := walk.walk(r.defsFrom, true)
	switch {
	case err != nil:
		r.defsBad = true
		r.noteUnrepairable(path, 0, err.Error())
		return
	case r.otherChunkSize(r.defsFrom, s, &globalDefTable, false, r.defChunk):
		r.defsBad = true
		return
	case s.records == 0 && s.flaw != nil:
		r.defsBad = true
		r.noteUnrepairable(path, 0,
			fmt.Sprintf("%v at byte %d of %d: no definition is whole", cause(s.flaw), s.flawAt, s.size))
		r.lost("all global definitions")
		return
	case s.flaw == nil && corrected == 0 && r.defsFrom == path:
		r.noteWhole(path, s.records)
	default:
		var what []string
		if r.defsFrom != path {
			what = append(what, "made from "+r.defsFrom+", which its writer had not finished")
		}
		if s.flaw != nil {
			what = append(what, damageDetail(s, "definition"))
		}
		if corrected > 0 {
			what = append(what, "number of events corrected in "+plural(uint64(corrected), "Location definition"))
		}
		out := built.finish()
		dropped := int64(0)
		if s.flaw != nil {
			dropped = max(0, s.size-int64(len(out)))
		}
		r.defsBad = !r.replace(RecoveredFile{Path: path, Records: s.records, Dropped: dropped,
			Detail: strings.Join(what, "; ")}, out)
	}
	if s.flaw != nil {
		switch announced := r.announcedDefs(); {
		case announced > s.records:
			r.lost("%d of %d global definitions", announced-s.records, announced)
		case announced == 0:
			r.lost("global definitions: how many is not known")
		}
	}
	if !r.clock {
		r.lost("ClockProperties: ticks per second and first time are not known")
	}
}

// announcedDefs is the number of global definitions by the anchor, 0 if that is not known.
func (r *recovery) announcedDefs() uint64 {
	switch {
	case r.anchor != nil:
		return r.anchor.GlobalDefs
	case r.old != nil:
		return r.old.GlobalDefs
	}
	return 0
}
