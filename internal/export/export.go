// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Options are the options of an export; nil means the zero value.
type Options struct {
	// Job is the job id, such as SLURM_JOB_ID, for schemas that contain one; "" if it is not known.
	Job string
	// Version is the version of the exporting program, for files that name their producer.
	Version string
	// Selection is the part of the archive to export; nil: everything.
	Selection *selection.Selection
	// Parts is the number of files of each large Parquet table, one for each slice of the archive; 0: one file.
	// Part is the number of the part to write, from 1; 0: all of them, in parallel.
	Parts, Part int
	// Progress, if set, is called periodically with the current activity and the number of records written.
	Progress func(what string, records uint64)
}

// Result describes a finished export.
type Result struct {
	Files     []string               `json:"files"`
	Records   map[string]uint64      `json:"records"`             // by kind
	Selection *selection.Description `json:"selection,omitempty"` // the exported part of the archive; nil: everything
	// LeftOut counts what the format cannot represent, or what the archive lacks.
	LeftOut map[string]uint64 `json:"left_out,omitempty"`
	// Differing names the operations that ranks recorded differently, one line each.
	Differing []string `json:"differing,omitempty"`
	// Problems, one line each: event files that could not be read to their end.
	Problems []string `json:"problems,omitempty"`
}

// exporter holds the state that all formats share.
type exporter struct {
	archive  *otf2.Archive
	rows     *rows
	opts     Options
	result   Result
	written  uint64
	reported string
	slice    analysis.Slice  // of the archive, in the large tables
	together sync.Mutex      // guards exporters of other slices
	span     operations.Span // of all events; set by the table of waits, which reads them all
}

func newExporter(a *otf2.Archive, opts *Options) *exporter {
	e := &exporter{archive: a, rows: newRows(a.Defs, property.Births(a.Anchor)),
		result: Result{Files: []string{}, Records: make(map[string]uint64), LeftOut: make(map[string]uint64),
			Differing: selfreport.Differing(a.Anchor)}}
	if opts != nil {
		e.opts = *opts
		e.result.Selection = opts.Selection.Describe()
	}
	return e
}

// countRecord counts a record of a kind.
func (e *exporter) countRecord(kind string) {
	e.result.Records[kind]++
	if e.written++; e.opts.Progress != nil && (e.written%(1<<14) == 0 || e.reported != kind) {
		e.reported = kind
		e.opts.Progress(kind, e.written)
	}
}

func (e *exporter) countLeftOut(what string) { e.result.LeftOut[what]++ }

// countNetSums counts transfers that were recorded only as sums.
func (e *exporter) countNetSums(s *facts.NetSums) {
	if s.Send && s.Transfers > 0 && e.opts.Selection.At(s.Location, s.Time) {
		e.result.LeftOut[summedTransfers] += s.Transfers
	}
}

func (e *exporter) addProblems(all []string) {
	for _, p := range all {
		if !slices.Contains(e.result.Problems, p) {
			e.result.Problems = append(e.result.Problems, p)
		}
	}
}

// file is an output that appears under its name when it is complete.
type file struct {
	*bufio.Writer
	f *atomicfile.File
}

// createFile opens an output, and creates missing folders of its path.
func createFile(path string) (*file, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	f, err := atomicfile.Output(path, 0o666)
	if err != nil {
		return nil, err
	}
	return &file{Writer: bufio.NewWriterSize(f, 256<<10), f: f}, nil
}

// commit completes the file.
func (f *file) commit() error {
	if err := f.Flush(); err != nil {
		return err
	}
	return f.f.Commit(atomicfile.Durable)
}

// abandon removes an incomplete file. After commit it does nothing.
func (f *file) abandon() { _ = f.f.Abandon() }

// writeFile creates a file and calls write to fill it; "-" stands for stdout.
func (e *exporter) writeFile(path string, stdout io.Writer, write func(w io.Writer) error) error {
	if path == "-" {
		b := bufio.NewWriterSize(stdout, 256<<10)
		if err := write(b); err != nil {
			return err
		}
		return b.Flush()
	}
	f, err := createFile(path)
	if err != nil {
		return err
	}
	defer f.abandon()
	if err := write(f); err != nil {
		return err
	}
	if err := f.commit(); err != nil {
		return err
	}
	e.result.Files = append(e.result.Files, path)
	return nil
}
