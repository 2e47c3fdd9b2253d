// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// RawFile is a file of raw records, written by a process without a collector, with the outcome of its conversion to a
// shard.
type RawFile struct {
	Path string
	Err  error // nil: its shard is there
}

// ErrNothingWritten reports an empty raw file whose process has ended.
var ErrNothingWritten = errors.New(
	"empty: its process was killed before it wrote, or the disk took nothing; nobody knows how much is missing")

// RawFiles lists the raw files of an experiment directory: those of processes that have not ended in order, and those
// that have not been converted.
func RawFiles(directory string) []string { return regular.Matches(directory, Folder+"/*"+SpoolSuffix) }
