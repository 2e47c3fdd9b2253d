// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// synced ignores the error of file systems that cannot sync such a file.
func synced(err error) error {
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// syncIn syncs a file, or the names in a folder.
func syncIn(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return errors.Join(synced(f.Sync()), f.Close())
}

// SyncFolder syncs the names in a folder: files made, renamed and removed there.
func SyncFolder(path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	return syncIn(root, ".")
}

// SyncRoot is SyncFolder for an open folder.
func SyncRoot(root *os.Root) error { return syncIn(root, ".") }

// SyncFile syncs a file and its name.
func SyncFile(path string) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	return errors.Join(syncData(root, filepath.Base(path)), syncIn(root, "."))
}

// Syncers is the number of files synced in parallel. File systems write the metadata of several files at once, so this
// takes little longer than syncing one.
const Syncers = 8

// SyncFiles syncs the data and sizes of files in an open folder, not the folder's names. The error joins those of all
// files.
func SyncFiles(root *os.Root, names []string) error {
	errs := make([]error, len(names))
	next := make(chan int)
	var working sync.WaitGroup
	for range min(Syncers, len(names)) {
		working.Go(func() {
			for i := range next {
				errs[i] = syncData(root, names[i])
			}
		})
	}
	for i := range names {
		next <- i
	}
	close(next)
	working.Wait()
	return errors.Join(errs...)
}

func syncData(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	err = syscall.Fdatasync(int(f.Fd()))
	if err = synced(err); err != nil {
		err = &fs.PathError{Op: "fdatasync", Path: filepath.Join(root.Name(), name), Err: err}
	}
	return errors.Join(err, f.Close())
}

// SyncTree syncs a folder and all files in it. Files with further names outside must be synced under these.
func SyncTree(path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	var folders []string
	type file struct {
		name  string
		names uint64 // of its links, inside
		links uint64
	}
	inside := make(map[uint64]*file)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			folders = append(folders, name)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() {
			if inside[st.Ino] == nil {
				inside[st.Ino] = &file{name: name, links: uint64(st.Nlink)}
			}
			inside[st.Ino].names++
		}
		return nil
	})
	if err != nil {
		return err
	}
	var files []string
	for _, f := range inside {
		if f.names >= f.links {
			files = append(files, f.name)
		}
	}
	if err := SyncFiles(root, files); err != nil {
		return err
	}
	for i := len(folders) - 1; i >= 0; i-- { // content before the folder that leads to it
		if err := syncIn(root, folders[i]); err != nil {
			return err
		}
	}
	return nil
}
