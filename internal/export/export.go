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
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Options say how to export; nil means the zero value.
type Options struct {
	// Job names the job where a schema asks for its id, as SLURM_JOB_ID does; "" if it is not known.
	Job string
	// Version of the program that exports, for files that name who made them.
	Version string
	// Selection is what is exported; nil: everything.
	Selection *selection.Selection
	// Parts is into how many files the large tables of Parquet are cut, by slices of the archive; 0: each is one file.
	// Part is the one that is written, from 1; 0: all of them, at the same time.
	Parts, Part int
	// Progress, if set, is called now and then with what is being done, and how many records have been written.
	Progress func(what string, records uint64)
}

// Result tells what was written.
type Result struct {
	Files     []string               `json:"files"`
	Records   map[string]uint64      `json:"records"`             // by kind
	Selection *selection.Description `json:"selection,omitempty"` // what of the archive; nil: everything
	// what the form has no room for, or the archive no data for
	LeftOut map[string]uint64 `json:"left_out,omitempty"`
	// Differing says which operations the ranks recorded differently, a line each.
	Differing []string `json:"differing,omitempty"`
	// Problems, one line each: event files that could not be read to their end.
	Problems []string `json:"problems,omitempty"`
}

// exporter is what all forms have in common.
type exporter struct {
	archive  *otf2.Archive
	rows     *rows
	opts     Options
	result   Result
	written  uint64
	reported string
	slice    analysis.Slice  // that the large tables are of
	together sync.Mutex      // of those beside
	span     operations.Span // of the events; set by the table of waits, which reads them all
}

func newExporter(a *otf2.Archive, opts *Options) *exporter {
	e := &exporter{archive: a, rows: newRows(a.Defs, facts.Births(a.Anchor)),
		result: Result{Files: []string{}, Records: make(map[string]uint64), LeftOut: make(map[string]uint64),
			Differing: analysis.Differing(a.Anchor)}}
	if opts != nil {
		e.opts = *opts
		e.result.Selection = opts.Selection.Describe()
	}
	return e
}

// count notes a record of a kind.
func (e *exporter) count(kind string) {
	e.result.Records[kind]++
	if e.written++; e.opts.Progress != nil && (e.written%(1<<14) == 0 || e.reported != kind) {
		e.reported = kind
		e.opts.Progress(kind, e.written)
	}
}

func (e *exporter) leaveOut(what string) { e.result.LeftOut[what]++ }

// leaveSums counts transfers that are not there one by one.
func (e *exporter) leaveSums(s *facts.NetSums) {
	if s.Send && s.Transfers > 0 && e.opts.Selection.At(s.Location, s.Time) {
		e.result.LeftOut[summedTransfers] += s.Transfers
	}
}

func (e *exporter) problems(all []string) {
	for _, p := range all {
		if !slices.Contains(e.result.Problems, p) {
			e.result.Problems = append(e.result.Problems, p)
		}
	}
}

// file is an output that gets its name when it is complete.
type file struct {
	*bufio.Writer
	f *atomicfile.File
}

// create opens an output. Parts of the path that are missing are made.
func create(path string) (*file, error) {
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

// drop removes what was written. It may follow commit, and then does nothing.
func (f *file) drop() { _ = f.f.Abandon() }

// into writes one file by means of write; "-" stands for the standard output that is given.
func (e *exporter) into(path string, stdout io.Writer, write func(w io.Writer) error) error {
	if path == "-" {
		b := bufio.NewWriterSize(stdout, 256<<10)
		if err := write(b); err != nil {
			return err
		}
		return b.Flush()
	}
	f, err := create(path)
	if err != nil {
		return err
	}
	defer f.drop()
	if err := write(f); err != nil {
		return err
	}
	if err := f.commit(); err != nil {
		return err
	}
	e.result.Files = append(e.result.Files, path)
	return nil
}
