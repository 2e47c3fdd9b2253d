// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"fmt"
)

// ScanResult is what an event file holds.
type ScanResult struct {
	Events      uint64    // whole events
	First, Last Timestamp // times of the first and last event as recorded, 0 without events
	ValidBytes  int64     // bytes up to the end of the last whole event; the end mark belongs there
	Complete    bool      // an end mark stands behind the last event
}

// ScanEventFile reads an event file from start to end as it stands, without mapping. A file without an end mark,
// as a crash may leave it, is no error: the result says how far it is good. For malformed data it returns the
// result up to there and a *FormatError.
func ScanEventFile(path string, chunkSize uint64) (ScanResult, error) {
	return ScanEventsWhile(path, chunkSize, func(*Event) error { return nil })
}

// ScanEventsWhile does so up to the first event that good gives an error for, which the FormatError then wraps beside
// ErrCorrupt.
func ScanEventsWhile(path string, chunkSize uint64, good func(*Event) error) (ScanResult, error) {
	var s ScanResult
	chunk, err := checkChunkSize(chunkSize, DefaultEventChunkSize)
	if err != nil {
		return s, err
	}
	r := newEventReader(&fileSource{path: path, budget: newOpenFiles(1), size: -1}, uint64(chunk), maxWindow)
	r.event.Location = UndefinedLocation
	defer r.close()
	inside := int64(0) // end of the chunk that the last event is in
	for {
		ok, err := r.next()
		if ok && r.win.chunkEnd != inside {
			if inside = r.win.chunkEnd; r.win.first != s.Events+1 {
				err = fmt.Errorf("%w: a chunk begins with event %d behind event %d", ErrCorrupt, r.win.first, s.Events)
			}
		}
		if ok && err == nil {
			if err = good(&r.event); err != nil {
				err = fmt.Errorf("%w: %w", ErrCorrupt, err)
			}
		}
		if ok && err != nil {
			r.fail(err)
			return s, r.err
		}
		switch {
		case errors.Is(err, ErrTruncated):
			return s, nil
		case err != nil:
			return s, err
		case !ok:
			s.Complete = true
			if s.Events == 0 {
				s.ValidBytes = headerSize
			}
			return s, nil
		}
		if s.Events == 0 {
			s.First = r.event.Time
		}
		s.Events++
		s.Last = r.event.Time
		s.ValidBytes = r.win.offset()
	}
}
