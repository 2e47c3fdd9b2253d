// SPDX-License-Identifier: Apache-2.0

package otf2

import "slices"

// Copy appends the records of another global definition file, byte for byte, also those of kinds that this package
// does not know; chunkSize is that of the file's archive. Kinds in except are left out. Byte order is a matter of
// chunks, so records of another one get chunks of their own.
//
// A damaged file gives a *FormatError; the records before the damage have been written then.
func (w *GlobalDefWriter) Copy(path string, chunkSize uint64, except ...DefKind) error {
	chunk, err := checkChunkSize(chunkSize, DefaultDefChunkSize)
	if err != nil {
		return err
	}
	walk := frames{table: &globalDefTable, chunk: int64(chunk), record: func(big bool, raw []byte, head int) {
		if !slices.Contains(except, DefKind(raw[0])) && err == nil {
			err = w.raw(big, raw[0], raw[head:])
		}
	}}
	s, fault := walk.walk(path, false)
	w.order(false)
	switch {
	case fault != nil:
		return fault
	case err != nil:
		return err
	case s.flaw != nil:
		return &FormatError{File: path, Location: UndefinedLocation, Offset: s.flawAt, Err: s.flaw}
	}
	return nil
}

// raw writes a record of the given byte order.
func (w *GlobalDefWriter) raw(big bool, id uint8, fields []byte) error {
	w.order(big)
	return w.emit(id, append(w.start(), fields...), 0)
}
