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

// Names of what is made.
const (
	ArchiveName = "traces"
	NewDir      = ArchiveName + ".new"
)

// Experiment directories may lie where others can make files, too. So every file written there is new (O_EXCL) or
// replaced by its name (rename), and no symbolic link is followed below the directory that the user named.

// OwnFolder makes a folder unless it is there, see atomicfile.MakeFolder. A symbolic link, also to a folder, is an
// error.
func OwnFolder(path string) error {
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return &fs.PathError{Op: "use", Path: path, Err: unix.ENOTDIR}
	}
	return atomicfile.MakeFolder(path)
}

// MayReplace returns an error if a folder has an archive without a given property, so that it must not be replaced, or
// a recorded job's data.
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

// newFile makes a file that is not there yet.
func newFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|unix.O_NOFOLLOW, regular.File)
}

// ownFile rejects everything except regular files: links, pipes, devices.
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
