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

// output is standard output where that is no terminal: a file, a pipe, a device. It keeps the first error, so that who
// writes a result there need not look at each one: Main does, once.
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

// unwritable says of an error of making a file what to do: the flag names another file.
func unwritable(err error, path, flag string) error {
	switch dir := filepath.Dir(path); {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be written: name a file elsewhere with %s", dir, flag)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: name a file elsewhere with %s", dir, flag)
	}
	return err
}

// writeOutput makes a file that appears as a whole, or writes to what the path names that is none. The flag is the one
// that names it.
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
