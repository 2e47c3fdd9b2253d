// SPDX-License-Identifier: Apache-2.0

// Package rawfiles lists the raw files of an experiment directory: which processes wrote records without a collector?
package rawfiles

import (
	"errors"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// File is a file of raw records, written by a process without a collector, with the outcome of its conversion to a
// shard.
type File struct {
	Path string
	Err  error // nil: its shard is there
}

// ErrNothingWritten reports an empty raw file whose process has ended.
var ErrNothingWritten = errors.New(
	"empty: its process was killed before it wrote, or the disk took nothing; nobody knows how much is missing")

// Find lists the raw files of an experiment directory: those of processes that have not ended in order, and those
// that have not been converted.
func Find(directory string) []string {
	return regular.Matches(directory, experiment.Folder+"/*"+experiment.SpoolSuffix)
}
