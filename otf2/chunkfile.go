// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"encoding/binary"
)

// lastEventAt is the offset in a chunk's header of the number of its last event.
const lastEventAt = 10

// chunkFile is an event file that is valid at any time: whatever was committed last, an end mark stands behind it.
type chunkFile struct {
	sink    File
	begun   bool        // the file has a header
	events  uint64      // in the file: the number in the header of its last chunk
	kept    []fullChunk // chunks that could not be written yet
	patient func(error) // see EventWriterOptions.Patient
	// unmarked says that a commit has overwritten the file's end mark and failed then, also in restoring it.
	unmarked bool
}

// fullChunk is a chunk with an end mark, and with the header of the next chunk before it if it is full.
type fullChunk struct {
	buf     []byte
	base    int64  // offset in the file
	flushed int    // bytes of buf that are in the file
	events  uint64 // in the file when all of buf is
}

// writeStart writes a header and an end mark.
func (f *chunkFile) writeStart() error {
	start := append(appendHeader(nil, 1, 0), recordEndOfFile, recordEndOfBuffer)
	if _, err := f.sink.WriteAt(start, 0); err != nil {
		return err
	}
	f.begun = true
	return nil
}

// add writes a full chunk. If the file is patient, a chunk that cannot be written is kept, as is every one behind it.
func (f *chunkFile) add(c fullChunk) error {
	var err error
	behind := len(f.kept) > 0 || !f.begun
	if !behind {
		err = f.commit(c)
	}
	if f.patient == nil || !behind && err == nil {
		return err
	}

	c.buf = bytes.Clone(c.buf)
	f.kept = append(f.kept, c)
	if err != nil {
		f.patient(writingError(err))
	}
	return nil
}

// writeKept writes what could not be written before. It stops at the first error; the rest stays kept.
func (f *chunkFile) writeKept() error {
	if !f.begun {
		if err := f.writeStart(); err != nil {
			return err
		}
	}
	for len(f.kept) > 0 {
		if err := f.commit(f.kept[0]); err != nil {
			return err
		}
		f.kept = append(f.kept[:0], f.kept[1:]...)
	}
	return nil
}

// commit writes c.buf[c.flushed:], which closes with an end mark, and the number of its events into the chunk's header.
// The file's present end mark stays until everything behind it is written; then the two bytes that replace it make the
// new end valid at once. After an error the file is what it was. If even that cannot be restored, the file has as much
// of the new records as was written, and is longer than EventWriter.Size says.
func (f *chunkFile) commit(c fullChunk) error {
	mark := c.base + int64(c.flushed)
	_, err := f.sink.WriteAt(c.buf[c.flushed+endSize:], mark+endSize)
	if err == nil {
		f.unmarked = true
		err = f.replaceMark(c.buf[c.flushed:c.flushed+endSize], mark)
	}
	if err == nil {
		err = f.writeCount(c, c.events)
	}
	if err != nil {
		f.restoreMark(c, mark)
		return err
	}
	f.events, f.unmarked = c.events, false
	return nil
}

// restoreMark makes the file end at mark again after a failed commit. The order of its writes keeps the file valid all
// the time.
func (f *chunkFile) restoreMark(c fullChunk, mark int64) {
	if f.unmarked {
		if _, err := f.sink.WriteAt([]byte{recordEndOfFile, recordEndOfBuffer}, mark); err != nil ||
			f.writeCount(c, f.events) != nil {
			return
		}
		f.unmarked = false
	}
	_ = f.sink.Truncate(mark + endSize)
}

// writeCount writes the number of the chunk's last event into its header.
func (f *chunkFile) writeCount(c fullChunk, events uint64) error {
	binary.LittleEndian.PutUint64(c.buf[lastEventAt:], events)
	_, err := f.sink.WriteAt(c.buf[lastEventAt:headerSize], c.base+lastEventAt)
	return err
}

// replaceMark overwrites an end mark. A signal cannot interrupt a write within one page, but it can interrupt one over
// two pages; then the second byte goes first, because readers stop at the first byte and never look at the second.
func (f *chunkFile) replaceMark(b []byte, off int64) error {
	const smallestPage = 4096
	if off%smallestPage == smallestPage-1 {
		if _, err := f.sink.WriteAt(b[1:], off+1); err != nil {
			return err
		}
		b = b[:1]
	}
	_, err := f.sink.WriteAt(b, off)
	return err
}
