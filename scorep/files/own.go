// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Names of what is made.
const (
	ArchiveName = "traces"
	NewDir      = ArchiveName + ".new"
)

// Experiment directories may lie where others can make files, too. So whatever is written there is new
// (O_EXCL) or replaced by its name (rename), and no symbolic link is followed below the directory that
// the user named.

// OwnFolder makes a folder unless it is there. A symbolic link, also to a folder, is an error.
func OwnFolder(path string) error {
	err := os.Mkdir(path, regular.Folder)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "use", Path: path, Err: unix.ENOTDIR}
	}
	return nil
}

// newFile makes a file that is not there yet.
func newFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|unix.O_NOFOLLOW, regular.File)
}

// ownFile refuses what is not a file itself: links, pipes, devices.
func ownFile(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	return info, err
}

// Remove removes a file, if it is there.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Name is the name of a location's file.
func Name(id otf2.LocationRef, suffix string) string {
	return strconv.FormatUint(uint64(id), 10) + suffix
}
