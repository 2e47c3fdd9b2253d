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

	mu        sync.Mutex
	events    map[LocationRef]*EventWriter
	locations []definedLocation
	closed    bool
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
		events: map[LocationRef]*EventWriter{},
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
	w, err := a.createEvents(loc)
	if err == nil {
		a.events[loc] = w
	}
	return w, err
}

// createEvents makes the event file of a location.
func (a *ArchiveWriter) createEvents(loc LocationRef) (*EventWriter, error) {
	return CreateEventWriter(locationFile(a.base, loc, ".evt"), &EventWriterOptions{ChunkSize: a.opts.EventChunkSize})
}

// Close closes all writers, gives every defined location the files that readers want, fills in the locations'
// numbers of events, and writes the anchor.
//
// If a file cannot be completed, or a location with events is not defined (ErrInvalid), there is no anchor: the errors
// are returned and the files stay as they are.
func (a *ArchiveWriter) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkLocation(0); err != nil {
		return err
	}
	a.closed = true
	failures := append(a.closeEvents(), a.completeLocations()...)
	if len(failures) > 0 {
		a.defs.Abort()
		return errors.Join(failures...)
	}
	anchor := a.head()
	anchor.Locations, anchor.GlobalDefs = uint64(len(a.locations)), a.defs.Count()
	if err := a.defs.Close(); err != nil {
		return err
	}
	return WriteAnchor(a.anchor, anchor)
}

// closeEvents closes the writers of the locations.
func (a *ArchiveWriter) closeEvents() (failures []error) {
	for _, w := range a.events {
		if !w.closed {
			_ = w.Close() // broken has its error
		}
		if w.broken != nil {
			failures = append(failures, w.broken)
		}
	}
	return failures
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
	a.closeEvents()
	a.defs.Abort()
}

// completeLocations makes the files that are missing and fills in the numbers of events.
func (a *ArchiveWriter) completeLocations() (failures []error) {
	defined := map[LocationRef]bool{}
	for _, l := range a.locations {
		defined[l.ref] = true
		w := a.events[l.ref]
		if w == nil { // readers want a file also of a location without events
			empty, err := a.createEvents(l.ref)
			if err == nil {
				err = empty.Close()
			}
			if err != nil {
				failures = append(failures, err)
			}
		} else if l.reserve >= 0 {
			a.defs.writeReserved(l.reserve, w.Events())
		}
		if err := WriteLocalDefs(locationFile(a.base, l.ref, ".def"), nil, nil, a.opts.DefChunkSize); err != nil {
			failures = append(failures, err)
		}
	}
	for _, loc := range slices.Sorted(maps.Keys(a.events)) {
		if !defined[loc] {
			failures = append(failures,
				fmt.Errorf("otf2: location %d has files but no definition: %w", loc, ErrInvalid))
		}
	}
	return failures
}
