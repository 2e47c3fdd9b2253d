// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// made makes a folder of tables with some rows of made-up waits.
func made(t *testing.T) string {
	t.Helper()
	db, err := sql.Open("duckdb", configuration)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	dir := filepath.Join(t.TempDir(), "it's a folder")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		_, err := db.Exec(fmt.Sprintf(`COPY (SELECT 'Rank' || chr(27) AS rank_name, 9007199254740993 AS waited_ns, 0.1::DOUBLE AS share, NULL AS peer,
			DATE '2026-01-05' AS week, true AS start_up) TO %s (FORMAT parquet)`, quoted(filepath.Join(dir, table+".parquet"))))
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A table is all of its parts.
func TestParts(t *testing.T) {
	dir := made(t)
	text, err := os.ReadFile(filepath.Join(dir, "operations.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"operations-0001-of-0002.parquet", "operations-0002-of-0002.parquet"} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "operations.parquet")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{dir}, strings.NewReader("SELECT count(*) AS n FROM operations"), &out, "csv", ""); err != nil || out.String() != "n\n2\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}

// Texts take no terminal over and are no formulas in spreadsheets, neither values nor columns' names; numbers stay numbers.
func TestEvilTexts(t *testing.T) {
	const ask = `SELECT '=1+1' || chr(27) AS "@a` + "\x1b" + `", '-7' AS b, -7 AS c, '+x' AS d`
	for form, want := range map[string]string{
		"table": "@a\\x1b    b   c   d\n=1+1\\x1b  -7  -7  +x\n",
		"csv":   "'@a\\x1b,b,c,d\n'=1+1\\x1b,-7,-7,'+x\n",
	} {
		var out bytes.Buffer
		if err := run([]string{made(t)}, strings.NewReader(ask), &out, form, ""); err != nil || out.String() != want {
			t.Errorf("%s: %v: %q, want %q", form, err, out.String(), want)
		}
	}
}

// Results are written in each form, with every digit where programs read them, and no control characters where people do.
func TestForms(t *testing.T) {
	dir := made(t)
	file := filepath.Join(t.TempDir(), "out")
	for form, want := range map[string]string{
		"table": "rank_name  waited_ns         share  peer  week        start_up\nRank\\x1b   9007199254740993  0.1          2026-01-05  true\n",
		"csv":   "rank_name,waited_ns,share,peer,week,start_up\nRank\\x1b,9007199254740993,0.1,,2026-01-05,true\n",
		"json":  "[\n {\"rank_name\": \"Rank\\u001b\", \"waited_ns\": 9007199254740993, \"share\": 0.1, \"peer\": null, \"week\": \"2026-01-05\", \"start_up\": true}\n]\n",
	} {
		var out bytes.Buffer
		if err := run([]string{dir}, strings.NewReader("SELECT * FROM waits;\n"), &out, form, ""); err != nil || out.String() != want {
			t.Errorf("%s: %v: %q, want %q", form, err, out.String(), want)
		}
		if err := run([]string{dir}, strings.NewReader("SELECT * FROM waits"), nil, form, file); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s in a file: %v: %q", form, err, text)
		}
	}
	if err := run([]string{dir, dir}, strings.NewReader("-- both\nSELECT waited_ns FROM waits -- the end"), nil, "parquet", file); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{dir}, strings.NewReader("SELECT count(*) AS n FROM read_parquet("+quoted(file)+")"), &out, "csv", ""); err != nil || out.String() != "n\n2\n" {
		t.Errorf("parquet: %v %q", err, out.String())
	}
}

func TestFaults(t *testing.T) {
	dir := made(t)
	for _, c := range []struct {
		dirs         []string
		text, format string
		says         string
	}{
		{nil, "SELECT 1", "csv", "name the folders"},
		{[]string{t.TempDir()}, "SELECT 1", "csv", "operations.parquet"},
		{[]string{dir}, "SELEC 1", "csv", "SELEC"},
		{[]string{dir}, "SELECT 1", "xml", "none of"},
		{[]string{dir}, "SELECT 1", "parquet", "-o FILE"},
		{[]string{dir}, "LOAD httpfs", "csv", "httpfs"}, // nothing is fetched
	} {
		if err := run(c.dirs, strings.NewReader(c.text), new(bytes.Buffer), c.format, ""); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.text, err, c.says)
		}
	}
}
