// SPDX-License-Identifier: Apache-2.0

package queries

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// engines gives PYTHONPATH with what scripts/engines.sh has installed.
func engines(t *testing.T, names ...string) (path []string) {
	t.Helper()
	for _, name := range names {
		folder, err := filepath.Abs(filepath.Join("../../build/engines", name))
		if err == nil {
			_, err = os.Stat(filepath.Join(folder, "complete"))
		}
		need.NoError(t, name+" for Python (scripts/engines.sh "+name+")", err)
		path = append(path, folder)
	}
	return path
}

// python runs the interpreter in a folder and gives its standard output.
func python(t *testing.T, dir string, path []string, args ...string) []byte {
	t.Helper()
	testkit.Watch(t, ".", "../../python")
	cmd := exec.Command("python3", append([]string{"-B"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+strings.Join(path, ":"), "MPLCONFIGDIR="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		text := stderr.String()
		t.Fatalf("python3 %s: %v: %s", strings.Join(args, " "), err, text[max(0, len(text)-4000):])
	}
	return out
}

// wheel builds the wheel of a copy of the checkout's files, and installs it into a folder.
func wheel(t *testing.T) (folder string) {
	t.Helper()
	tools := engines(t, "python")
	top := t.TempDir()
	for _, name := range []string{"python", "sql"} {
		testkit.Must(t, os.CopyFS(filepath.Join(top, name), os.DirFS(filepath.Join("../..", name))))
	}
	pip := []string{"-m", "pip", "--disable-pip-version-check", "--quiet"}
	python(t, top, tools, append(pip, "wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", "out",
		"./python")...)
	wheels, err := filepath.Glob(filepath.Join(top, "out", "*.whl"))
	testkit.Require(t, err == nil && len(wheels) == 1, "%v: %v", wheels, err)
	if name := filepath.Base(wheels[0]); !strings.HasSuffix(name, "-py3-none-any.whl") {
		t.Errorf("the wheel is not for every Python and machine: %s", name)
	}
	folder = filepath.Join(top, "site")
	python(t, top, nil, append(pip, "install", "--no-index", "--no-deps", "--no-compile", "--target", folder,
		wheels[0])...)
	return folder
}

// What the wheel installs is all that is needed, beside DuckDB and matplotlib for what needs these.
func TestWheel(t *testing.T) {
	site := wheel(t)
	elsewhere := t.TempDir()
	python(t, elsewhere, []string{site}, "-S", "-c",
		"import nccl_otf2\nwith nccl_otf2.phase('step 1'): nccl_otf2.mark('a')")

	dir, net := play(t, "../../testdata/nccl-callbacks/09-straggler-4p", "gpu"),
		play(t, "../../testdata/nccl-callbacks/02-allcoll-4p-net", "net")
	asked := testkit.Value(filepath.Abs("python.py"))(t)
	out := python(t, elsewhere, append(engines(t, "duckdb", "python"), site), asked, built(t, "nccl-otf2"), dir, net)
	var said struct {
		Waits, Bandwidths, Lateness, Matrix []row
		Verdict                             any
		BandwidthLines                      map[string][2][]float64 `json:"bandwidth_lines"`
		WaitingLines                        map[string][2][]float64 `json:"waiting_lines"`
		MatrixCells                         [][]float64             `json:"matrix_cells"`
		Phases                              []string
	}
	decode := json.NewDecoder(bytes.NewReader(out))
	decode.UseNumber()
	testkit.Must(t, decode.Decode(&said))

	want := answers(t, []ask{{[]string{dir}, "waits"}, {[]string{dir}, "bandwidths"}})
	testkit.Same(t, want, [][]row{said.Waits, said.Bandwidths})
	var report struct{ Verdict any }
	decode = json.NewDecoder(bytes.NewReader(tool(t, nil, "report", dir, "--format", "json")))
	decode.UseNumber()
	testkit.Must(t, decode.Decode(&report))
	d := cmp.Diff(report.Verdict, said.Verdict)
	testkit.Check(t, d == "" && report.Verdict != nil, "verdict (-report, +Python):\n%s", d)

	// The pictures have the queries' figures.
	bandwidth := map[string][2][]float64{"AllReduce on train": {{120000}, {said.Bandwidths[0].number("busbw_gbs")}}}
	d = cmp.Diff(bandwidth, said.BandwidthLines)
	testkit.Check(t, d == "" && len(said.Bandwidths) == 1, "bandwidth over size (-query, +picture):\n%s", d)
	var late, shown float64
	for _, r := range said.Lateness {
		late += r.number("caused_ns") / 1e9
	}
	for _, line := range said.WaitingLines {
		for _, seconds := range line[1] {
			shown += seconds
		}
	}
	testkit.Check(t, math.Abs(late-shown) <= 1e-9*late && late != 0,
		"waiting over time: %v s in the picture, %v in the query", shown, late)
	var sent, cells float64
	for _, r := range said.Matrix {
		sent += r.number("bytes")
	}
	for _, r := range said.MatrixCells {
		for _, bytes := range r {
			cells += bytes
		}
	}
	testkit.Check(t, sent == cells && sent != 0, "matrix: %v bytes in the picture, %v in the query", cells, sent)
	if want := []string{"begin step 0", "end", "begin step 1", "end", "begin step 2", "end"}; !slices.Equal(
		said.Phases, want) {
		t.Errorf("phases of an optimizer's steps: %q, want %q", said.Phases, want)
	}
}

// The notebook that the package has as an example runs cell by cell, and says what the queries and the report say.
func TestNotebook(t *testing.T) {
	dir := play(t, "../../testdata/nccl-callbacks/09-straggler-4p", "gpu")
	work := t.TempDir()
	testkit.Must(t, os.Symlink(dir, filepath.Join(work, "exp1")))
	t.Setenv("PATH", filepath.Dir(built(t, "nccl-otf2"))+":"+os.Getenv("PATH"))
	var here [3]string
	for i, name := range []string{"cells.py", "../../python/look_at_a_run.py", "../../python"} {
		here[i] = testkit.Value(filepath.Abs(name))(t)
	}
	out := python(t, work, append(engines(t, "duckdb", "python"), here[2]), here[0], here[1])
	var said struct {
		Printed       []string
		Waits, Latest []row
		Lines         map[string]int
	}
	decode := json.NewDecoder(bytes.NewReader(out))
	decode.UseNumber()
	testkit.Must(t, decode.Decode(&said))
	if want := answers(t, []ask{{[]string{dir}, "waits"}})[0]; cmp.Diff(want, said.Waits) != "" {
		t.Errorf("waits (-as asked, +in the notebook):\n%s", cmp.Diff(want, said.Waits))
	}
	var report struct{ Verdict struct{ Text string } }
	testkit.Must(t, json.Unmarshal(tool(t, nil, "report", dir, "--format", "json"), &report))
	if len(said.Printed) != 6 || report.Verdict.Text == "" || !strings.Contains(said.Printed[1], report.Verdict.Text) {
		t.Errorf("the cells printed %q, the report says %q", said.Printed, report.Verdict.Text)
	}
	testkit.Check(t, len(said.Latest) == 3 && said.Latest[0].number("waited_ms") > 0 &&
		said.Lines["waiting"] != 0 && said.Lines["bandwidth"] != 0, "%d rows of SQL, %v lines in pictures",
		len(said.Latest), said.Lines)
}

// Tables in parts answer as whole ones do.
func TestPartsAnswerAsWholeTables(t *testing.T) {
	dir := play(t, "../../testdata/nccl-callbacks/02-allcoll-4p-net", "net")
	parts := t.TempDir()
	tool(t, nil, "export", "--parquet", dir, "--parts", "3", "-o", parts)
	all := answers(t, append(asks(dir), asks(parts)...))
	n := len(compared)
	testkit.Check(t, cmp.Diff(all[:n], all[n:]) == "", "(-whole, +in parts):\n%s", cmp.Diff(all[:n], all[n:]))
	testkit.Must(t, os.Remove(filepath.Join(parts, "transfers-0002-of-0003.parquet")))
	cmd := exec.Command("python3", "-B", "-c",
		"import nccl_otf2_tables, sys; sys.exit(nccl_otf2_tables.main(['waits', sys.argv[1]]))", parts)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../../python")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "transfers is not whole") {
		t.Errorf("a part is missing: %v: %s", err, out)
	}
}

// A folder is what it is called, whatever an engine takes its name for: the tables are its own.
func TestFoldersOfAnyName(t *testing.T) {
	dir := play(t, "../../testdata/nccl-callbacks/09-straggler-4p", "net")
	top := t.TempDir()
	var all []ask
	for _, name := range []string{
		"run[1]", "a*b", "a?b", "{x,y}", "**", "[!a]", `a\b`, "it's", `a"b`, "a b", "~", "$x", "%20", "run1", "aXb", "x", "b", "a",
	} {
		to := filepath.Join(top, name)
		testkit.Must(t, os.Rename(changed(t, dir, export.RunsFile, func(r *export.RunRow) { r.Run = name }), to))
		all = append(all, ask{[]string{to}, "SELECT run FROM runs"})
	}
	for i, rows := range answers(t, all) {
		want := filepath.Base(all[i].Dirs[0])
		testkit.Check(t, len(rows) == 1 && rows[0].text("run") == want, "%q: %v", want, rows)
	}
}

// In a database that the Python package has opened SQL reads the tables and nothing else; who says so has all that
// DuckDB can.
func TestPythonRefusesHostileStatements(t *testing.T) {
	const program = `import json, os, sys
import duckdb, nccl_otf2, nccl_otf2_tables
dir, secret, target = sys.argv[1:]
hostile = [
    "INSTALL httpfs", "LOAD httpfs", "ATTACH 'https://localhost:1/x.db'", f"ATTACH '{target}'",
	f"COPY waits TO '{target}'", f"EXPLAIN ANALYZE COPY waits TO '{target}'",
    f"COPY waits TO '{dir}/parquet/waits.parquet' (USE_TMP_FILE false)", f"EXPORT DATABASE '{target}'",
	f"PRAGMA import_database('{dir}')", "SELECT 1; SELECT 2",
    f"SELECT * FROM read_csv('{secret}')", f"FROM read_text('{secret}')", f"FROM '{secret}'", f"FROM glob('{dir}/*')",
	f"FROM parquet_metadata('{dir}/parquet/waits.parquet')",
    f"SELECT (SELECT count(*) FROM read_text('{secret}')) FROM waits", "FROM 'https://localhost:1/x.csv'",
	"SET enable_external_access = true", "RESET lock_configuration",
    "PRAGMA enable_profiling = 'json'", f"FROM enable_logging(storage = 'file', storage_path = '{target}')",
	f"CREATE TABLE t AS FROM read_text('{secret}')",
]
said = {}
for text in hostile:
    tables = nccl_otf2.open(dir)
    try:
        said[text] = repr(tables.rows(text))
    except nccl_otf2_tables.TablesError as e:
        said[text] = "refused" if "--unsafe" in str(e) else str(e)
assert nccl_otf2.open(dir).rows("SELECT count(*) AS n FROM waits, range(2)")[0]["n"] > 0
assert nccl_otf2.open(dir, unsafe=True).rows(f"SELECT a FROM read_csv('{secret}')") == [{"a": "secret"}]
assert nccl_otf2.open(dir, session=duckdb.connect()).rows(f"SELECT a FROM '{secret}'") == [{"a": "secret"}]
assert nccl_otf2_tables.main([f"FROM '{secret}'", dir]) == 1 and nccl_otf2_tables.main(["SELEC 1", dir]) == 1
assert nccl_otf2_tables.main([f"FROM '{secret}'", dir, "--unsafe"]) == 0
json.dump(said, sys.stderr)`
	dir, folder := play(t, "../../testdata/nccl-callbacks/09-straggler-4p", "net"), t.TempDir()
	secret, before := filepath.Join(folder, "secret.csv"), testkit.Read(t, filepath.Join(dir, "parquet",
		export.WaitsFile))
	testkit.Write(t, secret, []byte("a,b\nsecret,1\n"))
	testkit.Watch(t, "../../python")
	cmd := exec.Command("python3", "-B", "-c", program, dir, secret, filepath.Join(folder, "made"))
	path := testkit.Value(filepath.Abs("../../python"))(t)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+strings.Join(append(engines(t, "duckdb"), path), ":"), "HOME="+folder)
	cmd.Dir = folder
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	testkit.Require(t, err == nil, "%v: %s", err, stderr.String())
	lines := strings.Split(stderr.String(), "\n")
	var said map[string]string
	testkit.Must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &said))
	for text, how := range said {
		testkit.Equal(t, how, "refused", "%s", text)
	}
	testkit.Check(t, len(said) >= 20 && strings.Contains(string(out), "secret"),
		"%d statements; with --unsafe: %q", len(said), out)
	testkit.Check(t, bytes.Equal(before, testkit.Read(t, filepath.Join(dir, "parquet", export.WaitsFile))),
		"the table is another one")
	entries, err := os.ReadDir(folder)
	testkit.Check(t, err == nil && len(entries) == 1, "%v beside the secret: %v", entries, err)
}
