// SPDX-License-Identifier: Apache-2.0

// Package flock locks files between processes: who has a file locked, and can files be locked there at all?
package flock

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// IsUnsupported reports whether an error of flock means that files cannot be locked there: file systems without locks,
// and sandboxes that forbid them.
func IsUnsupported(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOLCK, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EPERM,
		syscall.EACCES}, func(e error) bool { return errors.Is(err, e) })
}

// TryShared tries a shared lock: it fails if another has an exclusive one, and does not keep others from trying.
func TryShared(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil { // not by closing alone, see Unlock
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	return err
}

// IsLocked reports whether the file is locked, or may be: some file systems do not report it.
func IsLocked(f *os.File) bool {
	err := TryShared(f)
	return errors.Is(err, syscall.EWOULDBLOCK) || IsUnsupported(err)
}

// Unlock releases a lock of flock's and closes the file. A close alone would leave the lock to a child that is being
// forked at that moment, until that one runs its program, because it shares the file.
func Unlock(f *os.File) error {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return f.Close()
}

// Await locks a file exclusively. While others have it locked it waits, up to the deadline; then it returns
// EWOULDBLOCK.
func Await(fd int, deadline time.Time) error {
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
