// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"fmt"
)

// Causes of errors; test with errors.Is.
var (
	ErrTruncated    = errors.New("file ends without an end mark") // what came before was delivered
	ErrCorrupt      = errors.New("malformed data")
	ErrNotSupported = errors.New("not supported")
	ErrClosed       = errors.New("already closed")
	ErrInvalid      = errors.New("invalid argument")       // refused, nothing was written
	ErrTooLarge     = errors.New("does not fit one chunk") // refused, nothing was written
)

// FormatError says where in a file reading stopped. It wraps one of the causes above or an error of the
// operating system.
type FormatError struct {
	File     string
	Location LocationRef // UndefinedLocation for files that belong to no location
	Offset   int64       // bytes from the start of the file
	Record   string      // name of the record at Offset, empty if there is none
	Err      error
}

// Error implements error.
func (e *FormatError) Error() string {
	if e.Record != "" {
		return fmt.Sprintf("otf2: %s: byte %d: record %s: %v", e.File, e.Offset, e.Record, e.Err)
	}
	return fmt.Sprintf("otf2: %s: byte %d: %v", e.File, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// TimeError reports an event older than the one before it. The event was refused: a stream's time stamps never
// decrease, readers would merge it wrongly.
type TimeError struct {
	Time Timestamp // of the refused event
	Last Timestamp // of the event before it
}

// Error implements error.
func (e *TimeError) Error() string {
	return fmt.Sprintf("otf2: time %d after %d: events of a location must not go back in time", e.Time, e.Last)
}

// Unwrap makes it an ErrInvalid.
func (e *TimeError) Unwrap() error { return ErrInvalid }

// ChunkSizeError reports a chunk size outside MinChunkSize to MaxChunkSize, which readers refuse.
type ChunkSizeError struct {
	Size uint64 // bytes
}

// Error implements error.
func (e *ChunkSizeError) Error() string {
	return fmt.Sprintf("otf2: chunk size %d is not within %d and %d", e.Size, uint64(MinChunkSize),
		uint64(MaxChunkSize))
}

// Unwrap makes it an ErrInvalid.
func (e *ChunkSizeError) Unwrap() error { return ErrInvalid }

// NestingError reports a Leave that does not match the innermost Enter, or regions still open at Close. Only
// writers with EventWriterOptions.CheckNesting return it; a refused Leave was not written.
type NestingError struct {
	Time   Timestamp
	Region RegionRef // left, or UndefinedRegion at Close
	Open   RegionRef // innermost open region, or UndefinedRegion if none is open
	Depth  int       // number of open regions
}

// Error implements error.
func (e *NestingError) Error() string {
	switch {
	case e.Region == UndefinedRegion:
		return fmt.Sprintf("otf2: %d regions still open at close, the innermost is %d", e.Depth, e.Open)
	case e.Depth == 0:
		return fmt.Sprintf("otf2: leave of region %d at %d while none is open", e.Region, e.Time)
	default:
		return fmt.Sprintf("otf2: leave of region %d at %d while region %d is the innermost", e.Region, e.Time, e.Open)
	}
}

// Unwrap makes it an ErrInvalid.
func (e *NestingError) Unwrap() error { return ErrInvalid }

func corruptRecord(id uint8) error { return fmt.Errorf("%w: record id %d", ErrCorrupt, id) }

func recordTooLong(size uint64) error {
	return fmt.Errorf("%w: record of %d bytes reaches over the end of its chunk", ErrCorrupt, size)
}
