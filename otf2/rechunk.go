// SPDX-License-Identifier: Apache-2.0

package otf2

import "fmt"

// RewriteEvents writes the events of the file from, in chunks of fromChunk bytes, into a new file with chunks of
// another size, ids and times as they stand, and returns their number. Events of kinds that this package does not know
// are an error (ErrNotSupported): an archive's chunks have one size, so they could not be read with it either.
func RewriteEvents(from, to string, fromChunk, toChunk uint64) (uint64, error) {
	return RewriteEventsWith(from, to, fromChunk, toChunk, func(*Event) {})
}

// RewriteEventsWith does so, and lets change each event before it is written: its time, and its arguments in place.
// Times must not go back.
func RewriteEventsWith(from, to string, fromChunk, toChunk uint64, change func(*Event)) (uint64, error) {
	chunk, err := checkChunkSize(fromChunk, DefaultEventChunkSize)
	if err != nil {
		return 0, err
	}
	r := newEventReader(&fileSource{path: from, budget: newOpenFiles(1), size: -1}, uint64(chunk), maxWindow)
	defer r.close()
	w, err := CreateEventWriter(to, &EventWriterOptions{ChunkSize: toChunk})
	if err != nil {
		return 0, err
	}
	var attributes AttributeList
	for {
		ok, err := r.next()
		if !ok || err != nil {
			if err != nil {
				_ = w.Abandon()
				return 0, err
			}
			n := w.Events()
			return n, w.Close()
		}
		e := r.event // a copy: the reader goes on from its own
		if !e.Kind.Known() {
			err = fmt.Errorf("otf2: event of kind %d: %w", e.Kind, ErrNotSupported)
		} else {
			change(&e)
			attributes.Reset()
			attributes.list = append(attributes.list, e.Attributes...)
			err = w.Write(e.Kind, e.Time, &attributes, e.Args)
		}
		if err != nil {
			_ = w.Abandon()
			return 0, err
		}
	}
}
