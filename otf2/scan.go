// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
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
	var s ScanResult
	chunk, err := checkChunkSize(chunkSize, DefaultEventChunkSize)
	if err != nil {
		return s, err
	}
	r := newEventReader(&fileSource{path: path, budget: newOpenFiles(1), size: -1}, uint64(chunk), maxWindow)
	r.event.Location = UndefinedLocation
	defer r.close()
	for {
		ok, err := r.next()
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

// RepairEventFile makes an event file without an end mark whole again: it is cut behind the last whole event, the
// end mark is written there and the last chunk's header gets the number of that event. A file that has its end
// mark is left as it is. A file too short for a header becomes an empty event file. Malformed data before the end
// is refused with the scan's error, nothing is changed then.
func RepairEventFile(path string, chunkSize uint64) (ScanResult, error) {
	s, err := ScanEventFile(path, chunkSize)
	if err != nil || s.Complete {
		return s, err
	}
	chunk, err := checkChunkSize(chunkSize, DefaultEventChunkSize)
	if err != nil {
		return s, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return s, err
	}
	defer f.Close()
	if s.Events == 0 {
		s.ValidBytes = headerSize
		if _, err := f.WriteAt(appendHeader(nil, 1, 0), 0); err != nil {
			return s, err
		}
	}
	// First the mark, then the cut, so that the file is never without an end.
	if _, err := f.WriteAt([]byte{recordEndOfFile, recordEndOfBuffer}, s.ValidBytes); err != nil {
		return s, err
	}
	if err := f.Truncate(s.ValidBytes + endSize); err != nil {
		return s, err
	}
	if s.Events > 0 {
		start := (s.ValidBytes - 1) / int64(chunk) * int64(chunk)
		var order [2]byte
		if _, err := f.ReadAt(order[:], start); err != nil {
			return s, err
		}
		last := binary.LittleEndian.AppendUint64(nil, s.Events)
		if order[1] == bigEndian {
			last = binary.BigEndian.AppendUint64(nil, s.Events)
		}
		if _, err := f.WriteAt(last, start+10); err != nil {
			return s, err
		}
	}
	s.Complete = true
	if err := f.Close(); err != nil {
		return s, fmt.Errorf("otf2: repairing %s: %w", path, err)
	}
	return s, nil
}
