// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Names of archives and of the folder that they are staged in.
const (
	ArchiveName = "traces"
	NewDir      = ArchiveName + ".new"
)

// Others may be able to create files where experiment directories are. So every file written there is new (O_EXCL) or
// renamed over an old one, and no symbolic link is followed below the directory that the user named.

// OwnFolder creates a folder unless it exists, see atomicfile.MakeFolder. A symbolic link is an error, even to a
// folder.
func OwnFolder(path string) error {
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return &fs.PathError{Op: "use", Path: path, Err: unix.ENOTDIR}
	}
	return atomicfile.MakeFolder(path)
}

// MayReplace returns an error if a folder has an archive without the given property, or a recorded job's data, so that
// it must not be replaced.
func MayReplace(dir, property string) error {
	present := []string{experiment.Folder}
	for _, suffix := range Parts {
		present = append(present, ArchiveName+suffix)
	}
	if !slices.ContainsFunc(present, func(name string) bool {
		_,
			err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}) {
		return nil
	}
	if a, err := otf2.ReadAnchor(filepath.Join(dir, ArchiveName+anchorSuffix)); err == nil &&
		slices.ContainsFunc(a.Properties, func(p otf2.Property) bool { return p.Name == property }) {
		return nil
	}
	return fmt.Errorf("%s holds another archive, which no result may replace: name another folder", dir)
}

// newFile creates a file. It is an error if the file exists.
func newFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|unix.O_NOFOLLOW, regular.File)
}

// ownFile describes a file. It is an error if it is not a regular file.
func ownFile(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	return info, err
}

// Remove removes a file if it exists.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Name returns the name of a location's file.
func Name(id otf2.LocationRef, suffix string) string {
	return strconv.FormatUint(uint64(id), 10) + suffix
}
