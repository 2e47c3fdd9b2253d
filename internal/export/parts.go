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

// Tables in parts: the tables of operations and transfers are split into one file for each slice of the archive, which
// several machines or processors can write in parallel. The contents of a row do not depend on the slice, so that the
// concatenated parts equal the whole table. Waits, which involve all ranks, are written with the first part, as are
// phases and runs.

// MaxParts is the maximum number of files of a table.
const MaxParts = 9999

// checkParts returns an error for invalid Parts or Part.
func (o *Options) checkParts() error {
	if o.Parts < 0 || o.Parts > MaxParts || o.Part < 0 || o.Part > o.Parts {
		return fmt.Errorf("part %d of %d: there are 1 to %d, numbered from 1", o.Part, o.Parts, MaxParts)
	}
	return nil
}

// partName returns the name of the file of a part: "operations-0003-of-0008.parquet".
func partName(file string, s analysis.Slice) string {
	return sql.PartFile(strings.TrimSuffix(file, sql.Suffix), s.Number, s.Of)
}

// writeParts writes the tables, or the requested parts of them.
func (e *exporter) writeParts(dir string, codec compress.Codec) error {
	if err := e.opts.checkParts(); err != nil {
		return err
	}
	if e.opts.Parts == 0 {
		return e.writeTableFiles(dir, slices.Concat(largeTables, smallTables), codec)
	}
	var all []*exporter
	var files [][]tableFile
	first, last := 1, e.opts.Parts
	if e.opts.Part > 0 {
		first, last = e.opts.Part, e.opts.Part
	}
	if first == 1 { // takes longest
		all, files = append(all, e.newPartExporter(analysis.Slice{})), append(files, smallTables)
	}
	for number := first; number <= last; number++ {
		slice := analysis.Slice{Number: number, Of: e.opts.Parts}
		for _, t := range largeTables {
			all = append(all, e.newPartExporter(slice))
			files = append(files, []tableFile{{partName(t.name, slice), t.write}})
		}
	}
	failed := make([]error, len(all))
	at := make(chan int)
	var wg sync.WaitGroup
	for range min(len(all), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range at {
				failed[i] = all[i].writeTableFiles(dir, files[i], codec)
			}
		})
	}
	for i := range all {
		at <- i
	}
	close(at)
	wg.Wait()
	for _, x := range all {
		e.mergeResult(x)
	}
	return errors.Join(failed...)
}

// newPartExporter returns an exporter of a slice that runs in parallel with others.
func (e *exporter) newPartExporter(s analysis.Slice) *exporter {
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

// mergeResult adds the result of another exporter.
func (e *exporter) mergeResult(x *exporter) {
	e.result.Files = append(e.result.Files, x.result.Files...)
	e.addProblems(x.result.Problems)
	for kind, n := range x.result.Records {
		e.result.Records[kind] += n
	}
	for what, n := range x.result.LeftOut {
		e.result.LeftOut[what] += n
	}
}

// removeOtherParts removes files of the large tables that an earlier export split differently.
func removeOtherParts(dir string, parts int) error {
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
