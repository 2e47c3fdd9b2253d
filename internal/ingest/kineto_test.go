// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// torchJobText makes up traces in the form of Kineto's, of ranks that call AllReduces of one group, one of 2 ms every
// 30 ms, in which the GPU computes for the rest of the time.
type torchJobText struct {
	ranks, steps int
	gpus         int                      // of each host; 0: those of all ranks
	device       int                      // number of the first one
	clock        func(rank int) float64   // µs by which a rank's clock is ahead; nil: all show the same
	late         func(rank, step int) int // ms by which a rank calls later
	busy         bool                     // its GPU is late, not its host
	from         func(rank int) int       // first step of a rank's trace
	nameless     func(step int) bool      // nothing says the group of a step's AllReduce
	absent       int                      // rank without a trace; 0: none
	numbers      bool                     // PyTorch writes "Seq"
	calls        bool                     // CPU operations were profiled
	sizes        func(step int) int       // of a step's AllReduce; nil: all the same
	group        string                   // its ranks, as a kernel has them; "": all
	extra        string                   // further arguments of calls
	nodes        int                      // ranks on each, whose files have its name; 0: no file has
	info         string                   // distributedInfo of a rank, with %d; "": as PyTorch writes it
}

const torchStep = 30_000 // µs

// text is the trace of a rank.
func (j *torchJobText) text(rank int) string {
	names := make([]string, j.ranks)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	all := "[" + strings.Join(names, ", ") + "]"
	info := cmp.Or(j.info, `"distributedInfo": {"backend": "nccl", "rank": %d, "world_size": `+fmt.Sprint(j.ranks)+
		`, "pg_count": 1, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", `+
		`"pg_size": `+fmt.Sprint(j.ranks)+`, "ranks": `+all+`}], "nccl_version": "2.27.5"},`)
	if strings.Contains(info, "%d") {
		info = fmt.Sprintf(info, rank)
	}
	ahead, devices := 0.0, cmp.Or(j.gpus, j.ranks)
	if j.clock != nil {
		ahead = j.clock(rank)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    %s\n  ],\n  %s\n  \"traceEvents\": [",
		strings.TrimSuffix(strings.Repeat(`{"id": 0, "name": "NVIDIA H200"},`, devices), ","), info)
	for step := range j.steps {
		if j.from != nil && step < j.from(rank) {
			continue
		}
		last := 0 // when the last rank has begun
		lateness := func(r int) int { return 0 }
		if j.late != nil {
			lateness = func(r int) int { return 1000 * j.late(r, step) }
		}
		for r := range j.ranks {
			last = max(last, lateness(r)+10*r)
		}
		begin := 5_000_000_000 + float64(torchStep*step) + ahead
		ran := begin + float64(lateness(rank)+10*rank)
		called := ran
		if j.busy {
			called = begin
		}
		size := 1 << 20
		if j.sizes != nil {
			size = j.sizes(step)
		}
		args := fmt.Sprintf(`"Collective name": "allreduce", "In msg nelems": %d, "Out msg nelems": %d, "Group size": %d, `+
			`"dtype": "Float", "Process Group Name": "0", "Process Group Description": "default_pg", `+
			`"Process Group Ranks": "%s"`, size, size, j.ranks, cmp.Or(j.group, all))
		if j.numbers {
			args += fmt.Sprintf(`, "Seq": %d`, 4711+step)
		}
		if j.nameless != nil && j.nameless(step) {
			args = `"dtype": "Float"`
		}
		external := ""
		if j.calls {
			external = fmt.Sprintf(`"External id": %d, `, 100+step)
			fmt.Fprintf(&out, "\n  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"record_param_comms\", \"pid\": %d, "+
				"\"tid\": %d,\n    \"ts\": %.3f, \"dur\": 60.000,\n    \"args\": {%s%s%s, \"Rank\": %d}\n  },",
				4000+rank, 4100+rank, called-20, external, args, j.extra, rank)
		}
		fmt.Fprintf(&out, "\n  {\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernelExC\", \"pid\": %d, "+
			"\"tid\": %d, \"ts\": %.3f, \"dur\": 9.000, \"args\": {%s\"cbid\": 430, \"correlation\": %d}},",
			4000+rank, 4100+rank, called-12, external, 200+step)
		fmt.Fprintf(&out, "\n  {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDev"+
			"KernelArgsStorage<4096ul>)\", \"pid\": %d, \"tid\": 16, \"ts\": %.3f, \"dur\": %.3f, \"args\": {%s\"device\": %d, "+
			"\"stream\": 16, \"correlation\": %d, %s}},", rank%devices, ran, begin+float64(last+2000)-ran, external,
			j.device+rank%devices, 200+step, args)
		fmt.Fprintf(&out, "\n  {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": %d, \"tid\": 7, \"ts\": %.3f, "+
			"\"dur\": %.3f, \"args\": {\"device\": %d, \"stream\": 7}},", rank%devices, begin-21000, 20000+ran-called, rank%devices)
	}
	fmt.Fprintf(&out, "\n  {\"name\": \"process_name\", \"ph\": \"M\", \"ts\": 5000000000.000, \"pid\": 0, \"tid\": 0, "+
		"\"args\": {\"name\": \"python\"}},\n  {\"ph\": \"X\", \"cat\": \"Trace\", \"ts\": 5000000000.000, \"dur\": 9.000, "+
		"\"pid\": \"Spans\", \"tid\": \"PyTorch Profiler\", \"name\": \"PyTorch Profiler (0)\", \"args\": {\"Op count\": 0}}\n  ],\n"+
		"  \"traceName\": \"trace.json\",\n  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 1767189312000000000\n}")
	return out.String()
}

// write writes the traces of all ranks into a folder.
func (j *torchJobText) write(t *testing.T) string {
	t.Helper()
	in := t.TempDir()
	for rank := range j.ranks {
		if rank > 0 && rank == j.absent {
			continue
		}
		name := fmt.Sprintf("rank%d.pt.trace.json", rank)
		if j.nodes > 0 {
			name = fmt.Sprintf("node_%d_%d.1767189312000.pt.trace.json", rank/j.nodes, 4000+rank)
		}
		testkit.Write(t, filepath.Join(in, name), []byte(j.text(rank)))
	}
	return in
}

func everyThird(rank, step int) int {
	if rank == 2 && step%3 == 2 {
		return 15
	}
	return 0
}

// importTorch imports the traces of a job, and gives what the report says of it.
func importTorch(t *testing.T, in string, opts *Options) (*Result, *operations.Report) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made")
	res := testkit.Value(Import([]string{in}, dir, opts))(t)
	return res, testkit.Value(operations.Observe(unify(t, dir, true), new(operations.Observer)))(t)
}

// The late rank of a job is named from the traces of its ranks, with what that rests on; and nobody is accused of what
// the traces do not tell.
func TestTracesOfPyTorch(t *testing.T) {
	const late = "Rank 2 on unknown host made the others wait: 100 % of 361 ms waited, summed over 4 ranks. It called " +
		"ncclAllReduce 15.0 ms after the others, 8 of 23 times, every third call."
	const rests = "(From PyTorch traces: times of kernels and of calls, in the steps that were profiled.)"
	apart := func(us float64) func(int) float64 { return func(rank int) float64 { return us * float64(rank) } }
	ragged := func(rank int) int { return rank % 2 }
	odd := func(step int) bool { return step%2 == 1 }
	for _, c := range []struct {
		name     string
		job      torchJobText
		separate bool
		says     []string // by the verdict
		problem  string
		named    bool
	}{
		{"numbered", torchJobText{numbers: true, calls: true}, false, []string{late, rests}, "are taken to share a clock", true},
		{"whose GPUs are numbered from 2", torchJobText{numbers: true, calls: true, device: 2}, false, []string{late},
			"are taken to share a clock", true},
		{"in the order of calls", torchJobText{calls: true}, false, []string{late, rests}, "are taken to share a clock", true},
		{"whose CPU operations somebody has removed", torchJobText{}, false, []string{late}, "", true},
		{"whose GPU is late", torchJobText{numbers: true, calls: true, busy: true}, false, []string{
			"Rank 2 on unknown host made the others wait: 100 % of 361 ms", "gemm"}, "", true},
		{"that begin at different steps", torchJobText{from: ragged, calls: true}, false,
			[]string{"Rank 2 on unknown host made the others wait: 100 % of", "called ncclAllReduce 15.0 ms after"}, "", true},
		{"that do not name the group of each kernel", torchJobText{nameless: odd, numbers: true, calls: true}, false,
			[]string{"Not known who made the others wait: of 48 of 96 kernels of NCCL, the traces do not name the process group"},
			"", false},
		{"that do not name the group of kernels called before profiling", torchJobText{numbers: true, calls: true,
			nameless: func(step int) bool { return step < 2 }}, false, []string{"Rank 2 on unknown host made"}, "", true},
		{"of all but the late rank", torchJobText{absent: 2, numbers: true, calls: true}, false,
			[]string{"Not known who made the others wait: nothing was recorded of rank 2, for which they may have waited."},
			"", false},
		{"on hosts of their own", torchJobText{gpus: 1, clock: apart(3000), numbers: true, calls: true}, false,
			[]string{"Rank 2 on unknown host of rank 2 made the others wait", "of 23 times, every third call"},
			"each has a clock of its own", true},
		{"on hosts that files' names tell", torchJobText{gpus: 1, nodes: 2, numbers: true, calls: true,
			clock: func(rank int) float64 { return 4000 * float64(rank/2) }}, false,
			[]string{"Rank 2 on node_1 made the others wait", "ncclAllReduce 15.0 ms after the others"}, "", true},
		{"on one host, which a user denies", torchJobText{numbers: true, calls: true}, true,
			[]string{"Rank 2 on unknown host of rank 2 made the others wait"}, "each has a clock of its own", true},
		{"whose clocks contradict that they share a host", torchJobText{numbers: true, calls: true, clock: apart(9000)},
			false, nil, "each has a clock of its own", true},
		{"that may be of different steps, by clocks of seconds apart", torchJobText{gpus: 1, clock: apart(1e6), calls: true},
			false, []string{"Not known who made the others wait"}, "their times fit several orders", false},
		{"the same, numbered", torchJobText{gpus: 1, clock: apart(1e6), calls: true, numbers: true}, false,
			[]string{"Rank 2 on unknown host of rank 2 made the others wait"}, "", true},
		{"in which nobody is late, by clocks that differ", torchJobText{gpus: 1, clock: apart(700), numbers: true,
			calls: true, late: func(int, int) int { return 0 }}, false, []string{"Nobody stands out"}, "", false},
		{"in which a rank is always late, by clocks that differ", torchJobText{gpus: 1, clock: apart(700), numbers: true,
			calls: true, late: func(rank, _ int) int { return 15 * (rank / 3) }}, false,
			[]string{"Rank 3 on unknown host of rank 3"}, "", true},
		{"of groups that are shortened, and known by distributedInfo", torchJobText{calls: true, group: "[0, 1, ...]"},
			false, []string{late}, "", true},
		{"of groups that are shortened, and known by their distance", torchJobText{calls: true, group: "[0, 1, ...]",
			extra: `, "Global rank start": 0, "Global rank stride": 1`, info: `"distributedInfo": {"rank": %d},`}, false,
			[]string{late}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.job.ranks, c.job.steps = 4, 24
			if c.job.late == nil {
				c.job.late = everyThird
			}
			res, report := importTorch(t, c.job.write(t), &Options{SeparateClocks: c.separate})
			testkit.Check(t, res.Malformed == 0, "%+v", res)
			testkit.Equal(t, len(res.NotUsed) > 0, c.job.from != nil || c.job.nameless != nil, "not all is used")
			testkit.Equal(t, res.Processes, c.job.ranks-min(c.job.absent, 1), "processes")
			if p := report.CriticalPath; c.named {
				testkit.Check(t, len(p.WhatIf) > 0 && p.WhatIf[0].Gain > 60e6, "gains: %+v", p.WhatIf)
			} else if c.job.nameless != nil {
				testkit.Check(t, len(p.WhatIf)+len(p.Ranks) == 0 && p.NotKnown != "", "gains are given: %+v", p)
			}
			testkit.Contains(t, report.Verdict.Text, c.says...)
			testkit.Contains(t, strings.Join(res.Problems, "\n"), c.problem)
			testkit.Check(t, report.Verdict.StandsOut == c.named, "%s", report.Verdict.Text)
		})
	}
}

// packed is a text in gzip.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write([]byte(text))
	testkit.Must(t, errors.Join(err, z.Close()))
	return out.Bytes()
}

// The traces in testdata are those that this file makes up; sessions with the tool use them.
func TestTracesOfPyTorchInTestdata(t *testing.T) {
	j := &torchJobText{ranks: 4, steps: 24, late: everyThird, numbers: true, calls: true}
	for rank := range j.ranks {
		path := fmt.Sprintf("testdata/kineto/rank%d.json.gz", rank)
		if golden.Updating() {
			testkit.Write(t, path, packed(t, j.text(rank)))
		}
		file, content, err := openTrace(path)
		testkit.Must(t, err)
		text := testkit.Value(io.ReadAll(content))(t)
		testkit.Must(t, file.Close())
		testkit.Check(t, string(text) == j.text(rank), "%s is of another form", path)
	}
}

// gloo is a trace in the form in which PyTorch writes it on a machine without GPUs.
const gloo = `{"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2}, "with_stack": 0,
"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": 1.000, "dur": 9.000,
"args": {"External id": 5, "Collective name": "all_reduce", "Process Group Name": "0"}}],
"traceName": "t.json", "displayTimeUnit": "ms", "baseTimeNanoseconds": 1767189312000000000}`

// What cannot be imported is said in one line, with the next step.
func TestTracesOfPyTorchThatCannotBeImported(t *testing.T) {
	good := (&torchJobText{ranks: 2, steps: 3, calls: true}).text(0)
	without := func(part, other string) string {
		testkit.Require(t, strings.Contains(good, part), "%s", part)
		return strings.ReplaceAll(good, part, other)
	}
	for _, c := range []struct{ name, file, text, says string }{
		{"without GPUs", "rank0.json", gloo, "has no kernels of GPUs: profile with ProfilerActivity.CUDA"},
		{"without NCCL", "rank0.json", without("ncclDevKernel", "myDevKernel"),
			"has no kernels of NCCL: its ranks did not communicate by NCCL while it was profiled"},
		{"without groups", "rank0.json", without("Process Group Name", "Process Group ID"),
			"does not say which process groups its 3 kernels of NCCL are of: newer PyTorch writes it"},
		{"without rank", "trace.json", without(`"distributedInfo"`, `"info"`), "a trace of an unknown rank"},
		{"of an impossible rank", "rank0.json", without(`"rank": 0`, `"rank": 262144`), "rank 262144 of 2"},
		{"cut off", "rank0.json", good[:len(good)-400], "in the middle: copy it again"},
		{"with damage", "rank0.json", strings.Replace(good, `"dur": 60.000`, `"dur": 60.000 60`, 1), "rank0.json: at byte"},
		{"an array", "rank0.json", `{"schemaVersion": 1, "traceEvents": 5}`, "5 at byte"},
	} {
		in, out := filepath.Join(t.TempDir(), c.file), filepath.Join(t.TempDir(), "out")
		testkit.Write(t, in, []byte(c.text))
		_, err := Import([]string{in}, out, nil)
		testkit.Check(t, err != nil && strings.Contains(err.Error(), c.says) && !strings.Contains(err.Error(), "\n"),
			"%s: %v", c.name, err)
	}
}

// A trace may be in gzip, among files of other programs, without its rank, and beside damaged ones.
func TestFoldersOfTracesOfPyTorch(t *testing.T) {
	in, dir := t.TempDir(), filepath.Join(t.TempDir(), "made")
	j := &torchJobText{ranks: 4, steps: 3, calls: true, info: `"with_stack": 0,`}
	for name, text := range map[string]string{"trace_rank0.json.gz": string(packed(t, j.text(0))), "trace_rank1.json": j.text(1),
		"trace_rank1_later.json": j.text(1), "trace_rank2.json": j.text(2)[:2000], "trace_rank3.json": gloo,
		"other.json": `{"steps": 3}`, "other.gz": "no gzip"} {
		testkit.Write(t, filepath.Join(in, name), []byte(text))
	}
	res := testkit.Value(Import([]string{in}, dir, nil))(t)
	testkit.Check(t, res.Files == 5 && res.Processes == 2 && res.Malformed == 1 &&
		res.NotUsed["FURTHER_TRACES_OF_A_RANK"] == 1 && res.NotUsed["TRACES_WITHOUT_USE"] == 1, "%+v", res)
	testkit.Contains(t, strings.Join(res.Problems, "\n"), "does not say its rank", "taken to be 1, by the file's name",
		"trace_rank2.json: it ends at byte", "in the middle")
	a := unify(t, dir, true)
	testkit.Equal(t, property(a, "IMPORTED_FROM"), "traces of PyTorch's profiler", "imported from")
}

// Operations whose group, number, peer or root a trace does not tell are counted, and those that it does tell are used.
func TestWhatTracesOfPyTorchDoNotTell(t *testing.T) {
	event := func(external int, kind, function, args string) string {
		name := torchCallName
		if kind == "kernel" {
			name = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
		}
		return fmt.Sprintf(`{"ph": "X", "cat": %q, "name": %q, "pid": 0, "tid": 16, "ts": %d.500, "dur": 5.000, "args": `+
			`{"External id": %d, "device": 0, "Collective name": %q, "In msg nelems": 6, "Out msg nelems": 12, `+
			`"dtype": "BFloat16"%s}},`, kind, name, 1000+10*external, external, function, args)
	}
	const group = `, "Process Group Name": "7", "Process Group Description": "tp", "Process Group Ranks": "[4, 6]", ` +
		`"Group size": 2`
	text := `{"distributedInfo": {"rank": 4, "world_size": 8}, "schemaVersion": 1, "traceEvents": [` +
		event(1, "kernel", "_reduce_scatter_base", group+`, "Seq": 9`) + // of 12 elements
		event(1, "kernel", "_reduce_scatter_base", group+`, "Seq": 9`) + // the same call
		event(2, "kernel", "broadcast", "") + event(2, "cpu_op", "broadcast", group+`, "Seq": 10, "Rank": 1`) +
		event(3, "kernel", "broadcast", group+`, "Seq": 11`) +
		event(4, "kernel", "send", group+`, "Seq": 1, "Dst Rank": 6`) +
		event(5, "kernel", "recv", group+`, "Seq": 2, "Src Rank": 5`) +
		event(6, "kernel", "allreduce", group+`, "Seq": 11`) +
		event(7, "kernel", "coalesced", group+`, "Seq": 12`) +
		event(8, "kernel", "allreduce", strings.Replace(group, "6]", "...]", 1)) +
		event(9, "kernel", "allreduce", strings.Replace(group, "4,", "5,", 1)) +
		event(10, "kernel", "allreduce", "") + event(11, "cpu_op", "allreduce", `, "device": "none"`) +
		`{"ph": "i", "name": "end"}]}`
	text = strings.Replace(text, `1010.500, "dur": 5`, `1006.500, "dur": 5`, 1)
	testkit.Require(t, strings.Count(text, "1006.500") == 1, "%s", text)
	in, dir := filepath.Join(t.TempDir(), "trace.json"), filepath.Join(t.TempDir(), "made")
	testkit.Write(t, in, []byte(text))
	res := testkit.Value(Import([]string{in}, dir, nil))(t)
	testkit.Same(t, res.NotUsed, map[string]uint64{"MESSAGES_WITHOUT_PEER": 1, "REPEATED_OPERATIONS": 1,
		"OPERATIONS_OF_UNKNOWN_GROUPS": 2, "KERNELS_WITHOUT_GROUP": 1, "EVENTS_OF_UNKNOWN_FORM": 1,
		"OPERATIONS_OF_UNKNOWN_FUNCTIONS": 1})
	testkit.Contains(t, strings.Join(res.Problems, "\n"), "2 operations are of groups whose ranks it does not list",
		"1 operations with a root that is not told")
	var all []string
	for _, o := range canonical(t, unify(t, dir, false)) {
		all = append(all, fmt.Sprintf("%s %d on rank %d: %d bytes in %d ns", o.Function, o.Ordinal, o.Rank, o.Size,
			o.Duration))
	}
	testkit.Same(t, all, []string{"Broadcast 10 on rank 0: 12 bytes in 5000 ns",
		"ReduceScatter 9 on rank 0: 48 bytes in 9000 ns", "Send 0 on rank 0: 12 bytes in 5000 ns"})
}

// No value of a trace may take more memory than any that PyTorch writes.
func TestValuesOfTracesAreBounded(t *testing.T) {
	err := new(torchTrace).read(&valueReader{strings.NewReader(`{"traceName": "` + strings.Repeat("x", 1000) + `"}`), 100})
	testkit.Check(t, errors.Is(err, regular.ErrTooLarge), "%v", err)
	whole := &torchTrace{}
	testkit.Must(t, whole.read(strings.NewReader(`{"traceEvents": [], "baseTimeNanoseconds": 5}`)))
	testkit.Equal(t, whole.base, 5, "base")
}
