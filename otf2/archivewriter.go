// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// ArchiveOptions adjust the writing of an archive. The zero value is useful.
type ArchiveOptions struct {
	EventChunkSize uint64 // bytes, 256 KiB to 16 MiB; 0 means DefaultEventChunkSize
	DefChunkSize   uint64 // likewise; 0 means DefaultDefChunkSize

	// What the anchor says about the archive.
	MachineName, Creator, Description string
	Properties                        []Property
	TraceID                           uint64 // 0: a random one

	// CheckNesting is EventWriterOptions.CheckNesting of every event writer.
	CheckNesting bool

	// CheckReferences rejects, with a *ReferenceError, definitions and events that refer to something undefined, and,
	// with an *AttributeTypeError, event attributes of another type than their definition has. Ids in events count
	// after mapping, so that a location's mapping tables must be set before its events. It costs several times the
	// writing itself.
	CheckReferences bool
}

// ArchiveWriter writes a whole archive from one process. Its parts are written in any order; Close completes what is
// missing and writes the anchor, which makes the archive exist. Programs that write with several processes use the
// parts by themselves, see the package's example of shards.
//
// The methods may be called by several goroutines; each of the writers that they return belongs to one at a time.
type ArchiveWriter struct {
	anchor string // path
	base   string // path of the locations' folder, and of the archive's files without their extensions
	opts   ArchiveOptions
	defs   *GlobalDefWriter
	known  *references // nil unless references are checked

	mu         sync.Mutex
	events     map[LocationRef]*EventWriter
	snapshots  map[LocationRef]*SnapshotWriter
	locals     map[LocationRef]*localMaps // locations whose definitions are written
	markers    *MarkerWriter
	thumbnails uint32
	locations  []definedLocation
	closed     bool
}

// definedLocation is a location that has its definition.
type definedLocation struct {
	ref     LocationRef
	reserve int // index of the number of events that Close fills in, or -1
}

// Create begins the archive with anchor <dir>/<name>.otf2. dir is made if need be; there must be no archive of that
// name yet, nor its folder <dir>/<name> (fs.ErrExist). opts may be nil.
func Create(dir, name string, opts *ArchiveOptions) (*ArchiveWriter, error) {
	if name == "" || name != filepath.Base(name) {
		return nil, fmt.Errorf("otf2: archive name %q: %w", name, ErrInvalid)
	}
	a := &ArchiveWriter{
		base: filepath.Join(dir, name), anchor: filepath.Join(dir, name+".otf2"),
		events: map[LocationRef]*EventWriter{}, snapshots: map[LocationRef]*SnapshotWriter{},
		locals: map[LocationRef]*localMaps{},
	}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.TraceID == 0 {
		a.opts.TraceID = rand.Uint64() | 1
	}
	if _, err := a.head().append(nil); err != nil { // refused now rather than at Close
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(a.anchor); err == nil {
		return nil, fmt.Errorf("otf2: creating archive: %s: %w", a.anchor, fs.ErrExist)
	}
	if err := os.Mkdir(a.base, 0o755); err != nil {
		return nil, fmt.Errorf("otf2: creating archive: %w", err)
	}
	defs, err := CreateGlobalDefWriter(a.base+".def", a.opts.DefChunkSize)
	if err != nil {
		return nil, errors.Join(err, os.Remove(a.base))
	}
	a.defs = defs
	if a.opts.CheckReferences {
		a.known = newReferences()
	}
	defs.watch = a.definition
	return a, nil
}

// head is the anchor without the counts.
func (a *ArchiveWriter) head() *Anchor {
	o := &a.opts
	return &Anchor{
		EventChunkSize: o.EventChunkSize, DefChunkSize: o.DefChunkSize, MachineName: o.MachineName, Creator: o.Creator,
		Description: o.Description, Properties: o.Properties, TraceID: o.TraceID,
	}
}

// Path returns the path of the anchor, which exists after Close.
func (a *ArchiveWriter) Path() string { return a.anchor }

// Definitions returns the writer of the global definitions; Close closes it. Of a location that is defined with 0
// events Close fills in the number that its event writer wrote, so that locations can be defined first.
func (a *ArchiveWriter) Definitions() *GlobalDefWriter { return a.defs }

// definition sees every global definition before it is written.
func (a *ArchiveWriter) definition(id uint8, fields []byte) ([]byte, int, error) {
	if a.known != nil {
		if err := a.known.definition(id, fields); err != nil {
			return fields, -1, err
		}
	}
	if DefKind(id) != DefLocation {
		return fields, -1, nil
	}
	d := fieldDecoder{buf: fields}
	loc, name, typ := LocationRef(d.c64()), d.c32(), d.u8()
	events, rest := d.c64(), fields[d.pos:]
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.ContainsFunc(a.locations, func(l definedLocation) bool { return l.ref == loc }) {
		return fields, -1, fmt.Errorf("otf2: location %d is defined twice: %w", loc, ErrInvalid)
	}
	if events != 0 {
		a.locations = append(a.locations, definedLocation{loc, -1})
		return fields, -1, nil
	}
	a.locations = append(a.locations, definedLocation{loc, len(a.defs.reserved)})
	b := append(appendC32(appendC64(nil, uint64(loc)), name), typ)
	// Readers take a number in more bytes than it needs.
	b = append(b, 8)
	reserve := len(b)
	b = append(append(b, make([]byte, 8)...), rest...)
	return b, reserve, nil
}

// checkLocation checks that loc can have files now; the caller holds the lock.
func (a *ArchiveWriter) checkLocation(loc LocationRef) error {
	if a.closed {
		return fmt.Errorf("otf2: archive %s: %w", a.anchor, ErrClosed)
	}
	if loc == UndefinedLocation {
		return fmt.Errorf("otf2: the undefined location has no files: %w", ErrInvalid)
	}
	return nil
}

// Events returns the writer of a location's events; it makes its file at the first call and returns the same writer
// after. The location may be defined later, but must be by Close. Close closes the writer; a program with more
// locations than the system allows open files closes those that are done before.
func (a *ArchiveWriter) Events(loc LocationRef) (*EventWriter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkLocation(loc); err != nil {
		return nil, err
	}
	if w := a.events[loc]; w != nil {
		return w, nil
	}
	w, err := CreateEventWriter(locationFile(a.base, loc, ".evt"),
		&EventWriterOptions{ChunkSize: a.opts.EventChunkSize, CheckNesting: a.opts.CheckNesting})
	if err != nil {
		return nil, err
	}
	if a.known != nil {
		w.check = newReferenceCheck(a.known, loc)
		w.check.reader.maps = a.locals[loc]
		w.careful = true
	}
	a.events[loc] = w
	return w, nil
}

// LocalDefs writes a location's mapping tables and clock offsets, see [WriteLocalDefs], once for each location that
// has any. With CheckReferences it must come before the location's first event.
func (a *ArchiveWriter) LocalDefs(loc LocationRef, maps []*MappingTable, clocks []ClockOffset) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkLocation(loc); err != nil {
		return err
	}
	if a.locals[loc] != nil {
		return fmt.Errorf("otf2: second local definitions of location %d: %w", loc, ErrInvalid)
	}
	w := a.events[loc]
	if w != nil && w.check != nil && w.events > 0 {
		return fmt.Errorf("otf2: mapping tables of location %d after its first event: %w", loc, ErrInvalid)
	}
	if err := WriteLocalDefs(locationFile(a.base, loc, ".def"), maps, clocks, a.opts.DefChunkSize); err != nil {
		return err
	}
	var tables []MappingTable
	for _, m := range maps {
		if m != nil && m.Type < mappingTypes {
			tables = append(tables, *m)
		}
	}
	a.locals[loc] = newLocalMaps(tables, nil, 0) // times are checked as they are
	if w != nil && w.check != nil {
		w.check.reader.maps = a.locals[loc]
	}
	return nil
}

// Markers returns the writer of the archive's markers, made at the first call; Close closes it.
func (a *ArchiveWriter) Markers() (*MarkerWriter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkLocation(0); err != nil || a.markers != nil {
		return a.markers, err
	}
	w, err := CreateMarkerWriter(a.base+".marker", a.opts.DefChunkSize)
	if err == nil {
		a.markers = w
	}
	return w, err
}

// Snapshots returns the writer of a location's snapshots, made at the first call; Close closes it. The anchor gets
// the largest number of snapshots that a location has.
func (a *ArchiveWriter) Snapshots(loc LocationRef) (*SnapshotWriter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkLocation(loc); err != nil {
		return nil, err
	}
	if w := a.snapshots[loc]; w != nil {
		return w, nil
	}
	w, err := CreateSnapshotWriter(locationFile(a.base, loc, ".snap"), a.opts.EventChunkSize)
	if err == nil {
		a.snapshots[loc] = w
	}
	return w, err
}

// Thumbnail writes the next thumbnail, see [WriteThumbnail].
func (a *ArchiveWriter) Thumbnail(t *Thumbnail) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkLocation(0); err != nil {
		return err
	}
	err := WriteThumbnail(a.base+"."+strconv.FormatUint(uint64(a.thumbnails), 10)+".thumb", t)
	if err == nil {
		a.thumbnails++
	}
	return err
}

// Close closes all writers, gives every defined location the files that readers want, fills in the locations'
// numbers of events, and writes the anchor.
//
// If a file cannot be completed, or a location with events or snapshots is not defined (ErrInvalid), there is no
// anchor: the errors are returned and the files stay as they are. Regions left open (*NestingError) and snapshots
// that were not ended are reported too, but do not keep the archive from being completed.
func (a *ArchiveWriter) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkLocation(0); err != nil {
		return err
	}
	a.closed = true
	fatal, remarks := a.closeWriters()
	anchor := a.head()
	for _, w := range a.snapshots {
		anchor.Snapshots = max(anchor.Snapshots, w.snapshots)
	}
	if a.markers != nil && !a.markers.closed {
		if err := a.markers.Close(); err != nil {
			fatal = append(fatal, err)
		}
	}
	fatal = append(fatal, a.completeLocations()...)
	if len(fatal) > 0 {
		a.defs.Abort()
		return errors.Join(append(fatal, remarks...)...)
	}
	anchor.Locations, anchor.GlobalDefs, anchor.Thumbnails = uint64(len(a.locations)), a.defs.Count(), a.thumbnails
	if err := a.defs.Close(); err != nil {
		return errors.Join(append([]error{err}, remarks...)...)
	}
	if err := WriteAnchor(a.anchor, anchor); err != nil {
		remarks = append([]error{err}, remarks...)
	}
	return errors.Join(remarks...)
}

// closeWriters closes the writers of the locations. Failures of files are fatal for the archive; remarks concern what
// was written.
func (a *ArchiveWriter) closeWriters() (fatal, remarks []error) {
	done := func(file *EventWriter, closing func() error) {
		if !file.closed {
			if err := closing(); err != nil && file.broken == nil {
				remarks = append(remarks, err)
			}
		}
		if file.broken != nil {
			fatal = append(fatal, file.broken)
		}
	}
	for _, w := range a.events {
		done(w, w.Close)
	}
	for _, w := range a.snapshots {
		done(&w.file, w.Close)
	}
	return fatal, remarks
}

// Abort abandons the archive: it closes all files and writes no anchor and no global definitions. The locations' files
// stay. After Close it does nothing.
func (a *ArchiveWriter) Abort() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	a.closeWriters()
	if a.markers != nil {
		a.markers.Abort()
	}
	a.defs.Abort()
}

// completeLocations makes the files that are missing and fills in the numbers of events.
func (a *ArchiveWriter) completeLocations() (failures []error) {
	defined := map[LocationRef]bool{}
	for _, l := range a.locations {
		defined[l.ref] = true
		w := a.events[l.ref]
		if w == nil { // readers want a file also of a location without events
			empty, err := CreateEventWriter(locationFile(a.base, l.ref, ".evt"),
				&EventWriterOptions{ChunkSize: a.opts.EventChunkSize})
			if err == nil {
				err = empty.Close()
			}
			if err != nil {
				failures = append(failures, err)
			}
		} else if l.reserve >= 0 {
			a.defs.fill(l.reserve, w.Events())
		}
		if a.locals[l.ref] == nil {
			if err := WriteLocalDefs(locationFile(a.base, l.ref, ".def"), nil, nil, a.opts.DefChunkSize); err != nil {
				failures = append(failures, err)
			}
		}
		if len(a.snapshots) > 0 && a.snapshots[l.ref] == nil {
			s, err := CreateSnapshotWriter(locationFile(a.base, l.ref, ".snap"), a.opts.EventChunkSize)
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				failures = append(failures, err)
			}
		}
	}
	undefined := slices.Collect(maps.Keys(a.events))
	undefined = slices.AppendSeq(undefined, maps.Keys(a.snapshots))
	undefined = slices.AppendSeq(undefined, maps.Keys(a.locals))
	undefined = slices.DeleteFunc(undefined, func(loc LocationRef) bool { return defined[loc] })
	slices.Sort(undefined)
	for _, loc := range slices.Compact(undefined) {
		failures = append(failures, fmt.Errorf("otf2: location %d has files but no definition: %w", loc, ErrInvalid))
	}
	return failures
}
