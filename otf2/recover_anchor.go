// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
)

// readAnchor reads the anchor, or its remains.
func (r *recovery) readAnchor() error {
	path := r.res.Anchor
	a, err := ReadAnchor(path)
	var fe *FormatError
	switch {
	case err == nil:
		switch {
		case a.Substrate != SubstratePOSIX:
			return &FormatError{File: path, Location: UndefinedLocation,
				Err: fmt.Errorf("file substrate %v: %w", a.Substrate, ErrNotSupported)}
		case a.Compression != CompressionNone:
			return &FormatError{File: path, Location: UndefinedLocation,
				Err: fmt.Errorf("compression %v: %w", a.Compression, ErrNotSupported)}
		}
		r.anchor, r.eventChunk, r.defChunk = a, a.EventChunkSize, a.DefChunkSize
	case errors.Is(err, fs.ErrNotExist):
		r.anchorFlaw = "it was missing"
	case errors.As(err, &fe) && !errors.Is(err, ErrNotSupported):
		b, rerr := readAnchor(path)
		if rerr != nil {
			return rerr
		}
		r.anchorFlaw = fmt.Sprintf("%v at byte %d", fe.Err, fe.Offset)
		r.old = remainsOfAnchor(b)
	default:
		return err
	}
	return nil
}

// remainsOfAnchor reads an anchor up to its damage; nil if not even the counts are whole.
func remainsOfAnchor(b []byte) *Anchor {
	const fixed = 46 // bytes before the first text
	if len(b) < fixed || b[0] != recordHeader || !bytes.HasPrefix(b[2:], []byte(anchorMagic)) {
		return nil
	}
	d := fieldDecoder{buf: b, pos: 9, big: b[1] == bigEndian}
	a := &Anchor{Version: [3]uint8{d.u8(), d.u8(), d.u8()}}
	a.EventChunkSize, a.DefChunkSize = d.f64(), d.f64()
	d.u8() // substrate
	d.u8() // compression
	a.Locations, a.GlobalDefs = d.f64(), d.f64()
	a.MachineName, a.Creator, a.Description = d.str(), d.str(), d.str()
	for range count(&d, d.f32(), 2) {
		p := Property{d.str(), d.str()}
		if d.err == nil && checkPropertyName(p.Name) == nil {
			a.Properties = append(a.Properties, p)
		}
	}
	trace, snapshots, thumbnails := d.f64(), d.f32(), d.f32()
	if d.err == nil {
		a.TraceID, a.Snapshots, a.Thumbnails = trace, snapshots, thumbnails
	}
	return a
}

func goodChunkSize(size uint64) bool { return size >= MinChunkSize && size <= MaxChunkSize }

// deduce finds the chunk sizes of an archive without anchor.
func (r *recovery) deduce() {
	var oldEvent, oldDef uint64
	if r.old != nil {
		oldEvent, oldDef = r.old.EventChunkSize, r.old.DefChunkSize
	}
	var events, defs sizeVote
	for loc, exts := range r.files {
		for _, ext := range exts {
			path := locationFile(r.base, loc, ext)
			switch ext {
			case ".evt":
				events.file(path, &eventTable, true)
			case ".snap":
				events.file(path, &snapshotTable, true)
			case ".def":
				defs.file(path, &localDefTable, false)
			}
		}
	}
	defs.file(r.defsFrom, &globalDefTable, false)
	defs.file(r.base+".marker", &markerTable, false)
	r.eventChunk = events.winner(oldEvent, DefaultEventChunkSize)
	r.defChunk = defs.winner(oldDef, DefaultDefChunkSize)
}

// sizeVote collects the chunk sizes of files.
type sizeVote struct {
	votes   map[uint64]int
	largest uint64 // file of one chunk
}

func (v *sizeVote) file(path string, table *recordTable, stamped bool) {
	size, err := deduceChunkSize(path, table, stamped)
	info, serr := os.Stat(path)
	switch {
	case err != nil || serr != nil:
	case size == 0:
		v.largest = max(v.largest, uint64(info.Size()))
	default:
		if v.votes == nil {
			v.votes = map[uint64]int{}
		}
		v.votes[size]++
	}
}

// winner returns the chunk size of most files. Files of one chunk only give a lower bound: then it is the old anchor's
// size, or the default, or the next power of two that suffices.
func (v *sizeVote) winner(old, def uint64) uint64 {
	best := uint64(0)
	for size, n := range v.votes {
		if n > v.votes[best] || n == v.votes[best] && size < best {
			best = size
		}
	}
	switch {
	case best != 0:
		return best
	case goodChunkSize(old) && old >= v.largest:
		return old
	}
	size := def
	for size < v.largest && size < MaxChunkSize {
		size *= 2
	}
	return size
}

// Places of the counts in an anchor, which are the same in all its versions.
const (
	anchorLocations = 30
	anchorDefs      = 38
)

// finishAnchor gives the anchor the right counts, or makes it anew. It comes last: with an anchor the archive
// counts as whole.
func (r *recovery) finishAnchor() {
	path := r.res.Anchor
	switch {
	case r.defs != nil && !r.defsBad:
	case r.anchor != nil:
		r.noteWhole(path, 0)
		return
	default:
		r.noteUnrepairable(path, 0, fmt.Sprintf("%s, and without global definitions it is not made", r.anchorFlaw))
		return
	}
	locations, defs := uint64(len(r.defined)), r.defs.records
	if r.anchor == nil {
		r.rebuildAnchor(locations, defs)
		return
	}
	if r.anchor.Locations == locations && r.anchor.GlobalDefs == defs {
		r.noteWhole(path, 0)
		return
	}
	b, err := readAnchor(path)
	if err != nil || len(b) < anchorDefs+8 {
		r.noteUnrepairable(path, 0, fmt.Sprintf("cannot be read again: %v", err))
		return
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if b[1] == bigEndian {
		order = binary.BigEndian
	}
	order.PutUint64(b[anchorLocations:], locations)
	order.PutUint64(b[anchorDefs:], defs)
	r.replace(RecoveredFile{Path: path, Detail: fmt.Sprintf("names %s and %s now, named %d and %d",
		plural(locations, "location"), plural(defs, "definition"), r.anchor.Locations, r.anchor.GlobalDefs)}, b)
}

// rebuildAnchor makes an anchor from what is known.
func (r *recovery) rebuildAnchor(locations, defs uint64) {
	a := Anchor{}
	if r.old != nil {
		a = *r.old
	}
	a.Format, a.Substrate, a.Compression = 0, 0, 0
	a.EventChunkSize, a.DefChunkSize = r.eventChunk, r.defChunk
	a.Locations, a.GlobalDefs = locations, defs
	a.Snapshots, a.Thumbnails = r.snapshots, r.thumbnails
	a.Creator = cmp.Or(a.Creator, creatorOfRecovered)
	if a.TraceID == 0 {
		a.TraceID = r.traceID()
	}
	b, err := a.append(nil)
	if err != nil {
		r.noteUnrepairable(r.res.Anchor, 0, err.Error())
		return
	}
	r.replace(RecoveredFile{Path: r.res.Anchor,
		Detail: fmt.Sprintf("%s: made anew with chunks of %d (events) and %d (definitions) bytes, %s, %s",
			r.anchorFlaw, a.EventChunkSize, a.DefChunkSize, plural(locations, "location"), plural(defs, "definition"))},
		b)
	switch {
	case r.old == nil:
		r.lost("anchor: machine name, creator, description, properties and trace identifier")
	case r.old.TraceID == 0:
		r.lost("anchor: trace identifier, and maybe properties and names")
	}
}

// traceID is a number for an archive that has lost its own: the same whenever it is asked for.
func (r *recovery) traceID() uint64 {
	h := fnv.New64a()
	for _, loc := range r.locations {
		fmt.Fprintf(h, "%d %d;", loc, r.events[loc])
	}
	fmt.Fprint(h, r.defs.records)
	return h.Sum64() | 1
}
