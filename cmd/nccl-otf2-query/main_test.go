// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
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

// asked gives what run writes.
func asked(dirs []string, text, format, output string) (string, error) {
	var out bytes.Buffer
	err := run(dirs, strings.NewReader(text), &out, options{format: format, output: output})
	return out.String(), err
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
	if out, err := asked([]string{dir}, "SELECT count(*) AS n FROM operations", "csv", ""); err != nil ||
		out != "n\n2\n" {
		t.Errorf("%v: %q", err, out)
	}
}

// Texts take no terminal over and are no formulas in spreadsheets, neither values nor columns' names; numbers stay
// numbers.
func TestEvilTexts(t *testing.T) {
	const ask = `SELECT '=1+1' || chr(27) AS "@a` + "\x1b" + `", '-7' AS b, -7 AS c, '+x' AS d`
	for form, want := range map[string]string{
		"table": "@a\\x1b    b   c   d\n=1+1\\x1b  -7  -7  +x\n",
		"csv":   "'@a\\x1b,b,c,d\n'=1+1\\x1b,-7,-7,'+x\n",
	} {
		if out, err := asked([]string{made(t)}, ask, form, ""); err != nil || out != want {
			t.Errorf("%s: %v: %q, want %q", form, err, out, want)
		}
	}
}

// Results are written in each form, with every digit where programs read them, and no control characters where people
// do.
func TestForms(t *testing.T) {
	dir := made(t)
	file := filepath.Join(t.TempDir(), "out")
	for form, want := range map[string]string{
		"table": "rank_name  waited_ns         share  peer  week        start_up\nRank\\x1b   9007199254740993  " +
			"0.1          2026-01-05  true\n",
		"csv": "rank_name,waited_ns,share,peer,week,start_up\nRank\\x1b,9007199254740993,0.1,,2026-01-05,true\n",
		"json": "[\n {\"rank_name\": \"Rank\\u001b\", \"waited_ns\": 9007199254740993, \"share\": 0.1, \"peer\": " +
			"null, \"week\": \"2026-01-05\", \"start_up\": true}\n]\n",
	} {
		if out, err := asked([]string{dir}, "SELECT * FROM waits;\n", form, ""); err != nil || out != want {
			t.Errorf("%s: %v: %q, want %q", form, err, out, want)
		}
		if _, err := asked([]string{dir}, "SELECT * FROM waits", form, file); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s in a file: %v: %q", form, err, text)
		}
	}
	if _, err := asked([]string{dir, dir}, "-- both\nSELECT waited_ns FROM waits -- the end", "parquet",
		file); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || len(text) < 8 || string(text[:4]) != "PAR1" ||
		string(text[len(text)-4:]) != "PAR1" {
		t.Errorf("parquet: %v: %q", err, text)
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
	} {
		if _, err := asked(c.dirs, c.text, c.format, ""); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.text, err, c.says)
		}
	}
}

// A folder is what it is called: what pattern or place DuckDB could take its name for, the tables are its own, and so
// are faults.
func TestFoldersOfAnyName(t *testing.T) {
	top := t.TempDir()
	t.Chdir(top)
	names := []string{"run[1]", "a*b", "a?b", "{x,y}", "**", "[!a]", `back\[1]`, `a\b`, "it's", `a"b`, "new\nline", "a b", "~", "$x", "%20", "file:", "-x",
		"run1", "aXb", "x", "b", "a"}
	db, err := sql.Open("duckdb", configuration)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	write := func(path, name string) {
		if _, err := db.Exec(fmt.Sprintf("COPY (SELECT %s AS name) TO %s (FORMAT parquet)", quoted(name), quoted(path))); err != nil {
			t.Fatal(err)
		}
	}
	plain := t.TempDir()
	for _, name := range names {
		if err := os.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
		for i, table := range tables {
			file := filepath.Join(plain, "x.parquet")
			write(file, name)
			if i == 0 { // in parts
				write(file, name)
				if err := os.Rename(file, filepath.Join(name, table+"-0001-of-0001.parquet")); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Rename(file, filepath.Join(name, table+".parquet")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range names {
		for _, path := range []string{name, filepath.Join(top, name)} {
			for _, unlocked := range []bool{false, true} {
				var out bytes.Buffer
				err := run([]string{path}, strings.NewReader("SELECT name FROM waits UNION ALL SELECT name FROM operations"), &out, options{format: "json", unsafe: unlocked})
				var rows []struct{ Name string }
				if err == nil {
					err = json.Unmarshal(out.Bytes(), &rows)
				}
				if err != nil || len(rows) != 2 || rows[0].Name != name || rows[1].Name != name {
					t.Errorf("%q (unsafe: %v): %v: %q", path, unlocked, err, rows)
				}
			}
		}
		out := name + ".out"
		if _, err := asked([]string{name}, "SELECT name FROM waits", "parquet", out); err != nil {
			t.Errorf("into %q: %v", out, err)
		}
	}
	if err := os.Remove("run[1]/waits.parquet"); err != nil {
		t.Fatal(err)
	}
	if _, err := asked([]string{"run[1]"}, "SELECT 1", "csv", ""); err == nil || !strings.Contains(err.Error(), "run[1]/waits.parquet") || strings.Contains(err.Error(), "/proc/") {
		t.Errorf("a table that is missing: %v", err)
	}
}

// hostile are statements that would read or write what is no table, load code, use the network or lift these limits.
func hostile(dir, file, made string) []string {
	return []string{
		"INSTALL httpfs", "FORCE INSTALL httpfs", "LOAD httpfs", "LOAD " + quoted(made), "INSTALL h3 FROM community", "UPDATE EXTENSIONS",
		"ATTACH 'https://localhost:1/x.db'", "ATTACH " + quoted(made), "ATTACH ':memory:' AS other",
		"COPY waits TO " + quoted(made), "COPY (SELECT 1) TO " + quoted(made) + " (FORMAT csv)", "EXPLAIN ANALYZE COPY waits TO " + quoted(made),
		"COPY waits TO " + quoted(filepath.Join(dir, "waits.parquet")), "COPY waits TO '/proc/self/fd/3/waits.parquet' (USE_TMP_FILE false)",
		"EXPORT DATABASE " + quoted(made), "IMPORT DATABASE " + quoted(dir), "PRAGMA import_database(" + quoted(dir) + ")",
		"SELECT * FROM read_csv(" + quoted(file) + ")", "SELECT * FROM read_text(" + quoted(file) + ")", "SELECT * FROM read_blob(" + quoted(file) + ")",
		"SELECT * FROM read_json(" + quoted(file) + ")", "FROM " + quoted(file+".csv"), "SELECT * FROM sniff_csv(" + quoted(file) + ")",
		"SELECT * FROM glob('/etc/*')", "SELECT * FROM parquet_metadata(" + quoted(filepath.Join(dir, "waits.parquet")) + ")",
		"SELECT * FROM read_parquet(" + quoted(filepath.Join(dir, "*.parquet")) + ")", "SELECT * FROM 'https://localhost:1/x.csv'", "SELECT * FROM 's3://x/y.parquet'",
		"SELECT (SELECT count(*) FROM read_text(" + quoted(file) + ")) FROM waits", "WITH f AS (FROM read_text(" + quoted(file) + ")) FROM f",
		"SET enable_external_access = true", "SET lock_configuration = false", "RESET enable_external_access", "SET GLOBAL allowed_directories = ['/']",
		"SET autoinstall_known_extensions = true", "SET temp_directory = " + quoted(made), "SET home_directory = '/'", "SET log_query_path = " + quoted(made),
		"PRAGMA enable_external_access = true", "PRAGMA temp_directory=" + quoted(made), "PRAGMA enable_profiling = 'json'", "PRAGMA profiling_output=" + quoted(made),
		"CALL enable_logging(storage = 'file', storage_path = " + quoted(made) + ")", "FROM enable_logging(storage = 'file', storage_path = " + quoted(made) + ")",
		"CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')", "CREATE TABLE t AS FROM read_text(" + quoted(file) + ")", "DROP VIEW waits", "CHECKPOINT",
		"PREPARE p AS SELECT 1", "EXECUTE p", "SELECT 1; COPY waits TO " + quoted(made), "SELECT 1) TO " + quoted(made) + "; SELECT (1",
	}
}

// What SQL could do beside reading the tables is refused, and the line says how it can be had; nothing is written.
func TestHostileStatements(t *testing.T) {
	dir, folder := made(t), t.TempDir()
	file, target := filepath.Join(folder, "secret"), filepath.Join(folder, "made")
	if err := os.WriteFile(file, []byte("a,b\nsecret,1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	t.Setenv("HOME", folder)
	before, err := os.ReadFile(filepath.Join(dir, "waits.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range hostile(dir, file, target) {
		for _, format := range []string{"csv", "parquet"} {
			out, err := asked([]string{dir}, text, format, filepath.Join(folder, "out"))
			if err == nil || strings.Contains(out, "secret") {
				t.Errorf("%s: not refused: %q", text, out)
			} else if line := err.Error(); !strings.Contains(line, "--unsafe") && !strings.Contains(line, "Parser Error") || strings.Contains(line, "Could not") {
				t.Errorf("%s: %s", text, line)
			}
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("%v beside the secret: %v", entries, err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "waits.parquet")); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the table is another one: %v", err)
	}
}

// Who asks for it has all that DuckDB can, and what only reads needs no asking.
func TestUnsafe(t *testing.T) {
	dir, folder := made(t), t.TempDir()
	file, target := filepath.Join(folder, "notes.csv"), filepath.Join(folder, "made")
	if err := os.WriteFile(file, []byte("a,b\nx,1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	unlocked := options{format: "csv", unsafe: true}
	for text, want := range map[string]string{
		"SELECT a FROM read_csv(" + quoted(file) + ")":                                             "a\nx\n",
		"SELECT b FROM " + quoted(file):                                                            "b\n1\n",
		"SET threads = 1; CREATE TEMP TABLE t AS FROM waits; SELECT count(*) AS n FROM t":          "n\n1\n",
		"ATTACH ':memory:' AS o; CREATE TABLE o.t (x INT); SELECT count(*) AS n FROM o.t":          "n\n0\n",
		"COPY waits TO " + quoted(target) + "; SELECT share FROM read_csv(" + quoted(target) + ")": "share\n0.1\n",
	} {
		var out bytes.Buffer
		if err := run([]string{dir}, strings.NewReader(text), &out, unlocked); err != nil || out.String() != want {
			t.Errorf("%s: %v: %q, want %q", text, err, out.String(), want)
		}
	}
	for _, text := range []string{
		"FROM waits", "WITH w AS (FROM waits) SELECT * FROM w", "DESCRIBE waits", "SUMMARIZE waits", "SHOW TABLES", "VALUES (1)", "/* ; */ SELECT 1;",
		"PIVOT waits ON share IN (0.1) USING sum(waited_ns)", "SELECT w.share FROM waits w JOIN runs USING (share) WINDOW x AS () ORDER BY ALL",
	} {
		if _, err := asked([]string{dir}, text, "csv", ""); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
