// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/hang"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

const (
	t0 = shardtest.Epoch + 1_000_000
	us = 1000
)

// canonical are the operations of an archive without what names places in its files.
func canonical(t testing.TB, a *otf2.Archive) []export.Operation {
	t.Helper()
	dir := testkit.Value(os.MkdirTemp("", "tables"))(t)
	defer os.RemoveAll(dir)
	testkit.Value(export.Parquet(a, dir, "none", nil))(t)
	all := testkit.Value(parquet.ReadFile[export.Operation](filepath.Join(dir, export.OperationsFile)))(t)
	for i := range all {
		all[i].Location, all[i].Plan, all[i].EventID, all[i].ParentID = 0, nil, nil, nil
	}
	slices.SortStableFunc(all, func(x, y export.Operation) int { return strings.Compare(keyOf(&x), keyOf(&y)) })
	return all
}

func keyOf(o *export.Operation) string {
	peer := int32(-1)
	if o.Peer != nil {
		peer = *o.Peer
	}
	return fmt.Sprintf("%d %08d %s %08d %08d", o.Comm, o.Rank, o.Function, peer, o.Ordinal)
}

// transfersOf is the network's matrix by communicator, where there is any traffic.
func transfersOf(a *otf2.Archive) map[string][]matrix.Cell {
	all := make(map[string][]matrix.Cell)
	for _, n := range matrix.Read(a, nil).Networks {
		if n.Total.Transfers > 0 {
			all[n.Communicator] = n.Cells
		}
	}
	return all
}

func waitsOf(t testing.TB, a *otf2.Archive) waits.Sums {
	t.Helper()
	r := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	return r.WaitStates.Total
}

// randomJob draws a job: up to four ranks on two hosts, two communicators, launches of one or several operations,
// messages, transfers, all kinds of times.
func randomJob(t *rapid.T, tb testing.TB, dir string) {
	ranks := rapid.IntRange(2, 4).Draw(t, "ranks")
	comms := rapid.IntRange(1, 2).Draw(t, "communicators")
	type op struct {
		comm     int
		function string
		elements uint64
		together bool // with the one before
		source   string
		message  bool
	}
	functions := []string{"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"}
	ops := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
		return op{
			comm:     rapid.IntRange(0, comms-1).Draw(t, "communicator"),
			function: rapid.SampledFrom(functions).Draw(t, "function"),
			elements: rapid.Uint64Range(0, 1<<22).Draw(t, "elements"),
			together: rapid.Bool().Draw(t, "together"),
			source:   rapid.SampledFrom([]string{"gpu", "network", "enqueue"}).Draw(t, "source"),
			message:  rapid.IntRange(0, 3).Draw(t, "message") == 0,
		}
	}), 1, 12).Draw(t, "operations")
	for r := range ranks {
		p := shardtest.New(tb, dir, fmt.Sprint("p", r)).On("node"+fmt.Sprint(r%2), 100+r/2).Launched("slurm", r, ranks)
		p.GPU(r%2, fmt.Sprint("GPU-", r), "")
		for c := range comms {
			p.Comm(description.Comm{ID: uint64(7+c) << 40, Name: fmt.Sprint("c", c), NRanks: ranks, Rank: r,
				InitTime: t0})
			p.Network(c)
		}
		at := t0 + uint64(rapid.IntRange(1000, 90000).Draw(t, "late"))
		for i := 0; i < len(ops); i++ {
			o := ops[i]
			at += rapid.Uint64Range(1, 1<<16).Draw(t, "pause")
			end := at + rapid.Uint64Range(0, 1<<20).Draw(t, "length")
			if o.message {
				p.Send(o.comm, (r+1)%ranks, at, end, o.elements)
				p.Recv(o.comm, (r+ranks-1)%ranks, end+1, end+2, o.elements)
				put(p, o.comm, (r+1)%ranks, at, end, o.elements+1, uint64(i))
				at = end + 2
				continue
			}
			var plan []shardtest.Op
			for n := i; n < len(ops) && ops[n].comm == o.comm && !ops[n].message && (n == i || ops[n].together); n++ {
				one := shardtest.Op{Function: ops[n].function, Begin: at, End: end, Count: ops[n].elements,
					Source: o.source, Algo: "RING", Proto: "LL", Channels: 2}
				if one.Function == "Broadcast" {
					one.Root = 1
				}
				plan = append(plan, one)
				i = n
			}
			p.Plan(o.comm, plan)
			at = end
		}
		for c := range comms {
			p.Destroy(c, at+5)
		}
		p.Finish()
	}
}

// put draws a transfer with its channel and step.
func put(p *shardtest.Process, comm, peer int, begin, end, bytes, step uint64) {
	at := slices.IndexFunc(p.Shard.Locations,
		func(l description.Location) bool { return l.Kind == description.KindNetSend && l.Comm == comm })
	win := slices.IndexFunc(p.Shard.Wins, func(w description.Win) bool { return w.Comm == comm })
	if win < 0 {
		win = len(p.Shard.Wins)
		p.Shard.Wins = append(p.Shard.Wins, description.Win{Comm: comm, Foreign: -1, Ranks: p.Shard.Comms[comm].NRanks})
	}
	var a otf2.AttributeList
	a.Uint32(regions.AttrChannel, 3)
	a.Uint32(regions.AttrStep, uint32(step))
	_ = p.Writer(at).RmaPut(otf2.Timestamp(begin), &a, otf2.RmaWinRef(win), uint32(peer), bytes, begin)
	_ = p.Writer(at).RmaOpCompleteNonBlocking(otf2.Timestamp(end), nil, otf2.RmaWinRef(win), begin)
}

// What an archive exports as JSONL and imports again has the same operations, waits and transfers.
func TestOurOwnExportComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := testkit.Value(os.MkdirTemp(t.TempDir(), "job"))(t)
		defer os.RemoveAll(dir)
		randomJob(rt, t, dir)
		a := jobtest.Open(t, jobtest.Unify(t, dir))
		lines := filepath.Join(dir, "jsonl")
		testkit.Value(export.JSONL(a, lines, nil))(t)
		back := filepath.Join(dir, "back")
		res := testkit.Value(Import([]string{lines}, back, nil))(t)
		testkit.Require(rt, res.Malformed+res.Truncated <= 0 && len(res.NotUsed) == 0 && len(res.Problems) == 0,
			"%+v", res)
		b := unify(t, back, true)
		method := property(b, "CLOCK_SYNC")
		testkit.Require(rt, method == "", "clocks that have been brought together are compared again: %s", method)
		// They are two runs.
		run := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Run" }, cmp.Ignore())
		diff := cmp.Diff(canonical(t, a), canonical(t, b), run)
		testkit.Require(rt, diff == "", "operations (recorded, imported):\n%s", diff)
		diff = cmp.Diff(waitsOf(t, a), waitsOf(t, b), run)
		testkit.Require(rt, diff == "", "waits (recorded, imported):\n%s", diff)
		diff = cmp.Diff(transfersOf(a), transfersOf(b), run)
		testkit.Require(rt, diff == "", "transfers (recorded, imported):\n%s", diff)
		testkit.Require(rt, property(b, "IMPORTED_FROM") == "JSONL of nccl-otf2 export" &&
			property(b, "ODDITIES::STRAY_STOPS") == "", "properties %v", b.Anchor.Properties)
	})
}

const (
	goodInit = `{"recordType":"event","type":"ProfilerLifecycle","func":"ProfilerInit","gpuUuid":"","commId":77,"rank":0,"start":{"ts":5.000,"pid":9,"tid":9},"stop":{"ts":5.000,"pid":9,"tid":9},"duration":0.0,"myPid":9,"details":{"nranks":1,"commName":"c","eventMask":4095}}`
	goodCall = `{"recordType":"event","type":"ncclProfileGroupApi","func":"","gpuUuid":"","commId":77,"rank":0,"start":{"ts":10.000,"pid":9,"tid":9},"stop":{"ts":20.000,"pid":9,"tid":9},"duration":10,"myPid":9,"parentObj":"null","eventAddr":"0x10","details":{"depth":2}}`
)

// Every line counts: what is damaged, cut off or of no use is counted separately, and the first damage is named.
func TestEachLineIsAccountedFor(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace_4711_pid9.jsonl")
	text := strings.Join([]string{
		goodInit,
		"",
		`{"recordType":"event"`,             // 3: damage
		`{"recordType":"event","type":"x"}`, // 4: damage
		`{"recordType":"cuptiActivity","type":"KERNEL"}`,
		goodCall,
		strings.Replace(goodCall, "ncclProfileGroupApi", "ncclProfileWarp", 1),
		`{"recordType":"state","eventAddr":"0x99","ts":11.5,"name":"ProxyCtrlIdle","id":13,"pid":9,"tid":9}`,
		`{"recordType":"state","eventAddr":"0x99","ts":11.5,"name":"NoSuchState","pid":9,"tid":9}`,
		strings.Replace(goodCall, `"stop":{"ts":20.000`, `"stop":{"ts":2.000`, 1), // damage: it stops before it starts
		`[1,2]`, `{}`, // damage
		goodCall[:60],
	}, "\n")
	testkit.Write(t, path, []byte(text))
	out := filepath.Join(dir, "out")
	res := testkit.Value(Import([]string{path}, out, nil))(t)
	if res.Lines != 12 || res.Malformed != 5 || res.Truncated != 1 || !strings.HasPrefix(res.First, path+":3: ") ||
		res.Records["events"] != 2 ||
		!cmp.Equal(res.NotUsed, map[string]uint64{"OTHER_RECORDS": 1, "UNKNOWN_TYPES": 1, "STATES_WITHOUT_EVENT": 1,
			"UNKNOWN_STATES": 1}) {
		t.Errorf("%+v", res)
	}
	a := unify(t, out, false)
	for name, want := range map[string]string{"IMPORT::LINES": "12", "IMPORT::MALFORMED": "5", "IMPORT::TRUNCATED": "1",
		"IMPORT::UNKNOWN_TYPES": "1"} {
		testkit.Equal(t, property(a, name), want, "%s", name)
	}
	complete := slices.ContainsFunc(a.Anchor.Properties,
		func(p otf2.Property) bool { return p.Name == "OTF2::MPI_COMMUNICATION_COMPLETE" && p.Value == "true" })
	testkit.Check(t, !complete, "the archive claims to be complete")
}

// What cannot be imported leaves nothing behind, and the error says what to do.
func TestWhatCannotBeImported(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		testkit.Write(t, path, []byte(text))
		return path
	}
	taken := filepath.Join(dir, "taken")
	write("taken/shards/x", "")
	for _, c := range []struct{ name, in, out, want string }{
		{"nothing there", filepath.Join(dir, "none"), "out", "no such file"},
		{"empty", write("empty.jsonl", ""), "out", "no record that import knows"},
		{"text", write("text.jsonl", "hello\nworld\n"), "out", "text.jsonl:1: no JSON"},
		{"folder without such files", filepath.Dir(write("f/readme.txt", "x")), "out", "no files whose names end in"},
		{"another program's, in gzip", write("x.jsonl.gz", "\x1f\x8b\x08 rest\nof it"), "out",
			"in gzip, and no trace of PyTorch's profiler: unpack it first"},
		{"states alone", write("s.jsonl", `{"recordType":"state","eventAddr":"0x1","ts":1,"id":3}`+"\n"), "out",
			"no record"},
		{"a recording is in the way", write("good.jsonl", goodInit+"\n"), taken, "holds a recording"},
	} {
		out := c.out
		if !filepath.IsAbs(out) {
			out = filepath.Join(dir, out)
		}
		_, err := Import([]string{c.in}, out, nil)
		testkit.Check(t, err != nil && strings.Contains(err.Error(), c.want), "%s: %v", c.name, err)
		_, err = os.Stat(filepath.Join(dir, "out"))
		testkit.Check(t, err != nil, "%s: something is left", c.name)
	}
}

// Processes whose communicators were made at about the same time share a clock; others are on other hosts, whose clocks
// are brought together.
func TestClocksOfUnknownHosts(t *testing.T) {
	dir := t.TempDir()
	lines := func(pid int, comm uint64, rank int, at float64) string {
		r := strings.NewReplacer(`"pid":9`, fmt.Sprintf(`"pid":%d`, pid), `"myPid":9`, fmt.Sprintf(`"myPid":%d`, pid),
			`"commId":77,"rank":0`, fmt.Sprintf(`"commId":%d,"rank":%d`, comm, rank),
			`"nranks":1`, `"nranks":3`, `"ts":5.000`, fmt.Sprintf(`"ts":%.3f`, at))
		return r.Replace(goodInit) + "\n"
	}
	for name, text := range map[string]string{
		"trace_1760000000_pid1.jsonl": lines(1, 77, 0, 1e9), "trace_1760000000_pid2.jsonl": lines(2, 77, 1, 1e9+2e6),
		"trace_1760000000_pid3.jsonl": lines(3, 77, 2, 9e12),
	} {
		testkit.Write(t, filepath.Join(dir, name), []byte(text))
	}
	for _, c := range []struct {
		separate bool
		hosts    int
	}{{false, 2}, {true, 3}} {
		out := filepath.Join(t.TempDir(), "out")
		res := testkit.Value(Import([]string{dir}, out, &Options{SeparateClocks: c.separate}))(t)
		made := testkit.Value(scorep.Unify(out, nil))(t)
		r := made.Runs[0]
		testkit.Check(t, r.Hosts == c.hosts && len(res.Problems) == 1 &&
			strings.Contains(res.Problems[0], fmt.Sprintf("%d different clocks", c.hosts)) && r.Last-r.First <= 3e9 &&
			r.First/1e9 == 1760000000, "separate %v: %d hosts from %d to %d, %v", c.separate, r.Hosts, r.First, r.Last,
			res.Problems)
	}
}

// A call that had not returned is under way in what is imported, too: the ranks that never made it are missing.
func TestOpenCallsStayOpen(t *testing.T) {
	dir := t.TempDir()
	for rank := range 2 {
		text := strings.NewReplacer(`"rank":0`, fmt.Sprintf(`"rank":%d`, rank), `"nranks":1`, `"nranks":2`, `"pid":9`,
			fmt.Sprintf(`"pid":%d`, 9+rank), `"myPid":9`, fmt.Sprintf(`"myPid":%d`, 9+rank), `"eventMask":4095`,
			fmt.Sprintf(`"eventMask":4095,"source":"nccl-otf2","host":"n%d"`, rank)).Replace(goodInit) + "\n"
		if rank == 0 {
			call := strings.Replace(goodCall, `"depth":2`, `"depth":1,"unfinished":true`, 1)
			text += call + "\n" + strings.NewReplacer("GroupApi", "CollApi", `"func":""`, `"func":"AllReduce"`, "0x10",
				"0x11", `"null"`, `"0x10"`, `"depth":1`, `"func":"AllReduce","count":4,"dtype":"ncclInt8"`).Replace(call)
		}
		testkit.Write(t, filepath.Join(dir, fmt.Sprintf("trace_1_pid%d.jsonl", 9+rank)), []byte(text+"\n"))
	}
	made := filepath.Join(dir, "made")
	res := testkit.Value(Import([]string{dir}, made, nil))(t)
	held := testkit.Value(hang.Find(made, time.Now(), nil))(t)
	testkit.Require(t, len(held.Jobs) == 1 && len(held.Jobs[0].Communicators) == 1, "%+v, %+v", res, held)
	c := &held.Jobs[0].Communicators[0]
	testkit.Check(t, c.Members[0].State == "calling" && c.Members[1].State == "missing" &&
		len(held.Jobs[0].Stops) == 1, "%+v", held.Jobs[0])
}
