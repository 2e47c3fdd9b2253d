// SPDX-License-Identifier: Apache-2.0

package export

import (
	"io"
	"strconv"
	"unicode/utf8"
)

// jsonWriter writes JSON incrementally. It inserts commas between the members of an object, and keeps its first error.
type jsonWriter struct {
	w    io.Writer
	buf  []byte
	last byte // written before buf
	err  error
}

const jsonBuffer = 64 << 10

func newJSONWriter(w io.Writer) *jsonWriter {
	return &jsonWriter{w: w, buf: make([]byte, 0, jsonBuffer+4096)}
}

func (j *jsonWriter) raw(s string) {
	j.buf = append(j.buf, s...)
	if len(j.buf) >= jsonBuffer {
		_ = j.flush() // keeps its first error
	}
}

func (j *jsonWriter) flush() error {
	if n := len(j.buf); n > 0 {
		j.last = j.buf[n-1]
	}
	if j.err == nil {
		_, j.err = j.w.Write(j.buf)
	}
	j.buf = j.buf[:0]
	return j.err
}

// key begins a member of an object.
func (j *jsonWriter) key(name string) {
	last := j.last
	if n := len(j.buf); n > 0 {
		last = j.buf[n-1]
	}
	if last != '{' {
		j.buf = append(j.buf, ',')
	}
	j.buf = appendJSON(j.buf, name)
	j.buf = append(j.buf, ':')
}

// object begins a member that is an object; raw("}") ends it.
func (j *jsonWriter) object(name string) {
	j.key(name)
	j.buf = append(j.buf, '{')
}

func (j *jsonWriter) text(name, value string) {
	j.key(name)
	j.buf = appendJSON(j.buf, value)
}

func (j *jsonWriter) integer(name string, v int64) {
	j.key(name)
	j.buf = strconv.AppendInt(j.buf, v, 10)
}

func (j *jsonWriter) unsigned(name string, v uint64) {
	j.key(name)
	j.buf = strconv.AppendUint(j.buf, v, 10)
}

func (j *jsonWriter) boolean(name string, v bool) {
	j.key(name)
	j.buf = strconv.AppendBool(j.buf, v)
}

func (j *jsonWriter) null(name string) {
	j.key(name)
	j.buf = append(j.buf, "null"...)
}

// hex writes a number as a string in the format of pointers.
func (j *jsonWriter) hex(name string, v uint64) {
	j.key(name)
	j.buf = append(j.buf, `"0x`...)
	j.buf = strconv.AppendUint(j.buf, v, 16)
	j.buf = append(j.buf, '"')
}

// micros writes nanoseconds as microseconds with three decimals.
func (j *jsonWriter) micros(name string, ns int64) {
	j.key(name)
	if ns < 0 {
		j.buf = append(j.buf, '-')
		ns = -ns
	}
	j.buf = strconv.AppendInt(j.buf, ns/1000, 10)
	frac := ns % 1000
	j.buf = append(j.buf, '.', byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
}

// appendJSON appends a string. Invalid UTF-8 becomes U+FFFD, because JSON must be valid UTF-8.
func appendJSON(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
			i++
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			i++
		case c < utf8.RuneSelf:
			b = append(b, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
		}
	}
	return append(b, '"')
}
