// SPDX-License-Identifier: Apache-2.0

// Nccl-otf2-query runs SQL on tables of recorded runs with the DuckDB that is built into it. `nccl-otf2 query` starts
// it with the folders of tables as arguments and the SQL on standard input. `nccl-otf2 import` starts it to read SQLite
// files. It is a separate module and program, so that neither the tool nor the collector of each rank contains DuckDB
// or SQLite.
package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/duckdb/duckdb-go/v2"
)

// tables lists the views that SQL can use. Each folder has one file for each, or several parts.
var tables = []string{"operations", "transfers", "waits", "phases", "runs"}

// configuration keeps DuckDB from downloading extensions: only what is built in is available.
const configuration = "?autoinstall_known_extensions=false&autoload_known_extensions=false"

// locked are the settings that restrict SQL to the given files, and that SQL cannot change.
const locked = "SET allow_persistent_secrets = false; SET enable_external_access = false; SET lock_configuration = true"

// unsafeHint follows the reason why SQL was refused.
const unsafeHint = "a query reads the tables and nothing else; with --unsafe it may read and write files, load " +
	"extensions and use the network"

func main() {
	var o options
	flag.StringVar(&o.format, "format", "table", "table, csv, json or parquet")
	flag.StringVar(&o.output, "o", "", "file to write (default: standard output)")
	flag.BoolVar(&o.unsafe, "unsafe", false,
		"let SQL do all that DuckDB can: read and write files, load extensions, use the network")
	rows := flag.String("rows", "",
		"write the rows of tables of this SQLite `file` as lines of JSON; for nccl-otf2 import")
	flag.Parse()
	var err error
	if *rows != "" {
		err = writeRows(*rows, os.Stdin, os.Stdout)
	} else {
		err = run(flag.Args(), os.Stdin, os.Stdout, o)
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		for i, line := range strings.Split(strings.TrimRight(err.Error(), "\n"),
			"\n") { // DuckDB marks the position in the SQL
			if i == 0 {
				line = "nccl-otf2-query: " + line
			}
			fmt.Fprintln(os.Stderr, printable(line))
		}
		os.Exit(1)
	}
}

type options struct {
	format, output string
	unsafe         bool // do not restrict the SQL
}

// run runs the SQL read from in on the tables of the named folders.
func run(names []string, in io.Reader, stdout io.Writer, o options) error {
	if len(names) == 0 {
		return errors.New("name the folders of tables; or use nccl-otf2 query")
	}
	write, known := writers[o.format]
	switch {
	case !known && o.format != "parquet":
		return fmt.Errorf("format %q is none of table, csv, json, parquet", o.format)
	case !known && o.output == "":
		return errors.New("--format parquet needs -o FILE")
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var folders opened
	defer folders.close()
	if err := folders.open(names); err != nil {
		return err
	}
	var parquet *target
	if !known {
		if parquet, err = openTarget(o.output); err != nil {
			return err
		}
		defer func() { parquet.close(err) }()
	}
	err = query(folders, string(text), parquet, o, func(db *sql.DB) error {
		columns, rows, err := ask(db, string(text))
		if err != nil {
			return err
		}
		return to(stdout, o.output, func(w io.Writer) error { return write(w, columns, rows) })
	})
	if !o.unsafe {
		err = explained(err)
	}
	return folders.named(err, parquet)
}

// query creates the views, checks whether the SQL may be run, and runs it: into a Parquet file, or with the function
// answer.
func query(folders opened, text string, parquet *target, o options, answer func(*sql.DB) error) error {
	db, err := sql.Open("duckdb", configuration)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // views belong to one connection
	var views, reached []string
	for _, t := range tables {
		files := folders.files(t)
		views = append(views, fmt.Sprintf("CREATE VIEW %s AS SELECT * FROM read_parquet([%s], union_by_name = true)", t,
			strings.Join(files, ", ")))
		reached = append(reached, files...)
	}
	if parquet != nil {
		reached = append(reached, quoted(parquet.path()))
	}
	if !o.unsafe {
		if _, err := db.Exec("SET allowed_paths = [" + strings.Join(reached, ", ") + "]; " + locked); err != nil {
			return err
		}
	}
	for _, view := range views {
		if _, err := db.Exec(view); err != nil {
			return err
		}
	}
	if !o.unsafe {
		if err := refuse(db, text); err != nil {
			return err
		}
	}
	if parquet == nil {
		return answer(db)
	}
	// The SQL in the brackets was parsed by itself before, or is unrestricted: closing the bracket early gains nothing.
	_, err = db.Exec(fmt.Sprintf("COPY (%s\n) TO %s (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)",
		strings.TrimRight(text, "; \n\t"), quoted(parquet.path())))
	return err
}

// functions lists the table functions that SQL may call, because they read only their arguments. Others, such as glob
// and parquet_metadata, access files even though the settings lock DuckDB.
var functions = []string{
	"range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "pragma_table_info",
	"pragma_version",
	"duckdb_tables", "duckdb_views", "duckdb_columns", "duckdb_functions", "duckdb_types", "duckdb_settings",
}

// refuse returns an error unless the SQL may be run: it must be one SELECT that calls only permitted table functions.
// The settings that lock DuckDB do not distinguish reading from writing, so another statement could overwrite the
// tables.
func refuse(db *sql.DB, text string) error {
	var tree string
	if err := db.QueryRow("SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", text).Scan(&tree); err != nil {
		return err
	}
	var parsed struct {
		Kind       string `json:"error_type"`
		Statements []any  `json:"statements"`
	}
	if err := json.Unmarshal([]byte(tree), &parsed); err != nil {
		return err
	}
	switch {
	case parsed.Kind == "parser":
		return nil // DuckDB's own error when it runs the SQL is better
	case parsed.Kind != "":
		return errors.New("this is more than a SELECT: " + unsafeHint)
	case len(parsed.Statements) != 1:
		return fmt.Errorf("these are %d statements, and a query is one; --unsafe allows several",
			len(parsed.Statements))
	}
	if name := called(parsed.Statements[0]); name != "" {
		return fmt.Errorf("%s() is none of the functions of tables that a query may call: %s", name, unsafeHint)
	}
	return nil
}

// called returns the name of a table function in a tree of SQL that may not be called; "" if there is none.
func called(tree any) string {
	switch node := tree.(type) {
	case []any:
		for _, child := range node {
			if name := called(child); name != "" {
				return name
			}
		}
	case map[string]any:
		if function, is := node["function"].(map[string]any); is && node["type"] == "TABLE_FUNCTION" {
			if name := strings.ToLower(fmt.Sprint(function["function_name"])); !slices.Contains(functions, name) {
				return name
			}
		}
		for _, child := range node {
			if name := called(child); name != "" {
				return name
			}
		}
	}
	return ""
}

// explained adds, to an error caused by DuckDB's settings, how to avoid the restriction.
func explained(err error) error {
	fault := new(duckdb.Error)
	if errors.As(err, &fault) && slices.Contains(
		[]duckdb.ErrorType{duckdb.ErrorTypePermission, duckdb.ErrorTypeMissingExtension, duckdb.ErrorTypeAutoLoad},
		fault.Type) {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("%s: %s", line, unsafeHint)
	}
	return err
}

// opened holds open folders of tables. DuckDB accesses them as /proc/self/fd/N: in a folder's own path it would
// interpret "*", "?", "[" and "~", and read files of other folders.
type opened []*os.File

func (o *opened) open(names []string) error {
	for _, name := range names {
		dir, err := os.Open(name)
		if err != nil {
			return err
		}
		*o = append(*o, dir)
	}
	return nil
}

func (o opened) close() {
	for _, dir := range o {
		dir.Close() // read only: errors do not matter
	}
}

func pathOf(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// named replaces the /proc paths in an error with the paths that the user knows.
func (o opened) named(err error, parquet *target) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, dir := range o {
		text = strings.ReplaceAll(text, pathOf(dir)+"/", filepath.Clean(dir.Name())+"/")
	}
	if parquet != nil {
		text = strings.ReplaceAll(text, `"`+parquet.path()+`"`, `"`+parquet.file.Name()+`"`)
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// part matches what follows the table's name in the file name of a part.
var part = regexp.MustCompile(`^-\d{4}-of-\d{4}\.parquet$`)

// files returns a table's files in all folders, quoted for SQL. The tool has checked that no part is missing.
func (o opened) files(table string) (files []string) {
	for _, dir := range o {
		entries, _ := os.ReadDir(pathOf(dir)) // DuckDB reports what is missing
		before := len(files)
		for _, e := range entries {
			if rest, ok := strings.CutPrefix(e.Name(), table); ok && part.MatchString(rest) {
				files = append(files, quoted(pathOf(dir)+"/"+e.Name()))
			}
		}
		if len(files) == before {
			files = append(files, quoted(pathOf(dir)+"/"+table+".parquet"))
		}
	}
	return files
}

// target is an output file of DuckDB.
type target struct {
	file *os.File
	made bool // it did not exist before
}

func openTarget(name string) (*target, error) {
	_, err := os.Stat(name)
	made := errors.Is(err, fs.ErrNotExist)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666) // DuckDB truncates it if the SQL is valid
	return &target{file, made}, err
}

func (t *target) path() string { return pathOf(t.file) }

// close closes the file, and removes it if it is new and was not written because of err.
func (t *target) close(err error) {
	t.file.Close() // DuckDB wrote through its own descriptor
	if err != nil && t.made {
		os.Remove(t.file.Name())
	}
}

// to calls write with the output: the named file, or standard output.
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
