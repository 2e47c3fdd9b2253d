// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// typeNames are the names that docs/tables.md has for Parquet's types.
var typeNames = map[string]string{
	"STRING": "string", "INT(32,true)": "int32", "INT(64,true)": "int64", "INT(64,false)": "uint64", "DOUBLE": "double",
	"BOOLEAN": "bool",
}

// columnsOf are the columns of a file that was written: name, type, and ○ if it can be null.
func columnsOf(t *testing.T, path string) (columns []string) {
	t.Helper()
	f := testkit.Value(os.Open(path))(t)
	defer f.Close()
	info := testkit.Value(f.Stat())(t)
	file := testkit.Value(parquet.OpenFile(f, info.Size()))(t)
	v, _ := file.Lookup("nccl-otf2.schema_version")
	testkit.Check(t, v == strconv.Itoa(schemaVersion), "%s is of schema %q", path, v)
	for _, c := range file.Schema().Fields() {
		name := c.Name() + " " + typeNames[c.Type().String()]
		if c.Optional() {
			name += " ○"
		}
		columns = append(columns, name)
	}
	return columns
}

// documented are the columns of all tables on docs/tables.md, in the same way.
func documented(t *testing.T, text []byte) map[string][]string {
	t.Helper()
	tables := make(map[string][]string)
	section := regexp.MustCompile("^## `([a-z]+\\.parquet)`$")
	row := regexp.MustCompile("^\\| `([a-z0-9_]+)`(?: ²)? \\| ([a-z0-9]+(?: ○)?) \\| [^|]*\\| [^|]+\\|$")
	table := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch m := section.FindStringSubmatch(line); {
		case m != nil:
			table = m[1]
		case strings.HasPrefix(line, "## "):
			table = ""
		case table != "" && strings.HasPrefix(line, "| `"):
			c := row.FindStringSubmatch(line)
			testkit.Require(t, c != nil, "no row of a column: %s", line)
			testkit.Equal(t, strings.Contains(c[2], "○"), strings.Contains(line, "null: "),
				"%s of %s does not say what null means, or is never null", c[1], table)
			tables[table] = append(tables[table], c[1]+" "+c[2])
		}
	}
	return tables
}

// The contract names each column of each table that is written, in order, with its type and whether it can be null.
func TestTablesAreAsDocumented(t *testing.T) {
	dir := t.TempDir()
	res := testkit.Value(Parquet(job(t), dir, "zstd", nil))(t)
	text := testkit.Read(t, "../../docs/tables.md")
	want := documented(t, text)
	written := make(map[string][]string)
	for _, path := range res.Files {
		written[filepath.Base(path)] = columnsOf(t, path)
	}
	testkit.Same(t, written, want)
}

// Each time that a phase was run through is a row, and their sums are the report's.
func TestPhasesAreATable(t *testing.T) {
	a := jobtest.Open(t, jobtest.Make(t, 2, 2, func(r int, p *shardtest.Process) {
		world := p.World()
		p.AllReduce(world, t0+10*us, t0+20*us, 100)
		thread := p.Writer(0)
		phase := func(name string) otf2.RegionRef {
			region := p.Region(name, regions.GroupApplication, otf2.RegionRoleCode)
			p.Shard.Regions[region].Paradigm = otf2.ParadigmUser
			return region
		}
		inner := phase("forward")
		at := func(us_ uint64) otf2.Timestamp { return otf2.Timestamp(t0 + us_*us) }
		for step := range uint64(3) {
			outer := phase("step " + strconv.Itoa(int(step)))
			begin := 100 + step*1000
			testkit.Must(t, thread.Enter(at(begin), nil, outer))
			testkit.Must(t, thread.Enter(at(begin+100), nil, inner))
			p.Call("ncclAllReduce", uint64(at(begin+110)), uint64(at(begin+120)))
			testkit.Must(t, thread.Leave(at(begin+300+uint64(r)*50), nil, inner))
			testkit.Must(t, thread.Leave(at(begin+900), nil, outer))
		}
	}))
	dir := t.TempDir()
	testkit.Value(Parquet(a, dir, "zstd", &Options{Job: "17"}))(t)
	type sum struct {
		Count       uint64
		Total, NCCL float64
	}
	want, got := make(map[string]sum), make(map[string]sum)
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	for _, r := range report.Phases {
		want[r.Phase] = sum{r.Count, r.Time.Total, float64(r.NCCL)}
	}
	names := make(map[string]bool)
	for _, r := range readTable[PhaseRow](t, filepath.Join(dir, PhasesFile)) {
		s := got[r.Kind]
		got[r.Kind] = sum{s.Count + 1, s.Total + float64(r.Duration), s.NCCL + float64(r.NCCL)}
		names[r.Phase] = true
		testkit.Check(t, r.Duration == r.End-r.Begin && (r.Depth == 1) == strings.Contains(r.Kind, " / "), "%+v", r)
	}
	diff := cmp.Diff(want, got)
	testkit.Check(t, diff == "" && len(want) == 2, "phases (report, table):\n%s", diff)
	all := slices.Sorted(maps.Keys(names))
	testkit.Check(t, len(all) == 6 && all[1] == "step 0 / forward", "%q", all)
	runs := readTable[RunRow](t, filepath.Join(dir, RunsFile))
	testkit.Check(t, len(runs) == 1 && *runs[0].Job == "17" && runs[0].Ranks == 2 && runs[0].Hosts == 1 &&
		runs[0].Begin <= t0 && runs[0].Duration >= 3000*us && len(report.Phases) != 0, "%+v", runs)
}
