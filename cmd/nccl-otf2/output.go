// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// output is standard output that is not a terminal but a file, a pipe or a device. It keeps the first error, which Main
// checks once, so that commands need not check each write.
type output struct {
	file *os.File
	err  error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// unwritable adds to an error from creating a file that the flag can name another file.
func unwritable(err error, path, flag string) error {
	switch dir := filepath.Dir(path); {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be written: name a file elsewhere with %s", dir, flag)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: name a file elsewhere with %s", dir, flag)
	}
	return err
}

// writeOutput writes a file atomically, or writes directly to a path that is not a regular file. flag is the flag that
// names the path.
func writeOutput(path, flag string, write func(io.Writer) error) error {
	f, err := atomicfile.Output(path, regular.File)
	if err != nil {
		return unwritable(err, path, flag)
	}
	defer f.Abandon()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit(atomicfile.Durable)
}
