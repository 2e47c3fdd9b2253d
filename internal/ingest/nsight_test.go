// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// madeTable is a table of a made-up SQLite file.
type madeTable struct {
	name    string
	columns []string
	rows    [][]any
}

func (m *madeTable) add(values ...any) { m.rows = append(m.rows, values) }

// madeTables are the tables of made-up files, in place of the program that reads SQLite.
type madeTables map[string][]*madeTable

// OpenTables implements TableReader.
func (m madeTables) OpenTables(path string, request []byte) (io.ReadCloser, error) {
	text, err := rowsOf(m[path], request)
	return io.NopCloser(strings.NewReader(text)), err
}

// rowsOf gives the rows that are asked for as the program writes them.
func rowsOf(tables []*madeTable, request []byte) (string, error) {
	var wanted []wantedTable
	err := json.Unmarshal(request, &wanted)
	var out bytes.Buffer
	encode := json.NewEncoder(&out)
	sorted := slices.SortedFunc(slices.Values(tables), func(a, b *madeTable) int { return strings.Compare(a.name, b.name) })
	for place, want := range wanted {
		for _, table := range sorted {
			if table.name != want.Name && !(want.Prefix && strings.HasPrefix(table.name, want.Name)) {
				continue
			}
			has := slices.DeleteFunc(slices.Clone(table.columns), func(c string) bool { return !slices.Contains(want.Columns, c) })
			err = errors.Join(err, encode.Encode(map[string]any{"table": table.name, "place": place, "columns": has}))
			for _, row := range table.rows {
				picked := make([]any, len(want.Columns))
				for i, column := range want.Columns {
					if at := slices.Index(table.columns, column); at >= 0 {
						picked[i] = row[at]
					}
					if blob, is := picked[i].([]byte); is {
						picked[i] = map[string][]byte{"blob": blob}
					}
				}
				err = errors.Join(err, encode.Encode(picked))
			}
		}
	}
	out.WriteString("{\"end\":true}\n")
	return out.String(), err
}

// sqlOf is the SQL that makes a file of tables.
func sqlOf(tables []*madeTable) string {
	var out strings.Builder
	for _, table := range tables {
		fmt.Fprintf(&out, "CREATE TABLE %s (%q);\n", table.name, strings.Join(table.columns, `", "`))
		for _, row := range table.rows {
			values := make([]string, len(row))
			for i, v := range row {
				switch v := v.(type) {
				case nil:
					values[i] = "NULL"
				case string:
					values[i] = "'" + v + "'"
				case []byte:
					values[i] = fmt.Sprintf("X'%X'", v)
				default:
					values[i] = fmt.Sprint(v)
				}
			}
			fmt.Fprintf(&out, "INSERT INTO %s VALUES (%s);\n", table.name, strings.Join(values, ", "))
		}
	}
	return strings.ReplaceAll(out.String(), `\"`, `"`)
}

// nsightJob makes up exports of Nsight Systems, of ranks that call AllReduces of one communicator, one of 2 ms every 30
// ms, in which the GPU computes for the rest of the time.
type nsightJob struct {
	ranks, steps int
	together     bool                     // one file has all processes
	late         func(rank, step int) int // ms by which a rank calls later
	pairs        bool                     // each two ranks have a communicator of their own, and no other
	noRanges     bool                     // NVTX was not recorded
	noPayload    bool                     // payloads were not exported
	text         bool                     // payloads are JSON
	noInit       bool                     // communicators were made before
	noClock      bool                     // the release does not tell host and times of day
	group        bool                     // calls are in groups
	hosts        int                      // ranks on each; 0: all
	ahead        int64                    // ns by which the clock of a host is ahead of the one before
	without      string                   // table that is not there
	graph        func(step int) bool      // a step's kernel has no launch, as in replays of graphs
}

const (
	nsightDomain = 1
	nsightInit   = 16777218
	nsightReduce = 16777223
)

// payload is a payload as nsys stores it.
func payload(schema uint64, members ...any) []byte {
	var b []byte
	for _, m := range members {
		b, _ = binary.Append(b, binary.LittleEndian, m)
	}
	b = append(b, make([]byte, (8-len(b)%8)%8)...)
	head, _ := binary.Append(nil, binary.LittleEndian, []uint64{nsightDomain, schema, uint64(len(b)), uint64(32 + len(b))})
	return append(head, b...)
}

// files are the tables of each file.
func (j *nsightJob) files() (all [][]*madeTable) {
	for rank := range j.ranks {
		if rank > 0 && j.together {
			j.addRank(all[0], rank)
			continue
		}
		session := &madeTable{name: "TARGET_INFO_SESSION_START_TIME", columns: []string{"utcEpochNs", "systemClockNs"}}
		system := &madeTable{name: "TARGET_INFO_SYSTEM_ENV", columns: []string{"globalVid", "name", "value"}}
		if !j.noClock {
			ahead := int64(0)
			host := 0
			if j.hosts > 0 {
				host = rank / j.hosts
				ahead = int64(host) * j.ahead
			}
			// The real-time clock was set between the sessions of one host.
			session.add(1_767_189_312_000_000_000+ahead+int64(rank)*40_000_000, 35_000_000_000+int64(rank))
			system.add(1, "Hostname", fmt.Sprintf("node%d", host))
		}
		schema := &madeTable{name: "NVTX_PAYLOAD_SCHEMA_ENTRIES", columns: []string{"domainId", "schemaId", "idx", "name", "offset"}}
		for i, name := range []string{payloadComm, payloadSize, payloadRank, "CUDA device"} {
			schema.add(nsightDomain, nsightInit, i, name, []any{nil, 8, 12, 16}[i])
		}
		for i, name := range []string{payloadComm, payloadBytes, "Reduction operation"} {
			schema.add(nsightDomain, nsightReduce, i, name, []any{nil, 8, 16}[i])
		}
		names := &madeTable{name: "StringIds", columns: []string{"id", "value"}}
		for i, name := range []string{"gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
			"cuLaunchKernelEx", "ncclCommInitRank", "ncclAllReduce", "cudaMalloc", "ncclGroupStart", "ncclGroupEnd"} {
			names.add(i+1, name)
		}
		file := []*madeTable{session, system, schema, names,
			{name: "CUPTI_ACTIVITY_KIND_KERNEL", columns: []string{"start", "end", "deviceId", "streamId", "correlationId",
				"globalPid", "demangledName", "shortName"}},
			{name: "CUPTI_ACTIVITY_KIND_RUNTIME", columns: []string{"start", "end", "globalTid", "correlationId", "nameId"}},
			{name: "NVTX_EVENTS", columns: []string{"start", "end", "globalTid", "text", "textId", "jsonText", "binaryData"}}}
		j.addRank(file, rank)
		all = append(all, slices.DeleteFunc(file, func(m *madeTable) bool {
			return m.name == j.without || m.name == "NVTX_EVENTS" && j.noRanges || len(m.rows) == 0
		}))
	}
	return all
}

// addRank adds the rows of a rank's process.
func (j *nsightJob) addRank(file []*madeTable, rank int) {
	table := func(name string) *madeTable {
		at := slices.IndexFunc(file, func(m *madeTable) bool { return m.name == name })
		if at < 0 {
			return new(madeTable)
		}
		return file[at]
	}
	kernels, runtime, ranges := table("CUPTI_ACTIVITY_KIND_KERNEL"), table("CUPTI_ACTIVITY_KIND_RUNTIME"), table("NVTX_EVENTS")
	pid := int64(1)<<48 | int64(4000+rank)<<24
	tid := pid | int64(4100+rank)
	comm, size, own := uint64(0xfedcba9876543210), j.ranks, rank
	if j.pairs {
		comm, size, own = comm+uint64(rank/2), 2, rank%2
	}
	call := func(begin, end int64, name int, text string, blob []byte) {
		var said, binary any
		switch {
		case j.noPayload:
		case j.text:
			said = text
		case blob != nil:
			binary = blob
		}
		ranges.add(begin, end, tid, nil, name, said, binary)
	}
	if !j.noInit {
		call(1000, 90_000_000, 4, fmt.Sprintf(`{"%s": %d, "%s": %d, "%s": %d}`, payloadComm, comm, payloadSize, size,
			payloadRank, own), payload(nsightInit, comm, int32(size), int32(own), int32(rank)))
	}
	for step := range j.steps {
		last := int64(0)
		lateness := func(r int) int64 {
			if j.late == nil {
				return 0
			}
			return int64(j.late(r, step)) * 1_000_000
		}
		for r := range j.ranks {
			last = max(last, lateness(r)+10_000*int64(r))
		}
		begin := 100_000_000 + 30_000_000*int64(step)
		ran := begin + lateness(rank) + 10_000*int64(rank)
		if j.group {
			call(ran-30_000, ran-29_000, 7, "", nil)
		}
		end := ran - 2000
		if j.group {
			end = ran - 20_000
		}
		call(ran-25_000, end, 5, fmt.Sprintf(`{"%s": %d, "%s": %d, "Reduction operation": "Sum"}`, payloadComm, comm,
			payloadBytes, 4<<20), payload(nsightReduce, comm, uint64(4<<20), uint32(0)))
		if j.group {
			call(ran-15_000, ran-1000, 8, "", nil)
		}
		correlation := 500*rank + step
		if j.graph == nil || !j.graph(step) {
			runtime.add(ran-12_000, ran-3000, tid, correlation, 3)
		}
		runtime.add(ran-28_000, ran-27_000, tid, 900_000+correlation, 6)
		kernels.add(ran, begin+last+2_000_000, rank, 16, correlation, pid, 2, 2)
		kernels.add(begin-21_000_000, begin-1_000_000+ran-begin, rank, 7, 100_000+correlation, pid, 1, 1)
	}
}

// write writes files whose tables the reader has.
func writeMade(t *testing.T, files [][]*madeTable) (string, madeTables) {
	t.Helper()
	in, tables := t.TempDir(), make(madeTables)
	for i, file := range files {
		path := filepath.Join(in, fmt.Sprintf("report%d.sqlite", i))
		testkit.Write(t, path, []byte(sqliteMagic))
		tables[path] = file
	}
	return in, tables
}

// The late rank of a job is named from what Nsight Systems recorded of its ranks, with what that rests on; and nobody is
// accused of what the files do not tell.
func TestExportsOfNsightSystems(t *testing.T) {
	const late = "Rank 1 on node0 made the others wait: 100 % of 120 ms waited, summed over 2 ranks. It called " +
		"ncclAllReduce 15.0 ms after the others, 8 of 23 times, every third call."
	const rests = "(From Nsight Systems: times of kernels and of calls, while it recorded.)"
	for _, c := range []struct {
		name    string
		job     nsightJob
		says    []string
		problem string
		named   bool
	}{
		{"one for each rank", nsightJob{}, []string{late, rests}, "", true},
		{"one for all ranks", nsightJob{together: true}, []string{late}, "", true},
		{"whose payloads are JSON", nsightJob{text: true}, []string{late}, "", true},
		{"of calls in groups", nsightJob{group: true}, []string{late}, "", true},
		{"of hosts whose clocks differ", nsightJob{hosts: 1, ahead: 3_000_000_000},
			[]string{"Rank 1 on node1 made the others wait", "8 of 23 times"}, "", true},
		{"that do not tell the host and the time of day", nsightJob{noClock: true, together: true},
			[]string{"Rank 1 on unknown host of rank 1 made the others wait"}, "each has a clock of its own", true},
		{"without a communicator of all ranks", nsightJob{pairs: true, ranks: 4},
			[]string{"Rank 1 on node0 made the others wait: 100 % of 120 ms waited, summed over 4 ranks"},
			"processes are numbered in order", true},
		{"in which nobody is late", nsightJob{late: func(int, int) int { return 0 }}, []string{"Nobody stands out"}, "", false},
		{"with kernels of graphs", nsightJob{graph: func(step int) bool { return step%2 == 1 }},
			[]string{"Not known who made the others wait: of 24 of 48 kernels of NCCL, the traces do not name the process group"},
			"", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.job.ranks, c.job.steps = max(c.job.ranks, 2), 24
			if c.job.late == nil {
				c.job.late = lateOne
			}
			in, tables := writeMade(t, c.job.files())
			res, report := importTorch(t, in, &Options{Tables: tables})
			testkit.Check(t, res.Malformed == 0 && res.Processes == c.job.ranks, "%+v", res)
			testkit.Equal(t, len(res.NotUsed) > 0, c.job.graph != nil, "not all is used")
			testkit.Contains(t, report.Verdict.Text, c.says...)
			testkit.Contains(t, strings.Join(res.Problems, "\n"), c.problem)
			testkit.Check(t, report.Verdict.StandsOut == c.named, "%s", report.Verdict.Text)
		})
	}
}

// What cannot be imported is said in one line, with the next step.
func TestExportsOfNsightSystemsThatCannotBeImported(t *testing.T) {
	for _, c := range []struct {
		name string
		job  nsightJob
		says string
	}{
		{"without NVTX", nsightJob{noRanges: true}, "has 3 kernels of NCCL, but no NVTX ranges of NCCL, so it is not known " +
			"which calls and communicators they are of: record with `nsys profile -t cuda,nvtx`"},
		{"without payloads", nsightJob{noPayload: true}, "export with `nsys export --type sqlite --include-blobs=true`"},
		{"without schemas of payloads", nsightJob{without: "NVTX_PAYLOAD_SCHEMA_ENTRIES"}, "do not say which communicators"},
		{"recorded later", nsightJob{noInit: true}, "let nsys record from the start of the job"},
		{"without kernels", nsightJob{without: "CUPTI_ACTIVITY_KIND_KERNEL"}, "has no kernels of NCCL: record with"},
		{"without launches", nsightJob{without: "CUPTI_ACTIVITY_KIND_RUNTIME"}, "none of them can be told to be of one call"},
		{"without names", nsightJob{without: "StringIds"}, "has no kernels of NCCL"},
	} {
		c.job.ranks, c.job.steps = 2, 3
		in, tables := writeMade(t, c.job.files())
		_, err := Import([]string{in}, filepath.Join(t.TempDir(), "out"), &Options{Tables: tables})
		testkit.Check(t, err != nil && strings.Contains(err.Error(), c.says) && !strings.Contains(err.Error(), "\n"),
			"%s: %v", c.name, err)
	}
}

// lateOne is by how much rank 1 is late.
func lateOne(rank, step int) int { return everyThird(rank+1, step) }

// lateAlways is the same for a rank that is late each time.
func lateAlways(rank, _ int) int { return 15 * rank }

// What the program that reads SQLite is asked for, and what it answers, is what its own tests have.
func TestRowsInTestdata(t *testing.T) {
	job := &nsightJob{ranks: 2, steps: 12, together: true, late: lateAlways}
	request := testkit.Value(json.Marshal(slices.Concat(nsightTables, rocpdTables)))(t)
	file := job.files()[0]
	golden.Text(t, "../../cmd/nccl-otf2-query/testdata/request.json", string(request)+"\n")
	golden.Text(t, "../../cmd/nccl-otf2-query/testdata/nsight.sql", sqlOf(file))
	golden.Text(t, "../../cmd/nccl-otf2-query/testdata/nsight.rows", testkit.Value(rowsOf(file, request))(t))
}

// Where the size of a call is not recorded on one rank, it is not known: the ranks did not ask for different sizes.
// Where a process's communicator is not recorded, its calls are those of none that is known.
func TestRecordThatOneRankLacks(t *testing.T) {
	request := testkit.Value(json.Marshal(slices.Concat(nsightTables, rocpdTables)))(t)
	job := nsightJob{ranks: 2, steps: 4, text: true, together: true}
	rows := testkit.Value(rowsOf(job.files()[0], request))(t)
	for _, c := range []struct {
		lacks, has string
		times      int
		missing    string
	}{
		{`, \"Message size [bytes]\": 4194304`, "", 8, "0"},
		{`18364758544493064720, \"No. of ranks\"`, `1, \"No. of ranks\"`, 2, "1"},
	} {
		testkit.Equal(t, strings.Count(rows, c.lacks), c.times, "times that %s is in the rows", c.lacks)
		in, out := filepath.Join(t.TempDir(), "job.sqlite"), filepath.Join(t.TempDir(), "out")
		testkit.Write(t, in, []byte(sqliteMagic))
		testkit.Value(Import([]string{in}, out, &Options{Tables: textTables(strings.Replace(rows, c.lacks, c.has, 1))}))(t)
		a := unify(t, out, false)
		defer a.Close()
		testkit.Equal(t, property(a, "SEQUENCES_DIFFER"), "0", "ranks that called something else, without %s", c.lacks)
		testkit.Equal(t, property(a, "PROCESSES_MISSING"), c.missing, "processes of which nothing is known, without %s", c.lacks)
	}
}

// textTables is what the program that reads SQLite writes for every file.
type textTables string

// OpenTables implements TableReader.
func (text textTables) OpenTables(string, []byte) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(string(text))), nil
}

// Rows of a form that the program does not write are damage.
func TestRowsOfOtherForms(t *testing.T) {
	const begin = `{"table": "StringIds", "place": 3, "columns": ["id", "value"]}` + "\n"
	for _, c := range []struct{ text, says string }{
		{"", "its tables end in the middle"},
		{begin, "its tables end in the middle"},
		{"[1]\n", "a row in it has other columns"},
		{begin + "[1]\n", "a row in it has other columns"},
		{begin + "[1, \n", "unexpected end of JSON input"},
		{`{"place": 99}`, "was not asked for"},
		{`{"place": -1}`, "was not asked for"},
		{begin + `{"end": true}`, "has no kernels of NCCL"},
		{`{"end": true}`, "a SQLite file, but neither one that `nsys export --type sqlite` writes nor one of"},
		{`{"table": "TARGET_INFO_SESSION_START_TIME", "place": 0}` + "\n[-5, 0]\n" + `{"end": true}`, "no time of a clock"},
	} {
		in := filepath.Join(t.TempDir(), "a.sqlite")
		testkit.Write(t, in, []byte(sqliteMagic))
		_, err := Import([]string{in}, filepath.Join(t.TempDir(), "out"), &Options{Tables: textTables(c.text)})
		testkit.Check(t, err != nil && strings.Contains(err.Error(), c.says), "%q: %v", c.text, err)
	}
}

// Without the program that reads SQLite, one line says what to do.
func TestWithoutQueryProgram(t *testing.T) {
	in := filepath.Join(t.TempDir(), "a.sqlite")
	testkit.Write(t, in, []byte(sqliteMagic))
	_, err := Import([]string{in}, filepath.Join(t.TempDir(), "out"), nil)
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "nccl-otf2-query is missing, the program that contains "+
		"SQLite: build it with `make query` and copy it there"), "%v", err)
}

// FuzzRows imports rows of tables, whatever they hold.
func FuzzRows(f *testing.F) {
	for _, name := range []string{"nsight", "rocpd"} {
		f.Add(testkit.Read(f, "../../cmd/nccl-otf2-query/testdata/"+name+".rows"))
	}
	request := testkit.Value(json.Marshal(slices.Concat(nsightTables, rocpdTables)))(f)
	for _, file := range [][]*madeTable{(&nsightJob{ranks: 2, steps: 2, group: true, text: true, together: true}).files()[0],
		(&rocpdJob{ranks: 1, steps: 2}).files()[0]} {
		f.Add([]byte(testkit.Value(rowsOf(file, request))(f)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, out := filepath.Join(t.TempDir(), "rank0.sqlite"), filepath.Join(t.TempDir(), "out")
		testkit.Write(t, in, []byte(sqliteMagic))
		res, err := Import([]string{in}, out, &Options{Tables: textTables(b)})
		checkImported(t, res, err, out)
	})
}
