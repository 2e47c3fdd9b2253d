// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// wanted is a table of a SQLite file whose rows are asked for. With Prefix, it is each table whose name begins with
// Name.
type wanted struct {
	Name    string   `json:"table"`
	Prefix  bool     `json:"prefix"`
	Columns []string `json:"columns"`
}

// Bounds of what is read of a SQLite file, which may be made to do harm: bytes of a value that are passed on, bytes of
// a value in the file, tables.
const (
	mostValue  = 4096
	mostStored = 64 << 20
	mostTables = 4096
)

// writeRows reads which tables are wanted, as a list in JSON, and writes their rows as lines of JSON: for each table
// there is, an object with its name, its place in the list and the columns that it has, then a list for each row. The
// last line is {"end":true}. Nothing but tables is read: SQL in the file, as in views, triggers, generated columns and
// virtual tables, never runs.
func writeRows(path string, in io.Reader, out io.Writer) (err error) {
	var list []wanted
	if err := json.NewDecoder(io.LimitReader(in, mostStored)).Decode(&list); err != nil {
		return err
	}
	db, err := openSQLite(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tables, err := tablesOf(db)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	w := bufio.NewWriterSize(out, 256<<10)
	for i, want := range list {
		for _, table := range tables {
			if table != want.Name && !(want.Prefix && strings.HasPrefix(table, want.Name)) {
				continue
			}
			if err := writeTableRows(db, table, i, want.Columns, w); err != nil {
				return errors.Join(fmt.Errorf("%s: table %s: %w", path, table, err), w.Flush())
			}
		}
	}
	fmt.Fprintln(w, `{"end":true}`)
	return w.Flush()
}

// openSQLite opens a SQLite file for reading alone.
func openSQLite(path string) (*sqlite3.SQLiteConn, error) {
	for _, suffix := range []string{"-wal", "-journal"} {
		if info, err := os.Stat(path + suffix); err == nil && info.Size() > 0 {
			return nil, fmt.Errorf("%s%s is not empty: %s is still being written, or was not closed; export it again",
				path, suffix, path)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&immutable=1&_query_only=true"}
	opened, err := (&sqlite3.SQLiteDriver{}).Open(name.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	db := opened.(*sqlite3.SQLiteConn)
	db.SetLimit(sqlite3.SQLITE_LIMIT_LENGTH, mostStored)
	db.SetLimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
	for _, setting := range []string{"trusted_schema = OFF", "cell_size_check = ON", "temp_store = MEMORY"} {
		if _, err := db.Exec("PRAGMA "+setting, nil); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	db.RegisterAuthorizer(func(action int, first, second, third string) int {
		switch {
		case action == sqlite3.SQLITE_SELECT, action == sqlite3.SQLITE_READ,
			action == sqlite3.SQLITE_FUNCTION && (second == "substr" || second == "typeof"),
			action == sqlite3.SQLITE_PRAGMA && first == "table_info":
			return sqlite3.SQLITE_OK
		}
		return sqlite3.SQLITE_DENY
	})
	return db, nil
}

// tablesOf returns the names of the tables that have rows of their own: not of views and virtual tables.
func tablesOf(db *sqlite3.SQLiteConn) (names []string, err error) {
	const text = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
	err = eachRow(db, text, func(row []driver.Value) error {
		if name, is := row[0].(string); is {
			names = append(names, name)
		}
		if len(names) > mostTables {
			return fmt.Errorf("it has more than %d tables", mostTables)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// writeTableRows writes the rows of a table; columns that it does not have are null.
func writeTableRows(db *sqlite3.SQLiteConn, table string, place int, columns []string, w *bufio.Writer) error {
	have := []string{}
	err := eachRow(db, "PRAGMA table_info("+identifier(table)+")", func(row []driver.Value) error {
		if name, is := row[1].(string); is && slices.Contains(columns, name) {
			have = append(have, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	encode := json.NewEncoder(w)
	if err := encode.Encode(map[string]any{"table": table, "place": place, "columns": have}); err != nil {
		return err
	}
	picks := make([]string, len(columns))
	for i, name := range columns {
		picks[i] = "NULL"
		if column := identifier(name); slices.Contains(have, name) {
			picks[i] = fmt.Sprintf("CASE WHEN typeof(%s) IN ('text', 'blob') THEN substr(%[1]s, 1, %d) ELSE %[1]s END",
				column, mostValue)
		}
	}
	return eachRow(db, "SELECT "+strings.Join(picks, ", ")+" FROM "+identifier(table), func(row []driver.Value) error {
		for i, v := range row {
			if blob, is := v.([]byte); is {
				row[i] = map[string][]byte{"blob": blob} // in base64
			}
			row[i] = plain(row[i])
		}
		return encode.Encode(row)
	})
}

// eachRow calls a function with each row of a query; the row is valid until it returns.
func eachRow(db *sqlite3.SQLiteConn, query string, take func([]driver.Value) error) (err error) {
	rows, err := db.QueryContext(context.Background(), query, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := take(row); err != nil {
			return err
		}
	}
}

// identifier is a name as SQL has it.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
