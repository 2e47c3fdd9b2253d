// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
)

// fixtures are the tables that the tests of internal/ingest make up, and the rows that they expect of them.
const fixtures = "testdata"

// fixture reads one of the fixtures.
func fixture(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// madeSQLite makes a SQLite file by SQL.
func madeSQLite(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it's 100 % a file?.sqlite")
	db, err := (&sqlite3.SQLiteDriver{}).Open("file:" + strings.NewReplacer("%", "%25", "?", "%3f").Replace(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.(*sqlite3.SQLiteConn).Exec(text, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// rowsIn gives what writeRows writes.
func rowsIn(path, request string) (string, error) {
	var out bytes.Buffer
	err := writeRows(path, strings.NewReader(request), &out)
	return out.String(), err
}

// The rows of tables are those that nccl-otf2 import expects.
func TestRows(t *testing.T) {
	request := fixture(t, "request.json")
	made, err := filepath.Glob(filepath.Join(fixtures, "*.sql"))
	if err != nil || len(made) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, path := range made {
		name := strings.TrimSuffix(filepath.Base(path), ".sql")
		out, err := rowsIn(madeSQLite(t, fixture(t, name+".sql")), request)
		if want := fixture(t, name+".rows"); err != nil || out != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, out, want)
		}
	}
}

// Nothing that a file defines runs, and no value is longer than it may be.
func TestHostileTables(t *testing.T) {
	const request = `[{"table": "StringIds", "columns": ["id", "value"]}, {"table": "rocpd_", "prefix": true, "columns": ["id"]}]`
	const end = `{"end":true}` + "\n"
	const none = `{"columns":["id","value"],"place":0,"table":"StringIds"}` + "\n" + end
	for _, c := range []struct{ name, sql, want string }{
		{"a view", "CREATE TABLE t (id, value); INSERT INTO t VALUES (1, 'a'); CREATE VIEW StringIds AS SELECT * FROM t", end},
		{"a virtual table", "CREATE VIRTUAL TABLE StringIds USING rtree(id, value, other)", end},
		{"a column that is calculated", "CREATE TABLE StringIds (id, value AS (id || 'x')); INSERT INTO StringIds VALUES (1)",
			`{"columns":["id"],"place":0,"table":"StringIds"}` + "\n[1,null]\n" + end},
		{"no rows", "CREATE TABLE StringIds (id, value)", none},
		{"names with quotes", "CREATE TABLE \"rocpd_'\"\"; DROP\" (id); INSERT INTO \"rocpd_'\"\"; DROP\" VALUES (1.5)",
			`{"columns":["id"],"place":1,"table":"rocpd_'\"; DROP"}` + "\n[1.5]\n" + end},
		{"long values", "CREATE TABLE StringIds (id, value); INSERT INTO StringIds VALUES (zeroblob(9), " +
			"replace(hex(zeroblob(5000)), '0', 'x'))", `{"columns":["id","value"],"place":0,"table":"StringIds"}` + "\n" +
			`[{"blob":"AAAAAAAAAAAA"},"` + strings.Repeat("x", mostValue) + "\"]\n" + end},
	} {
		out, err := rowsIn(madeSQLite(t, c.sql), request)
		if err != nil || out != c.want {
			t.Errorf("%s: %v: %s", c.name, err, out)
		}
	}
	path := madeSQLite(t, "CREATE TABLE StringIds (id, value)")
	if err := os.WriteFile(path+"-wal", []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := rowsIn(path, request); err == nil || !strings.Contains(err.Error(), "is still being written") {
		t.Errorf("beside a log: %v", err)
	}
	db, err := openSQLite(madeSQLite(t, "CREATE TABLE StringIds (id, value)"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{"DELETE FROM StringIds", "ATTACH ':memory:' AS x", "PRAGMA trusted_schema = ON",
		"SELECT load_extension('x')", "CREATE TEMP TABLE t (x)", "SELECT hex(zeroblob(9))"} {
		if _, err := db.Exec(text, nil); err == nil {
			t.Errorf("%s: not refused", text)
		}
	}
}

// Damaged files give an error or fewer rows.
func TestDamagedTables(t *testing.T) {
	request := fixture(t, "request.json")
	whole, err := os.ReadFile(madeSQLite(t, fixture(t, "nsight.sql")))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged")
	try := func(b []byte) error {
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := rowsIn(path, request)
		if (err == nil) != strings.HasSuffix(out, "{\"end\":true}\n") {
			t.Errorf("%v, but it ends with %q", err, out[max(0, len(out)-40):])
		}
		return err
	}
	for _, part := range []int{0, 16, 100, 4096, len(whole) / 2, len(whole) - 4096} {
		if err := try(whole[:part]); (err == nil) != (part == 0) {
			t.Errorf("%d of %d bytes: %v", part, len(whole), err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := bytes.Clone(whole)
		for range 1 + random.IntN(20) {
			b[100+random.IntN(len(b)-100)] = byte(random.Uint32())
		}
		_ = try(b) // it returns
	}
	if _, err := rowsIn(filepath.Join(t.TempDir(), "absent"), request); err == nil {
		t.Error("no file, but no error")
	}
	if _, err := rowsIn(path, fmt.Sprint("[")); err == nil {
		t.Error("no request, but no error")
	}
}
