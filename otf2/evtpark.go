// SPDX-License-Identifier: Apache-2.0

package otf2

import "slices"

// Park frees the buffer of a writer whose data is all in its file, as after a Flush: a quiet location then costs some
// hundred bytes. The next event allocates a buffer again.
func (w *EventWriter) Park() {
	if w.err != nil || w.parked || w.pos != w.flushed || w.counted != w.events {
		return
	}
	w.parked = true
	w.buf = slices.Clone(w.buf[:headerSize])
	w.high = 0 // no event fits, so that the next one comes to room
}

// unpark allocates a buffer again. Of the file's content it needs only the header.
func (w *EventWriter) unpark() {
	if !w.parked {
		return
	}
	w.parked = false
	n := firstBuffer
	for n < w.pos+firstBuffer/2 {
		n *= 2
	}
	header, pos := w.buf, w.pos
	w.buf, w.pos = nil, 0
	w.resize(n)
	copy(w.buf, header)
	w.pos = pos
}
