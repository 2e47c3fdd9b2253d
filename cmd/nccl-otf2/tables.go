// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/sql"
)

// madeTables holds the tables that were written with new archives (setting TABLES, unify --tables).
type madeTables struct {
	Tables        []string `json:"tables,omitempty"`         // folders
	TableProblems []string `json:"table_problems,omitempty"` // what they lack, or why there are none; one line each
}

// lastTable returns the path of the table that is written last.
func lastTable(dir string) string { return filepath.Join(dir, sql.FolderName, export.RunsFile) }

// makeArchives makes the archives of an experiment directory, with tables if requested. It locks the directory until
// all files are written, so that no waiting process makes them again.
func (m *madeTables) makeArchives(dir string, want wanted, p *progressLine) (*scorep.Result, error) {
	opts, err := unifyOptions(dir, func(phase string, done, total int) {
		p.showLine("%s: %d of %d", phase, done, total)
	})
	if err != nil {
		return nil, err
	}
	defer opts.Hold.Release()
	opts.Sync, opts.StampedEnds = want.sync, want.stamped
	res, err := scorep.Unify(dir, opts)
	if err != nil || !want.tables {
		return res, err
	}
	for i := range res.Runs {
		m.writeTables(res.Runs[i].Archive, p)
	}
	return res, nil
}

// writeTables writes the tables of an archive into the folder beside it.
func (m *madeTables) writeTables(anchor string, p *progressLine) {
	folder := filepath.Join(filepath.Dir(anchor), sql.FolderName)
	a, err := openArchive(anchor)
	if a != nil {
		defer a.Close()
		var res *export.Result
		if err != nil { // damaged definitions: write the readable part
			m.TableProblems = append(m.TableProblems, oneLine(err.Error()))
		}
		res, err = export.Parquet(a, folder, export.Codecs()[0], &export.Options{
			Version: toolVersion, Progress: func(what string, records uint64) {
				p.showLine("%s (%d written)", what, records)
			},
		})
		if err == nil {
			m.Tables, m.TableProblems = append(m.Tables, folder), append(m.TableProblems, res.Problems...)
			return
		}
	}
	m.TableProblems = append(m.TableProblems,
		fmt.Sprintf("tables of %s were not written: %s", anchor, oneLine(err.Error())))
}

// tablesError returns an error if the tables are incomplete.
func (m *madeTables) tablesError() error {
	if len(m.TableProblems) == 0 {
		return nil
	}
	return errors.New(strings.Join(m.TableProblems, "; "))
}

func (m *madeTables) print(w io.Writer) {
	for _, folder := range m.Tables {
		printable.Fprintf(w, "%s\n  tables: nccl-otf2 query %s waits\n", paint(w, bold, relativePath(folder)),
			relativePath(filepath.Dir(folder)))
	}
	for _, problem := range m.TableProblems {
		printable.Fprintf(w, "%s %s\n", paint(w, yellow, "!"), oneLine(problem))
	}
}
