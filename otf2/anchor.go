// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// Anchor is the content of an archive's anchor file, <archive>.otf2, the file by which an archive is opened.
type Anchor struct {
	Version        [3]uint8 // of the library that wrote the archive: major, minor, bug fix; zero is written as 3.0.2
	EventChunkSize uint64   // bytes; of every event and snapshot file; 0 is written as DefaultEventChunkSize
	DefChunkSize   uint64   // bytes; of definition and marker files; 0 is written as DefaultDefChunkSize
	Locations      uint64   // number of locations
	GlobalDefs     uint64   // number of global definitions, which must be exact
	MachineName    string
	Creator        string
	Description    string
	Properties     []Property
	TraceID        uint64 // any non-zero number
	Snapshots      uint32 // number of snapshots
	Thumbnails     uint32 // number of thumbnails

	Substrate   FileSubstrate // how the files are kept; 0 is written as SubstratePOSIX
	Compression Compression   // 0 is written as CompressionNone
	Format      uint8         // anchor format read; 3 is written
}

// Property is a named remark on an archive. A name has at least two components of letters, digits and
// underscores, joined by "::".
type Property struct{ Name, Value string }

const (
	anchorMagic  = "OTF2\x00"
	anchorFormat = 3
	traceFormat  = 2

	maxAnchorSize = 256 << 10 // libotf2's writer has no more room
)

// WriteAnchor writes the anchor file at path, first under a temporary name. It comes last when an archive is
// made, because it makes the archive exist.
func WriteAnchor(path string, a *Anchor) error {
	b, err := a.append(nil)
	if err != nil {
		return err
	}
	f, err := createAtomic(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return f.abandon(err)
	}
	return f.commit()
}

func (a *Anchor) append(b []byte) ([]byte, error) {
	eventChunk, err := checkChunkSize(a.EventChunkSize, DefaultEventChunkSize)
	if err != nil {
		return nil, err
	}
	defChunk, err := checkChunkSize(a.DefChunkSize, DefaultDefChunkSize)
	if err != nil {
		return nil, err
	}
	version := a.Version
	if version == [3]uint8{} {
		version = [3]uint8{3, 0, 2}
	}
	b = append(b, recordHeader, littleEndian)
	b = append(b, anchorMagic...)
	b = append(b, anchorFormat, traceFormat, version[0], version[1], version[2])
	b = binary.LittleEndian.AppendUint64(b, uint64(eventChunk))
	b = binary.LittleEndian.AppendUint64(b, uint64(defChunk))
	b = append(b, byte(max(a.Substrate, SubstratePOSIX)), byte(max(a.Compression, CompressionNone)))
	b = binary.LittleEndian.AppendUint64(b, a.Locations)
	b = binary.LittleEndian.AppendUint64(b, a.GlobalDefs)
	texts := []string{a.MachineName, a.Creator, a.Description}
	for _, p := range a.Properties {
		if err := checkPropertyName(p.Name); err != nil {
			return nil, err
		}
		texts = append(texts, p.Name, p.Value)
	}
	for i, s := range texts {
		if err := checkText(s); err != nil {
			return nil, err
		}
		b = append(append(b, s...), 0)
		if i == 2 {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(a.Properties)))
		}
	}
	b = binary.LittleEndian.AppendUint64(b, a.TraceID)
	b = binary.LittleEndian.AppendUint32(b, a.Snapshots)
	b = binary.LittleEndian.AppendUint32(b, a.Thumbnails)
	b = append(b, recordEndOfFile, recordEndOfBuffer, recordEndOfChunk)
	if len(b) > maxAnchorSize {
		return nil, fmt.Errorf("otf2: anchor of %d bytes, at most %d: %w", len(b), maxAnchorSize, ErrTooLarge)
	}
	return b, nil
}

// checkPropertyName refuses what libotf2 refuses.
func checkPropertyName(name string) error {
	components, length := 0, 0
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '_' || c == '-' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z':
			if length == 0 {
				components++
			}
			length++
		case c == ':' && length > 0 && i+2 < len(name) && name[i+1] == ':':
			length = 0
			i++
		default:
			return fmt.Errorf("otf2: property name %q is not letters, digits and _ joined by \"::\": %w", name,
				ErrInvalid)
		}
	}
	if components < 2 || length == 0 {
		return fmt.Errorf("otf2: property name %q needs two components joined by \"::\": %w", name, ErrInvalid)
	}
	return nil
}

// ReadAnchor reads the anchor file at path. It returns what it finds also for archives that Open refuses, such
// as compressed ones. Errors are *FormatError or those of the operating system.
func ReadAnchor(path string) (*Anchor, error) {
	b, err := readAnchor(path)
	if errors.Is(err, regular.ErrTooLarge) {
		return nil, &FormatError{File: path, Location: UndefinedLocation, Err: fmt.Errorf("%w: %w", ErrCorrupt, err)}
	} else if err != nil {
		return nil, err
	}
	a, offset, err := parseAnchor(b)
	if err != nil {
		return nil, &FormatError{File: path, Location: UndefinedLocation, Offset: int64(offset), Err: err}
	}
	return a, nil
}

// readAnchor reads the bytes of an anchor file.
func readAnchor(path string) ([]byte, error) {
	const tooMuch = 16 << 20 // later formats may append; no anchor is near this
	b, err := regular.Read(path, tooMuch)
	return b, irregular(err)
}

// irregular makes an ErrNotSupported of a file that is no regular one.
func irregular(err error) error {
	if errors.Is(err, regular.ErrIrregular) {
		return fmt.Errorf("otf2: %w: %w", ErrNotSupported, err)
	}
	return err
}

// openRegular opens a file of an archive for reading.
func openRegular(path string) (*os.File, error) {
	f, err := regular.Open(path)
	return f, irregular(err)
}

// parseAnchor decodes an anchor; offset is where decoding stopped.
func parseAnchor(b []byte) (a *Anchor, offset int, err error) {
	if len(b) < 2 || b[0] != recordHeader {
		return nil, 0, fmt.Errorf("%w: not an OTF2 anchor file", ErrCorrupt)
	}
	d := fieldDecoder{buf: b, pos: 2}
	switch b[1] {
	case littleEndian:
	case bigEndian:
		d.big = true
	default:
		return nil, 1, fmt.Errorf("%w: byte order %#02x", ErrCorrupt, b[1])
	}
	if !bytes.HasPrefix(b[2:], []byte(anchorMagic)) {
		return nil, 2, fmt.Errorf("%w: no OTF2 mark", ErrCorrupt)
	}
	d.pos += len(anchorMagic)
	a = &Anchor{Format: d.u8()}
	trace := d.u8()
	if d.err == nil && a.Format == 0 {
		return nil, 7, fmt.Errorf("%w: anchor format 0", ErrCorrupt)
	}
	if trace > traceFormat {
		return nil, 8, fmt.Errorf("trace format %d: %w", trace, ErrNotSupported)
	}
	a.Version = [3]uint8{d.u8(), d.u8(), d.u8()}
	a.EventChunkSize, a.DefChunkSize = d.f64(), d.f64()
	a.Substrate, a.Compression = FileSubstrate(d.u8()), Compression(d.u8())
	a.Locations, a.GlobalDefs = d.f64(), d.f64()
	a.MachineName, a.Creator, a.Description = d.str(), d.str(), d.str()
	if a.Format >= 2 {
		n := count(&d, d.f32(), 2)
		if n > 0 {
			a.Properties = make([]Property, n)
		}
		for i := range a.Properties {
			a.Properties[i] = Property{d.str(), d.str()}
		}
		a.TraceID = d.f64()
	}
	if a.Format >= 3 {
		a.Snapshots, a.Thumbnails = d.f32(), d.f32()
	}
	if a.Format == 3 && d.err == nil && (d.pos >= len(b) || b[d.pos] != recordEndOfFile) {
		d.err = ErrTruncated
	}
	if d.err != nil {
		return nil, d.pos, d.err
	}
	for _, size := range []uint64{a.EventChunkSize, a.DefChunkSize} {
		if size < MinChunkSize || size > MaxChunkSize {
			return nil, 12, fmt.Errorf("%w: chunk size %d is not within %d and %d", ErrCorrupt, size, MinChunkSize,
				MaxChunkSize)
		}
	}
	return a, d.pos, nil
}
