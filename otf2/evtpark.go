// SPDX-License-Identifier: Apache-2.0

package otf2

import "slices"

// Park gives back the buffer of a writer of which everything is in its file, as after a Flush: a location that is quiet
// then costs some hundred bytes. The next event makes a buffer again.
func (w *EventWriter) Park() {
	if w.err != nil || w.parked || w.pos != w.flushed || w.counted != w.events {
		return
	}
	w.parked = true
	w.buf = slices.Clone(w.buf[:headerSize])
	w.high = 0 // no event fits, so that the next one comes to room
}

// unpark makes a buffer again. What is in the file already is not needed in it, but for the header.
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
