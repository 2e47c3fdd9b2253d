// SPDX-License-Identifier: Apache-2.0

package queries

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/sql"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

var (
	engine = flag.String("engine", "duckdb", "what runs the queries: duckdb or spark")
	many   = flag.String("ranks", "64", "numbers of ranks of made-up jobs, such as 64,1000")
)

// built is a file that `make build` makes.
func built(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../build", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	testkit.Require(t, err == nil, "%v: run `make build` first", err)
	return path
}

// tool runs the tool and gives its standard output.
func tool(t *testing.T, env []string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(built(t, "nccl-otf2"), args...)
	cmd.Env = append(os.Environ(), env...)
	out := testkit.Output(t, cmd)
	return out
}

// recordings are the folders of all recordings.
func recordings(t *testing.T) []string {
	t.Helper()
	var all []string
	for folder, least := range map[string]int{"nccl-callbacks": 12, "nccl-causes": 15} {
		files, err := filepath.Glob(filepath.Join("../../testdata", folder, "*/run.json"))
		testkit.Require(t, err == nil && len(files) >= least, "%d recordings in %s: %v", len(files), folder, err)
		for _, f := range files {
			all = append(all, filepath.Dir(f))
		}
	}
	slices.Sort(all)
	return all
}

// play plays a recording, and writes its tables.
func play(t *testing.T, recording string, events string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), filepath.Base(recording))
	tool(t, []string{"NCCL_OTF2_EVENTS=" + events}, "replay", recording, "--clock", "recorded", "--dir", dir)
	tool(t, nil, "export", "--parquet", dir)
	return dir
}

// reports reads the report of an archive.
func reports(t *testing.T, dir string) *reported {
	t.Helper()
	r := new(reported)
	form := func(flags ...string) []byte {
		return tool(t, nil, append([]string{"report", dir, "--format", "json"}, flags...)...)
	}
	testkit.Must(t, r.read(form(), form("--waits"), form("--matrix")))
	return r
}

// ask is a query on some folders of tables.
type ask struct {
	Dirs  []string `json:"dirs"`
	Query string   `json:"query"`
}

// session is a run.py: one session of the engine, which all tests ask. Those of Spark are three virtual machines.
type session struct {
	cmd    *exec.Cmd
	asks   io.WriteCloser
	rows   *json.Decoder
	folder string // of what the engine and its log need
}

var opened *session

func TestMain(m *testing.M) {
	code := m.Run()
	if opened != nil {
		_ = opened.asks.Close()
		_ = opened.cmd.Wait()
		_ = os.RemoveAll(opened.folder)
	}
	os.Exit(code)
}

func openSession(t *testing.T) *session {
	t.Helper()
	packages, err := filepath.Abs(filepath.Join("../../build/engines", *engine))
	if err == nil {
		_, err = os.Stat(filepath.Join(packages, "complete"))
	}
	need.NoError(t, *engine+" for Python (make engines, make spark-test)", err)
	if opened != nil {
		return opened
	}
	s := &session{cmd: exec.Command("python3", "-B", "run.py", *engine)}
	s.folder = testkit.Value(os.MkdirTemp("", "asked-"))(t)
	s.cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "SPARK_LOCAL_DIRS="+s.folder)
	log := testkit.Value(os.Create(filepath.Join(s.folder, "log")))(t)
	defer log.Close()
	s.cmd.Stderr = log
	s.asks = testkit.Value(s.cmd.StdinPipe())(t)
	s.rows = json.NewDecoder(testkit.Value(s.cmd.StdoutPipe())(t))
	s.rows.UseNumber()
	testkit.Must(t, s.cmd.Start())
	opened = s
	return s
}

// answers runs queries on the engine.
func answers(t *testing.T, all []ask) [][]row {
	t.Helper()
	testkit.Watch(t, ".")
	s := openSession(t)
	var results [][]row
	err := json.NewEncoder(s.asks).Encode(all)
	if err == nil {
		err = s.rows.Decode(&results)
	}
	if err != nil || len(results) != len(all) {
		opened = nil // the next test has a session of its own
		_ = s.asks.Close()
		text := testkit.Read(t, filepath.Join(s.folder, "log"))
		t.Fatalf("%s: %d results of %d queries: %v: %s", *engine, len(results), len(all), err,
			text[:min(len(text), 4000)])
	}
	return results
}

// asks are the compared queries on folders, the tables of all as one.
func asks(dirs ...string) (all []ask) {
	for _, c := range compared {
		all = append(all, ask{dirs, c.query})
	}
	return all
}

// byQuery brings the results of asks under the queries' names, those of one run if it is named.
func byQuery(results [][]row, run string) map[string][]row {
	of := make(map[string][]row)
	for i, c := range compared {
		of[c.query] = slices.DeleteFunc(slices.Clone(results[i]),
			func(r row) bool { return run != "" && r.text("run") != run })
	}
	return of
}

// runOf is the name of the run that tables are of.
func runOf(t *testing.T, dir string) string {
	t.Helper()
	rows, err := parquet.ReadFile[export.RunRow](filepath.Join(dir, "parquet", export.RunsFile))
	testkit.Require(t, err == nil && len(rows) == 1, "%d runs: %v", len(rows), err)
	return rows[0].Run
}

// Of every recording the queries have the report's figures.
func TestQueriesAgreeWithReports(t *testing.T) {
	var dirs []string
	for i, rec := range recordings(t) {
		dirs = append(dirs, play(t, rec, []string{"net", "gpu", "all"}[i%3]))
	}
	dirs = append(dirs, withPhases(t))
	results := answers(t, append(asks(dirs...), ask{dirs, "weeks"}))
	runs := make(map[string]bool)
	waited, total := 0.0, 0
	for i, dir := range dirs {
		r, run := reports(t, dir), runOf(t, dir)
		found, n := disagreements(r, byQuery(results, run))
		for _, d := range found {
			t.Errorf("%s: %s", filepath.Base(dir), d)
		}
		if total += n; n < 20 {
			t.Errorf("%s: %d figures are compared", filepath.Base(dir), n)
		}
		runs[run] = true
		waited += float64(r.States.Total.Waited)
		testkit.Check(t, i != len(dirs)-1 || len(r.Phases) == 2, "%d phases in the run that has them", len(r.Phases))
	}
	var n, sum float64
	for _, w := range results[len(compared)] {
		n += w.number("runs")
		sum += w.number("waited_ns")
	}
	testkit.Check(t, len(runs) == len(dirs) && n == float64(len(dirs)) && sum == waited,
		"%d runs of %d recordings; over the weeks %v runs that waited %v ns, the reports have %v", len(runs), len(dirs),
		n, sum, waited)
	t.Logf("%d figures of %d runs on %s", total, len(dirs), *engine)
}

// Of made-up training jobs of many ranks, one of which is late, the queries have the report's figures.
func TestQueriesOfManyRanks(t *testing.T) {
	for number := range strings.SplitSeq(*many, ",") {
		ranks := testkit.Value(strconv.Atoi(number))(t)
		dir := t.TempDir()
		jobtest.WriteTraining(t, dir, ranks, ranks/2+3)
		tool(t, nil, "unify", dir, "--tables")
		found, n := disagreements(reports(t, dir), byQuery(answers(t, asks(dir)), ""))
		for _, d := range found[:min(len(found), 20)] {
			t.Errorf("%d ranks: %s", ranks, d)
		}
		testkit.Check(t, n >= 10*ranks, "%d ranks: %d figures are compared", ranks, n)
		t.Logf("%d figures of %d ranks on %s", n, ranks, *engine)
	}
}

// withPhases makes up a run whose ranks go through phases, and writes its tables.
func withPhases(t *testing.T) (dir string) {
	t.Helper()
	const begin, us = shardtest.Epoch + 1_000_000, 1000
	anchor := jobtest.Make(t, 3, 3, func(r int, p *shardtest.Process) {
		p.AllReduce(p.World(), begin+10*us, begin+20*us, 100)
		thread := p.Writer(0)
		phase := func(name string) otf2.RegionRef {
			region := p.Region(name, regions.GroupApplication, otf2.RegionRoleCode)
			p.Shard.Regions[region].Paradigm = otf2.ParadigmUser
			return region
		}
		for step := range 5 {
			at := otf2.Timestamp(begin + 100*us + step*1000*us)
			testkit.Must(t, thread.Enter(at, nil, phase(fmt.Sprint("step ", step))))
			testkit.Must(t, thread.Enter(at+100*us, nil, phase("forward")))
			p.Call("ncclAllReduce", uint64(at+110*us), uint64(at+120*us))
			testkit.Must(t, thread.Leave(at+otf2.Timestamp((300+r*50+step*7)*us), nil, phase("forward")))
			testkit.Must(t, thread.Leave(at+900*us, nil, phase(fmt.Sprint("step ", step))))
		}
	})
	dir = filepath.Dir(anchor)
	tool(t, nil, "export", "--parquet", dir)
	return dir
}

// changed copies a folder of tables with a row of one of them changed by hand.
func changed[T any](t *testing.T, dir, file string, change func(*T)) string {
	t.Helper()
	to := t.TempDir()
	testkit.Must(t, os.CopyFS(to, os.DirFS(filepath.Join(dir, "parquet"))))
	path := filepath.Join(to, file)
	rows, err := parquet.ReadFile[T](path)
	testkit.Require(t, err == nil && len(rows) != 0, "%s: %d rows: %v", file, len(rows), err)
	change(&rows[len(rows)-1])
	testkit.Must(t, os.Remove(path))
	testkit.Must(t, parquet.WriteFile(path, rows))
	return to
}

// The slow link of a labeled recording is the first of slow-links; of two runs compare has the medians of both, and
// weeks adds them up.
func TestQueriesOfLinksAndRuns(t *testing.T) {
	slow, other := play(t, "../../testdata/nccl-causes/c09-link-slow-4p", "all"),
		play(t, "../../testdata/nccl-causes/c15-gpu-slow-3p", "all")
	again := play(t, "../../testdata/nccl-causes/c09-link-slow-4p", "all")
	// as if it were a day later
	again = changed(t, again, export.RunsFile, func(r *export.RunRow) { r.Begin += 86_400_000_000_000 })
	results := answers(t, []ask{
		{[]string{slow}, "slow-links"}, {[]string{slow, again}, "compare"}, {[]string{slow}, "bandwidths"},
		{[]string{slow, again, other}, "weeks"},
		{[]string{filepath.Dir(slow)}, "SELECT count(DISTINCT run) AS runs FROM operations"},
	})
	l := results[0]
	testkit.Check(t, len(l) >= 2 && l[0].text("from_name") == "Rank 1" && l[0].text("to_name") == "Rank 2" &&
		l[0].number("times_slower") >= 2, "slow links: %v", l)
	medians := make(map[string]float64)
	for _, r := range results[2] {
		if r.number("algbw_gbs") > 0 {
			medians[fmt.Sprint(r.text("function"), " ", r.text("datatype"), " ", r.text("size_bytes"))] = r.number(
				"p50_ns")
		}
	}
	testkit.Check(t, len(results[1]) != 0, "compare has no rows")
	for _, r := range results[1] {
		of := fmt.Sprint(r.text("function"), " ", r.text("datatype"), " ", r.text("size_bytes"))
		testkit.Check(t, r.number("median_a_ns") == medians[of] && r.number("times_longer") > 0 &&
			r.number("operations_a") == r.number("operations_b"), "%s: %v, the median is %v", of, r, medians[of])
	}
	runs := 0.0
	for _, r := range results[3] {
		runs += r.number("runs")
	}
	testkit.Check(t, runs == 3 && results[4][0].number("runs") == 1, "weeks: %v; %v", results[3], results[4])
}

// The tool gives the same answers through the program beside it, with DuckDB of Go's driver, and says all of a folder's
// runs.
func TestTheToolAsks(t *testing.T) {
	_, err := os.Stat(filepath.Join("../../build", "nccl-otf2-query"))
	need.NoError(t, "build/nccl-otf2-query (make query)", err)
	dir := play(t, "../../testdata/nccl-callbacks/09-straggler-4p", "net")
	got := make([][]row, len(compared))
	for i, c := range compared {
		question := c.query
		if question == "runs" {
			question = "SELECT * FROM runs"
		}
		decode := json.NewDecoder(bytes.NewReader(tool(t, nil, "query", dir, question, "--format", "json")))
		decode.UseNumber()
		testkit.Must(t, decode.Decode(&got[i]))
	}
	found, n := disagreements(reports(t, dir), byQuery(got, ""))
	for _, d := range found {
		t.Error(d)
	}
	testkit.Check(t, n >= 100, "%d figures are compared", n)
	// SQL does more than read the tables only for who says so.
	made := filepath.Join(t.TempDir(), "made")
	export := "COPY waits TO '" + made + "'"
	out, err := exec.Command(built(t, "nccl-otf2"), "query", dir, export).CombinedOutput()
	testkit.Check(t, err != nil && strings.Contains(string(out), "--unsafe"), "%s: %v: %s", export, err, out)
	_, err = os.Stat(made)
	testkit.Check(t, err != nil, "it is written")
	tool(t, nil, "query", dir, export, "--unsafe")
	_, err = os.Stat(made)
	testkit.Check(t, err == nil, "%v", err)
	out = tool(t, nil, "query", filepath.Dir(dir), "waits")
	testkit.Check(t, strings.Contains(string(out), "Rank 2"), "a folder of runs: %s", out)
}

// Of a recording of NCCL's calls the tables are made for the question: the answers are those of the archive that
// playing it makes.
func TestTheToolAsksRecordings(t *testing.T) {
	_, err := os.Stat(filepath.Join("../../build", "nccl-otf2-query"))
	need.NoError(t, "build/nccl-otf2-query (make query)", err)
	const recording = "../../testdata/nccl-callbacks/09-straggler-4p"
	const question = `SELECT function, rank, count(*), sum(size_bytes), min(duration_ns), max(duration_ns) FROM operations GROUP BY ALL ORDER BY ALL`
	played, asked := tool(t, nil, "query", play(t, recording, "net"), question, "--format", "csv"),
		tool(t, []string{"NCCL_OTF2_EVENTS=net"}, "query", recording, question, "--format", "csv")
	if lines := strings.Count(string(asked), "\n"); string(played) != string(asked) || lines != 5 { // of four ranks
		t.Errorf("of the archive\n%sof the recording, %d lines\n%s", played, lines, asked)
	}
}

// Every question says what it asks, and of which tables.
func TestQueriesSayWhatTheyAsk(t *testing.T) {
	all := sql.All()
	testkit.Require(t, len(all) >= 9, "%d queries", len(all))
	for _, q := range all {
		head, _, _ := strings.Cut(q.Text, "\nWITH ")
		testkit.Check(t, strings.HasSuffix(q.Question, "?") && strings.Contains(head, "-- Tables: ") &&
			strings.Contains(head, "Units: "), "%s: %q", q.Name, head)
	}
	q, err := sql.Named("waits")
	testkit.Check(t, err == nil && q.Name == "waits", "%v", err)
	_, err = sql.Named("nothing")
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "waits"), "%v", err)
}

// Python writes texts as the tool does: nothing that a terminal acts upon, and no formulas in comma-separated values.
func TestPythonWritesNoEvilTexts(t *testing.T) {
	const program = `import sys; sys.path.insert(0, "../../python"); import nccl_otf2_tables as t
t.write(sys.stdout, ["@a\x1b", "b", "c", "d"], [("=1+1\x1b", "-7", -7, "+x")], sys.argv[1])`
	for form, want := range map[string]string{
		"table": "@a\\x1b    b   c   d\n=1+1\\x1b  -7  -7  +x\n",
		"csv":   "'@a\\x1b,b,c,d\n'=1+1\\x1b,-7,-7,'+x\n",
	} {
		out, err := exec.Command("python3", "-c", program, form).CombinedOutput()
		testkit.Check(t, err == nil && string(out) == want, "%s: %v: %q, want %q", form, err, out, want)
	}
}
