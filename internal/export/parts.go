// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go/compress"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/sql"
)

// Tables in parts: the operations and the transfers are files of slices of the archive, which processes on several
// machines, or several processors of one, write at the same time. What a row holds depends on the archive alone and not
// on the slice, so that the parts one behind the other are the rows of the whole table. What brings all ranks together,
// waits, is written with the first part, and so are phases and runs.

// MaxParts bounds the files of a table.
const MaxParts = 9999

// checkParts tells what is wrong with the parts that are asked for.
func (o *Options) checkParts() error {
	if o.Parts < 0 || o.Parts > MaxParts || o.Part < 0 || o.Part > o.Parts {
		return fmt.Errorf("part %d of %d: there are 1 to %d, numbered from 1", o.Part, o.Parts, MaxParts)
	}
	return nil
}

// partName is the name of the file of a part: "operations-0003-of-0008.parquet".
func partName(file string, s analysis.Slice) string {
	return sql.PartFile(strings.TrimSuffix(file, sql.Suffix), s.Number, s.Of)
}

// inParts writes the tables, or the parts of them that are asked for.
func (e *exporter) inParts(dir string, codec compress.Codec) error {
	if err := e.opts.checkParts(); err != nil {
		return err
	}
	if e.opts.Parts == 0 {
		return e.tables(dir, slices.Concat(largeTables, smallTables), codec)
	}
	var all []*exporter
	var files [][]tableFile
	first, last := 1, e.opts.Parts
	if e.opts.Part > 0 {
		first, last = e.opts.Part, e.opts.Part
	}
	if first == 1 { // takes longest
		all, files = append(all, e.beside(analysis.Slice{})), append(files, smallTables)
	}
	for number := first; number <= last; number++ {
		slice := analysis.Slice{Number: number, Of: e.opts.Parts}
		for _, t := range largeTables {
			all, files = append(all, e.beside(slice)), append(files, []tableFile{{partName(t.name, slice), t.write}})
		}
	}
	failed := make([]error, len(all))
	at := make(chan int)
	var wg sync.WaitGroup
	for range min(len(all), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range at {
				failed[i] = all[i].tables(dir, files[i], codec)
			}
		})
	}
	for i := range all {
		at <- i
	}
	close(at)
	wg.Wait()
	for _, x := range all {
		e.absorb(x)
	}
	return errors.Join(failed...)
}

// beside is an exporter of a slice that works at the same time as others.
func (e *exporter) beside(s analysis.Slice) *exporter {
	rows := *e.rows
	rows.members = make(map[memberKey]*row)
	x := &exporter{archive: e.archive, rows: &rows, opts: e.opts, slice: s,
		result: Result{Records: make(map[string]uint64), LeftOut: make(map[string]uint64)}}
	if report := e.opts.Progress; report != nil {
		before := uint64(0)
		x.opts.Progress = func(what string, records uint64) {
			e.together.Lock()
			defer e.together.Unlock()
			e.written += records - before
			before = records
			report(what, e.written)
		}
	}
	return x
}

// absorb takes over what another one has written.
func (e *exporter) absorb(x *exporter) {
	e.result.Files = append(e.result.Files, x.result.Files...)
	e.problems(x.result.Problems)
	for kind, n := range x.result.Records {
		e.result.Records[kind] += n
	}
	for what, n := range x.result.LeftOut {
		e.result.LeftOut[what] += n
	}
}

// dropOthers removes what an earlier export has left of the large tables, cut otherwise.
func dropOthers(dir string, parts int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	ours := make(map[string]bool)
	for _, t := range largeTables {
		if parts == 0 {
			ours[t.name] = true
		}
		for number := range parts {
			ours[partName(t.name, analysis.Slice{Number: number + 1, Of: parts})] = true
		}
	}
	for _, f := range entries {
		for _, t := range largeTables {
			if name := f.Name(); !ours[name] && isPartOf(name, t.name) {
				if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	}
	return nil
}

// isPartOf reports whether a file is a table's, or one of its parts.
func isPartOf(name, table string) bool {
	_, _, part := sql.PartOf(name, strings.TrimSuffix(table, sql.Suffix))
	return name == table || part
}
