// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bufio"
	"io"
)

// output is the file that is written: members are streamed, and their headers put in front when their sizes are known.
type output interface {
	io.Writer
	io.WriterAt
}

// tarWriter writes members one after the other.
type tarWriter struct {
	out    output
	buffer *bufio.Writer
	at     int64 // bytes written, with those in the buffer
	header int64 // where the header of the open member is
	name   string
}

func newTarWriter(out output) *tarWriter {
	return &tarWriter{out: out, buffer: bufio.NewWriterSize(out, 64<<10)}
}

// Write adds to the open member.
func (t *tarWriter) Write(p []byte) (int, error) {
	n, err := t.buffer.Write(p)
	t.at += int64(n)
	return n, err
}

func (t *tarWriter) begin(name string) error {
	t.header, t.name = t.at, name
	_, err := t.Write(make([]byte, tarBlock))
	return err
}

// size is that of the open member so far.
func (t *tarWriter) size() int64 { return t.at - t.header - tarBlock }

// end closes the open member. If its size is a multiple of 512, one byte of padding is added to it: readers of the
// format and tar would look for the next member at different places.
func (t *tarWriter) end(padding byte) error {
	if size := t.size(); size > 0 && size%tarBlock == 0 {
		if _, err := t.Write([]byte{padding}); err != nil {
			return err
		}
	}
	size := t.size()
	if size > maxMember {
		return invalid(
			"member %s would have %d bytes: members of 8 GiB and more are not supported, leave out rows or write "+
				"compressed", t.name, size)
	}
	if rest := size % tarBlock; rest != 0 {
		if _, err := t.Write(make([]byte, tarBlock-rest)); err != nil {
			return err
		}
	}
	if err := t.buffer.Flush(); err != nil {
		return err
	}
	_, err := t.out.WriteAt(tarHeader(t.name, size), t.header)
	return err
}

// finish writes the end of the archive.
func (t *tarWriter) finish() error {
	if _, err := t.Write(make([]byte, 2*tarBlock)); err != nil {
		return err
	}
	return t.buffer.Flush()
}
