// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os/exec"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/installed"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// A TableReader reads tables of SQLite files.
type TableReader interface {
	// OpenTables gives the rows of tables as installed.QueryProgram writes them; request says which, in the form that
	// it reads.
	// Closing what it gives returns what failed in the reading.
	OpenTables(path string, request []byte) (io.ReadCloser, error)
}

// programTables are read by QueryProgram, beside the tool.
type programTables struct{}

// runningProgram is what QueryProgram writes.
type runningProgram struct {
	io.Reader
	program *exec.Cmd
	said    *bytes.Buffer
}

// OpenTables implements TableReader.
func (programTables) OpenTables(path string, request []byte) (io.ReadCloser, error) {
	program, err := installed.FindQueryProgram("SQLite: build it with `make query` and copy it there")
	if err != nil {
		return nil, err
	}
	r := &runningProgram{program: exec.Command(program, "-rows", path), said: new(bytes.Buffer)}
	r.program.Stdin, r.program.Stderr = bytes.NewReader(request), r.said
	if r.Reader, err = r.program.StdoutPipe(); err != nil {
		return nil, err
	}
	return r, r.program.Start()
}

// Close ends the program. What it writes beyond what was read is lost.
func (r *runningProgram) Close() error {
	if closer, is := r.Reader.(io.Closer); is {
		_ = closer.Close() // its end is what counts
	}
	err := r.program.Wait()
	if text, _, _ := strings.Cut(strings.TrimSpace(r.said.String()), "\n"); err != nil && text != "" {
		return errors.New(strings.TrimPrefix(text, installed.QueryProgram+": "))
	}
	return err
}

// sqliteMagic begins SQLite files.
const sqliteMagic = "SQLite format 3\x00"

// isSQLite reports whether a file begins like one of SQLite.
func isSQLite(path string) bool {
	begin := make([]byte, len(sqliteMagic))
	n, _, err := regular.ReadAt(path, begin, 0)
	return err == nil && string(begin[:n]) == sqliteMagic
}

// wantedTable is a table that is asked for; with Prefix, each table whose name begins so.
type wantedTable struct {
	Name    string   `json:"table"`
	Prefix  bool     `json:"prefix"`
	Columns []string `json:"columns"`
}

// tableRow is a row of a table, or, without cells, the beginning of the table.
type tableRow struct {
	table string
	place int      // in the list of wanted tables
	has   []string // columns
	cells []cell   // in the order of the wanted columns
}

// cell is a value of a row.
type cell struct {
	known  bool
	number int64
	text   string
	blob   []byte
}

// UnmarshalJSON reads what QueryProgram writes. Numbers with fractions are not known.
func (c *cell) UnmarshalJSON(b []byte) (err error) {
	*c = cell{known: true}
	switch b[0] {
	case '"':
		return json.Unmarshal(b, &c.text)
	case '{':
		var value struct{ Blob []byte }
		err = json.Unmarshal(b, &value)
		c.blob = value.Blob
		return err
	}
	c.known = json.Unmarshal(b, &c.number) == nil && b[0] != 'n'
	return nil
}

// maxRowLine bounds a line of QueryProgram's, whose values have at most 4096 bytes each.
const maxRowLine = 1 << 20

// readTables reads tables of a SQLite file row by row.
func (im *importer) readTables(path string, wanted []wantedTable) iter.Seq2[*tableRow, error] {
	return func(yield func(*tableRow, error) bool) {
		request, err := json.Marshal(wanted)
		if err != nil {
			yield(nil, err)
			return
		}
		var tables TableReader = programTables{}
		if im.opts.Tables != nil {
			tables = im.opts.Tables
		}
		in, err := tables.OpenTables(path, request)
		if err != nil {
			yield(nil, err)
			return
		}
		whole, err := eachTableRow(in, wanted, func(row *tableRow) bool { return yield(row, nil) })
		switch closed := in.Close(); {
		case err == errStopped:
		case closed != nil:
			yield(nil, closed)
		case err != nil:
			yield(nil, err)
		case !whole:
			yield(nil, errors.New("its tables end in the middle"))
		}
	}
}

var errStopped = errors.New("stopped")

// eachTableRow parses rows. whole says whether they end as they should.
func eachTableRow(in io.Reader, wanted []wantedTable, take func(*tableRow) bool) (whole bool, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRowLine)
	row := &tableRow{place: -1}
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte("{")) {
			var begin struct {
				End     bool     `json:"end"`
				Table   string   `json:"table"`
				Place   int      `json:"place"`
				Columns []string `json:"columns"`
			}
			if err := json.Unmarshal(lines.Bytes(), &begin); err != nil {
				return false, err
			}
			if begin.End {
				return true, nil
			}
			if begin.Place < 0 || begin.Place >= len(wanted) {
				return false, fmt.Errorf("table %q was not asked for", begin.Table)
			}
			row = &tableRow{table: begin.Table, place: begin.Place, has: begin.Columns}
		} else {
			row.cells = row.cells[:0]
			if err := json.Unmarshal(lines.Bytes(), &row.cells); err != nil {
				return false, err
			}
			if row.place < 0 || len(row.cells) != len(wanted[row.place].Columns) {
				return false, errors.New("a row in it has other columns than were asked for")
			}
		}
		if !take(row) {
			return false, errStopped
		}
	}
	return false, lines.Err()
}

// sqliteFormat is a profiler's form of tables.
type sqliteFormat interface {
	addRow(*tableRow) error
	closeFile(*importer) ([]*tracedProcess, error)
}

// readSQLite reads a SQLite file of a profiler. Its processes are written when all files have been read.
func (im *importer) readSQLite(path string) error {
	im.result.Lines++
	wanted := slices.Concat(nsightTables, rocpdTables)
	nsight, rocpd := newNsightFile(path), newRocpdFile(path)
	formats := []sqliteFormat{nsight, rocpd}
	seen := make([]bool, len(formats))
	var failed error
	for row, err := range im.readTables(path, wanted) {
		if err != nil {
			failed = err
			break
		}
		own, which := *row, 0
		if own.place >= len(nsightTables) {
			own.place, which = own.place-len(nsightTables), 1
		}
		seen[which] = true
		if failed = formats[which].addRow(&own); failed != nil {
			break
		}
	}
	if errors.Is(failed, installed.ErrNoQueryProgram) {
		return fmt.Errorf("%s is a SQLite file: %w", path, failed)
	}
	for i, format := range formats {
		if failed != nil || !seen[i] {
			continue
		}
		processes, err := format.closeFile(im)
		im.traced = append(im.traced, processes...)
		im.addProfiles(path, err)
		return nil
	}
	im.addProfiles(path, cmp.Or(failed, errors.New("a SQLite file, but neither one that `nsys export --type sqlite` "+
		"writes nor one of `rocprofv3 --output-format rocpd`")))
	return nil
}

// hasColumn reports whether a table that begins has a column.
func (r *tableRow) hasColumn(name string) bool { return slices.Contains(r.has, name) }
