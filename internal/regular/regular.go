// SPDX-License-Identifier: Apache-2.0

// Package regular opens the files of archives, experiment directories and recordings, which others may have made. A
// pipe in place of such a file would block a reader for ever, a device would deliver data without end, and a sparse or
// compressed file could exceed the memory. So only regular files are opened, and no more is read than such a file can
// contain.
package regular

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Errors that the functions wrap.
var (
	ErrIrregular = errors.New("is not a regular file") // a folder, a pipe, a device, a socket
	ErrTooLarge  = errors.New("too large")
)

// Open opens a file for reading, wherever symbolic links lead. It never waits.
func Open(path string) (*os.File, error) { return open(path, 0) }

// OpenOwn opens a file in a directory that others may write to; a symbolic link is an error.
func OpenOwn(path string) (*os.File, error) { return open(path, syscall.O_NOFOLLOW) }

func open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0)
	if errors.Is(err, syscall.ENXIO) { // a socket
		return nil, fmt.Errorf("%s %w", path, ErrIrregular)
	} else if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", path, ErrIrregular)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Read reads a file that holds at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	return all(Open, path, limit)
}

// ReadOwn is Read with [OpenOwn].
func ReadOwn(path string, limit int64) ([]byte, error) {
	return all(OpenOwn, path, limit)
}

func all(open func(string) (*os.File, error), path string, limit int64) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s is %w: %d bytes, and no such file has more than %d", f.Name(), ErrTooLarge,
			info.Size(), limit)
	}
	return io.ReadAll(io.LimitReader(f, limit)) // without what is appended meanwhile
}

// Gunzip refuses input that expands to more than unfolded bytes and more than ratio times its size: recordings and
// profiles compress to a fiftieth at best, decompression bombs to a thousandth.
const (
	unfolded = 64 << 20
	ratio    = 250
)

// Gunzip returns a reader of the content of a gzip file of the given size; it returns an error that wraps ErrTooLarge
// if the content is too large for such a file.
func Gunzip(in io.Reader, size int64) (io.Reader, error) {
	z, err := gzip.NewReader(bufio.NewReader(in))
	if err != nil {
		return nil, err
	}
	return &bounded{z, max(unfolded, ratio*size)}, nil
}

type bounded struct {
	in   io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("its decompressed content is %w", ErrTooLarge)
	}
	return n, err
}

// MaxLine is the greatest length of a line of text in bytes; longer lines are damage.
const MaxLine = 4 << 20

// Line reads a line with its end; at the end of the input it returns the rest and io.EOF. A line longer than MaxLine is
// skipped, and the error wraps ErrTooLarge, too. The line is valid until the next call.
func Line(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := append([]byte(nil), line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = in.ReadSlice('\n')
		if len(long) <= MaxLine {
			long = append(long, line...)
		}
	}
	if len(long) > MaxLine {
		return nil, errors.Join(fmt.Errorf("a line is %w: more than %d bytes", ErrTooLarge, MaxLine), err)
	}
	return long, err
}

// Modes of results (archives and profiles), which may be shared, before the umask is applied.
const (
	Folder fs.FileMode = 0o755 // of those that lead to results
	File   fs.FileMode = 0o644
)
