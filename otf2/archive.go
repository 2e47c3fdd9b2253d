// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// ReadOptions adjust reading. The zero value is useful.
type ReadOptions struct {
	// Raw leaves ids and times as they stand in the event files.
	Raw bool

	// Nanoseconds converts the times of events and markers, and of Defs.Clock, to nanoseconds from any ticks of the
	// archive, rounded down. It has no effect with Raw.
	Nanoseconds bool

	// MaxOpenFiles bounds the event files that are open at the same time; 0 means 128. Files beyond are opened
	// for each window.
	MaxOpenFiles int

	// Name is the result of Path, for archives made of something else; "": the path of the anchor.
	Name string

	// Memory is the room in bytes for windows on the event files when many locations are read at once; 0 means
	// 24 MiB. A window has at most 64 KiB and at least 640 bytes, so that many locations may need more.
	Memory int
}

// Archive is an archive opened for reading. Its methods may be used by several goroutines; each iteration belongs
// to one.
type Archive struct {
	Anchor *Anchor
	Defs   *Definitions

	path  string // of the anchor
	opts  ReadOptions
	ticks uint64 // per second, if they are to be converted to nanoseconds; else 0
	open  *openFiles

	mu             sync.Mutex
	maps           map[uint64]*localMaps // by hash
	localDefsKnown bool                  // localDefsThere has been looked for
	localDefsThere bool
}

// Open reads the anchor at anchorPath and the global definitions beside it. opts may be nil.
//
// Archives that are compressed or lie in SIONlib containers give ErrNotSupported. A damaged definition file gives
// the archive with the definitions before the damage, and an error.
func Open(anchorPath string, opts *ReadOptions) (*Archive, error) {
	anchor, err := ReadAnchor(anchorPath)
	if err != nil {
		return nil, err
	}
	refuse := func(what string) error {
		return &FormatError{File: anchorPath, Location: UndefinedLocation,
			Err: fmt.Errorf("%s: %w", what, ErrNotSupported)}
	}
	switch {
	case anchor.Substrate != SubstratePOSIX:
		return nil, refuse("file substrate " + anchor.Substrate.String())
	case anchor.Compression != CompressionNone:
		return nil, refuse("compression " + anchor.Compression.String())
	}
	a := &Archive{Anchor: anchor, path: anchorPath, maps: map[uint64]*localMaps{}}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.MaxOpenFiles <= 0 {
		a.opts.MaxOpenFiles = 128
	}
	if a.opts.Memory <= 0 {
		a.opts.Memory = 24 << 20
	}
	a.open = newOpenFiles(a.opts.MaxOpenFiles)
	a.Defs, err = ReadGlobalDefs(a.archiveFile(".def"), anchor.DefChunkSize)
	if c := &a.Defs.Clock; a.opts.Nanoseconds && !a.opts.Raw && c.Resolution != 0 && c.Resolution != 1e9 {
		a.ticks = c.Resolution
		end := nanoseconds(c.Offset+c.Length, a.ticks)
		c.Resolution, c.Offset = 1e9, nanoseconds(c.Offset, a.ticks)
		c.Length = end - c.Offset
	}
	return a, err
}

// Close ends reading. Iterations that are still under way keep working.
func (a *Archive) Close() error { return nil }

// Path returns the path of the anchor, or ReadOptions.Name.
func (a *Archive) Path() string {
	return cmp.Or(a.opts.Name, a.path)
}

// base is the archive's path without the anchor's extension: the folder of the locations' files.
func (a *Archive) base() string { return strings.TrimSuffix(a.path, filepath.Ext(a.path)) }

func (a *Archive) archiveFile(ext string) string { return a.base() + ext }

func (a *Archive) locationFile(loc LocationRef, ext string) string {
	return locationFile(a.base(), loc, ext)
}

// locationFile is the path of a location's file in the folder of the locations' files.
func locationFile(folder string, loc LocationRef, ext string) string {
	return filepath.Join(folder, strconv.FormatUint(uint64(loc), 10)+ext)
}

// EventFile returns the path of a location's event file.
func (a *Archive) EventFile(loc LocationRef) string { return a.locationFile(loc, ".evt") }

// LocalDefs reads a location's mapping tables and clock offsets. There are none in archives where no location has a
// file of them; where others have one, its lack is an error. With an error it returns what came before it. The tables
// must not be modified.
func (a *Archive) LocalDefs(loc LocationRef) ([]MappingTable, []ClockOffset, error) {
	l, err := a.localDefs(loc)
	return l.maps, l.clocks, err
}

// MarkerDef is a kind of marker.
type MarkerDef struct {
	Self            MarkerRef
	Group, Category string
	Severity        MarkerSeverity
}

// Marker is a remark about an interval of time.
type Marker struct {
	Time      Timestamp
	Duration  uint64 // ticks
	Marker    MarkerRef
	ScopeType MarkerScope
	Scope     uint64 // id of what ScopeType says, 2^64-1 for MarkerScopeGlobal
	Text      string
}

// Markers reads the archive's markers in file order; without a file there are none. With an error it returns
// what came before it.
func (a *Archive) Markers() (defs []MarkerDef, markers []Marker, err error) {
	path := a.archiveFile(".marker")
	err = readRecords(path, UndefinedLocation, a.Anchor.DefChunkSize, &markerTable,
		func(id uint8, d *fieldDecoder) error {
			switch id {
			case markerDef:
				m := MarkerDef{MarkerRef(d.c32()), d.str(), d.str(), MarkerSeverity(d.u8())}
				if d.err == nil {
					defs = append(defs, m)
				}
			case markerMarker:
				m := Marker{Timestamp(d.c64()), d.c64(), MarkerRef(d.c32()), MarkerScope(d.u8()), d.c64(), d.str()}
				if a.ticks != 0 {
					end := nanoseconds(uint64(m.Time)+m.Duration, a.ticks)
					m.Time = Timestamp(nanoseconds(uint64(m.Time), a.ticks))
					m.Duration = end - uint64(m.Time)
				}
				if d.err == nil {
					markers = append(markers, m)
				}
			}
			return nil
		})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return defs, markers, err
}

// Thumbnail is a coarse picture of an archive: for each sample of time one number per definition.
type Thumbnail struct {
	Name, Description string
	Type              ThumbnailType
	Refs              []uint64 // what the numbers belong to: regions, metrics, attributes, …
	Declared          uint32   // number of samples that the header announces
	Samples           []ThumbnailSample
}

// ThumbnailSample is one interval of a thumbnail.
type ThumbnailSample struct {
	Baseline uint64
	Values   []uint64 // beside Thumbnail.Refs
}

// Record ids of thumbnail files.
const (
	thumbnailHeader = 10
	thumbnailSample = 11
)

// Thumbnail reads thumbnail i, of Anchor.Thumbnails. With an error it returns what came before it.
func (a *Archive) Thumbnail(i uint32) (*Thumbnail, error) {
	t := &Thumbnail{}
	path := a.archiveFile("." + strconv.FormatUint(uint64(i), 10) + ".thumb")
	err := readRecords(path, UndefinedLocation, ThumbnailChunkSize, &thumbnailTable,
		func(id uint8, d *fieldDecoder) error {
			switch id {
			case thumbnailHeader:
				t.Name, t.Description = d.str(), d.str()
				t.Type, t.Declared = ThumbnailType(d.u8()), d.c32()
				t.Refs = readNumbers(d)
			case thumbnailSample:
				s := ThumbnailSample{Baseline: d.c64(), Values: readNumbers(d)}
				if d.err == nil {
					t.Samples = append(t.Samples, s)
				}
			}
			return nil
		})
	return t, err
}

// EachThumbnail calls f with each thumbnail that can be read, in order, until f gives an error. They are numbered from
// 0 without a gap: where a file is missing, all that the anchor counts behind it are, which is one error however many
// that would be. Errors of files are joined.
func (a *Archive) EachThumbnail(f func(i uint32, t *Thumbnail) error) error {
	var damage []error
	for i := range a.Anchor.Thumbnails {
		t, err := a.Thumbnail(i)
		if errors.Is(err, fs.ErrNotExist) {
			damage = append(damage, fmt.Errorf("%d of %d thumbnails are there: %w", i, a.Anchor.Thumbnails, err))
			break
		}
		if err != nil {
			damage = append(damage, err)
			continue
		}
		if err := f(i, t); err != nil {
			return err
		}
	}
	return errors.Join(damage...)
}

// readNumbers reads a count and that many compressed numbers.
func readNumbers(d *fieldDecoder) []uint64 {
	vs := make([]uint64, count(d, d.c32(), 1))
	for i := range vs {
		vs[i] = d.c64()
	}
	return vs
}
