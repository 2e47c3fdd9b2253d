// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// log is a sequence of numbers. What exceeds a block is in a temporary file without a name.
type log struct {
	buf  []byte
	file *os.File
	err  error // the first error; nothing is written after it
}

const blockSize = 1 << 16

func (l *log) write(v int64) { l.buf = binary.AppendVarint(l.buf, v) }

// endRecord writes full blocks to the file.
func (l *log) endRecord() {
	if len(l.buf) < blockSize || l.err != nil {
		return
	}
	if l.file == nil {
		if l.file, l.err = os.CreateTemp("", "nccl-otf2-schedule-"); l.err == nil {
			l.err = os.Remove(l.file.Name())
		}
	}
	if l.err == nil {
		_, l.err = l.file.Write(l.buf)
	}
	l.buf = l.buf[:0]
}

// failure says why the log cannot be read, "" if it can.
func (l *log) failure() string {
	if l.err == nil {
		return ""
	}
	return fmt.Sprintf("no temporary file: %v; set TMPDIR to a folder with room", l.err)
}

// reader reads the log from its begin.
func (l *log) reader() *reader {
	var in io.Reader = bytes.NewReader(l.buf)
	if l.file != nil {
		in = io.MultiReader(io.NewSectionReader(l.file, 0, 1<<62), in)
	}
	return &reader{in: bufio.NewReaderSize(in, blockSize)}
}

func (l *log) close() {
	if l.file != nil {
		_ = l.file.Close() // its content is not needed any more
	}
}

type reader struct {
	in  *bufio.Reader
	err error // io.EOF: all has been read
}

func (r *reader) read() (v int64) {
	if r.err == nil {
		v, r.err = binary.ReadVarint(r.in)
	}
	return v
}
