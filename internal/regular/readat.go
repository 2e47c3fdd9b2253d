// SPDX-License-Identifier: Apache-2.0

package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// ReadAt reads from a file, from offset off to the end of p or of the file, and returns the file's size. It is for
// readers of more files than can be open at a time: an [os.File] for each read would be most of their allocations.
func ReadAt(path string, p []byte, off int64) (n int, size int64, err error) {
	fd, err := patient(func() (int, error) {
		return syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	})
	if errors.Is(err, syscall.ENXIO) { // a socket
		return 0, 0, fmt.Errorf("%s %w", path, ErrIrregular)
	} else if err != nil {
		return 0, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = syscall.Close(fd) }() // only read
	var info syscall.Stat_t
	if _, err := patient(func() (int, error) { return 0, syscall.Fstat(fd, &info) }); err != nil {
		return 0, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if info.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return 0, 0, fmt.Errorf("%s %w", path, ErrIrregular)
	}
	for n < len(p) {
		k, err := patient(func() (int, error) { return syscall.Pread(fd, p[n:], off+int64(n)) })
		if err != nil {
			return n, info.Size, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if k <= 0 {
			break
		}
		n += k
	}
	return n, info.Size, nil
}

// patient repeats a system call that a signal interrupted.
func patient(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
