// SPDX-License-Identifier: Apache-2.0

// Nccl-otf2-query runs SQL on tables of recorded runs with DuckDB, which is in it. `nccl-otf2 query` starts it and gives it the folders of
// tables as arguments and the SQL on standard input. It is a module and a program of its own, so that neither the tool nor the collector
// beside each rank has DuckDB in it.
package main

import (
	"bufio"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	_ "github.com/duckdb/duckdb-go/v2"
)

// tables are the views that SQL can use; each folder has a file of each, or several, which are its parts.
var tables = []string{"operations", "transfers", "waits", "phases", "runs"}

// configuration keeps DuckDB from fetching code: what is not in the program is not there.
const configuration = "?autoinstall_known_extensions=false&autoload_known_extensions=false&allow_community_extensions=false"

func main() {
	format := flag.String("format", "table", "table, csv, json or parquet")
	output := flag.String("o", "", "file to write (default: standard output)")
	flag.Parse()
	err := run(flag.Args(), os.Stdin, os.Stdout, *format, *output)
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		for i, line := range strings.Split(strings.TrimRight(err.Error(), "\n"), "\n") { // DuckDB points at the place in the SQL
			if i == 0 {
				line = "nccl-otf2-query: " + line
			}
			fmt.Fprintln(os.Stderr, printable(line))
		}
		os.Exit(1)
	}
}

// run asks the tables of some folders what is read from in.
func run(folders []string, in io.Reader, stdout io.Writer, format, output string) error {
	if len(folders) == 0 {
		return errors.New("name the folders of tables; or use nccl-otf2 query")
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	db, err := sql.Open("duckdb", configuration)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // one connection has the views
	for _, t := range tables {
		var files []string
		for _, f := range folders {
			files = append(files, filesOf(f, t)...)
		}
		_, err := db.Exec(fmt.Sprintf("CREATE VIEW %s AS SELECT * FROM read_parquet([%s], union_by_name = true)", t, strings.Join(files, ", ")))
		if err != nil {
			return err
		}
	}
	if format == "parquet" {
		if output == "" {
			return errors.New("--format parquet needs -o FILE")
		}
		_, err := db.Exec(fmt.Sprintf("COPY (%s\n) TO %s (FORMAT parquet, COMPRESSION zstd)", strings.TrimRight(string(text), "; \n\t"), quoted(output)))
		return err
	}
	write, known := writers[format]
	if !known {
		return fmt.Errorf("format %q is none of table, csv, json, parquet", format)
	}
	return to(stdout, output, func(w io.Writer) error {
		columns, rows, err := ask(db, string(text))
		if err != nil {
			return err
		}
		return write(w, columns, rows)
	})
}

// part is the name of a part of a table, behind the table's.
var part = regexp.MustCompile(`^-\d{4}-of-\d{4}\.parquet$`)

// filesOf are a table's files in a folder, quoted for SQL. The tool has looked whether all parts are there.
func filesOf(folder, table string) (files []string) {
	entries, _ := os.ReadDir(folder) // DuckDB says what is missing
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), table); ok && part.MatchString(rest) {
			files = append(files, quoted(filepath.Join(folder, e.Name())))
		}
	}
	if files == nil {
		files = []string{quoted(filepath.Join(folder, table+".parquet"))}
	}
	return files
}

// to calls write with the output.
func to(stdout io.Writer, output string, write func(io.Writer) error) error {
	var f *os.File
	if output != "" {
		var err error
		if f, err = os.Create(output); err != nil {
			return err
		}
		stdout = f
	}
	w := bufio.NewWriter(stdout)
	err := errors.Join(write(w), w.Flush())
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

func ask(db *sql.DB, text string) (columns []string, rows [][]any, err error) {
	result, err := db.Query(text)
	if err != nil {
		return nil, nil, err
	}
	defer result.Close()
	if columns, err = result.Columns(); err != nil {
		return nil, nil, err
	}
	for result.Next() {
		row := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := result.Scan(into...); err != nil {
			return nil, nil, err
		}
		rows = append(rows, slices.Clip(row))
	}
	return columns, rows, result.Err()
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
