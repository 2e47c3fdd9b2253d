// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	diagnosis "github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

func mustCompile(t *testing.T, pattern string) *regexp.Regexp {
	t.Helper()
	return testkit.Value(regexp.Compile(pattern))(t)
}

// Archives of real NCCL calls agree with what was called, from the start of the ranks to the report.
func TestJobsAgreeWithTheirLogs(t *testing.T) {
	for _, name := range []string{"01-allreduce-2p", "02-allcoll-4p-net", "05-p2p-3p", "07-twocomms-streams",
		"08-v5-nccl228-3p", "09-straggler-4p", "10-graph-3p", "12-gpu-few-2p", "13-gpu-few-2p-v7"} {
		for _, events := range []string{"light", "gpu", "all"} {
			t.Run(name+"/"+events, func(t *testing.T) {
				t.Parallel()
				f := newFakeJob(t, name)
				c := caseOf(name, f.ranks)
				c.events = events
				var v verdict
				f.harness(t).play(context.Background(), c, t.TempDir(), &v)
				for _, failure := range v.failures {
					t.Error(failure)
				}
				testkit.Check(t, v.compared >= f.ranks, "%d operations were compared", v.compared)
				between := slices.ContainsFunc(v.notes,
					func(n string) bool { return strings.HasPrefix(n, "GPU time against CUDA events, 20 operations") })
				testkit.Check(t, !strings.Contains(name, "-gpu-few-2p") || between == c.gpu(),
					"operations between CUDA events: %q", v.notes)
			})
		}
	}
}

// difference is a change of what ranks have logged, or of what an archive shows.
type difference struct {
	name, recording string
	change          func(logs []*jobLog, a *archive)
}

// unreported has NCCL leave out kernels, of which the archive says something.
func unreported(missing int, properties ...string) difference {
	return difference{fmt.Sprintf("%d operations without GPU time, %q", missing, properties), "12-gpu-few-2p",
		func(_ []*jobLog, a *archive) {
			for _, o := range a.comms[0].rows[1][:missing] {
				o.source = "network"
			}
			for _, n := range properties {
				a.properties["NCCL_OTF2::ODDITIES::INCOMPLETE_OPERATIONS"] = n
			}
		}}
}

// kernelsOf has CUPTI see a kernel of each operation, and one of the application's, and changes what it saw.
func kernelsOf(name string, change func(a *archive)) difference {
	return difference{"kernels: " + name, "01-allreduce-2p", func(_ []*jobLog, a *archive) {
		for rank, row := range a.comms[0].rows {
			for i, o := range row {
				o.ids = []uint64{uint64(100*rank + i + 1)}
				a.kernels = append(a.kernels, kernel{"ncclDevKernel_AllReduce_Sum_f32_RING_LL", rank, o.begin - 5000,
					o.end + 5000, false, o.ids})
			}
		}
		change(a)
		a.kernels = append(a.kernels, kernel{name: "vectorized_elementwise_kernel"})
	}}
}

// Whatever differs is found, and what may differ is borne: NCCL may leave a kernel out, seldom, and if the archive says
// so.
func TestDifferencesAreFound(t *testing.T) {
	last := func(l []*jobLog) *call { return l[1].calls[len(l[1].calls)-1] }
	played := make(map[string]string) // directories of jobs, by recording
	var said strings.Builder
	for _, d := range []difference{
		{"another count", "01-allreduce-2p", func(l []*jobLog, _ *archive) { last(l).Count++ }},
		{"another type", "01-allreduce-2p", func(l []*jobLog, _ *archive) { last(l).Dtype = "ncclInt8" }},
		{"another root", "08-v5-nccl228-3p", func(l []*jobLog, _ *archive) {
			for _, c := range l[1].calls {
				if c.Op == "Reduce" {
					c.Root = 2
				}
			}
		}},
		{"a call more", "01-allreduce-2p", func(l []*jobLog, _ *archive) { l[1].calls = append(l[1].calls, last(l)) }},
		{"a call less", "01-allreduce-2p", func(l []*jobLog, _ *archive) { l[1].calls = l[1].calls[:8] }},
		{"calls of one function less", "08-v5-nccl228-3p", func(l []*jobLog, _ *archive) {
			l[1].calls = slices.DeleteFunc(l[1].calls, func(c *call) bool { return c.Op == "Reduce" })
		}},
		{"another peer", "07-twocomms-streams", func(l []*jobLog, _ *archive) {
			for _, c := range l[0].calls {
				for i := range c.Messages {
					c.Messages[i].peer = 5
				}
			}
		}},
		{"another order", "08-v5-nccl228-3p", func(l []*jobLog, _ *archive) {
			l[2].calls[3], l[2].calls[4] = l[2].calls[4], l[2].calls[3]
		}},
		{"a communicator more", "07-twocomms-streams", func(l []*jobLog, _ *archive) {
			for _, one := range l {
				one.comms, one.ranks["more"] = append(one.comms, "more"), []int{0, 1}
				one.calls = append(one.calls, &call{Comm: "more", Op: "AllReduce", Count: 1, T0: 1 << 62})
			}
		}},
		{"a communicator less", "07-twocomms-streams", func(l []*jobLog, _ *archive) {
			for _, one := range l {
				one.calls = slices.DeleteFunc(one.calls, func(c *call) bool { return c.Comm == "2" })
			}
		}},
		{"other members", "07-twocomms-streams", func(l []*jobLog, _ *archive) {
			for _, one := range l {
				one.ranks["1"] = []int{1, 0}
			}
		}},
		{"a replay more", "10-graph-3p", func(l []*jobLog, _ *archive) {
			l[0].calls = append(l[0].calls, l[0].calls[len(l[0].calls)-1])
		}},
		{"called later", "01-allreduce-2p", func(l []*jobLog, _ *archive) { last(l).T0 += 1e9 }},
		{"done earlier", "01-allreduce-2p", func(l []*jobLog, _ *archive) { last(l).Done -= 1e9 }},
		{"shorter events", "01-allreduce-2p", func(l []*jobLog, _ *archive) { last(l).EventNs = 10 }},
		{"long events", "01-allreduce-2p", func(l []*jobLog, _ *archive) {
			for _, one := range l {
				for _, c := range one.calls {
					c.EventNs = 1e9
				}
			}
		}},
		{"members apart", "01-allreduce-2p", func(_ []*jobLog, a *archive) {
			o := a.comms[0].rows[0][3]
			o.begin, o.end = o.begin+1e9, o.end+1e9
		}},
		{"no GPU time", "01-allreduce-2p", func(_ []*jobLog, a *archive) { a.comms[0].rows[1][0].source = "network" }},
		{"no source", "01-allreduce-2p", func(_ []*jobLog, a *archive) { a.comms[0].rows[1][0].source = "" }},
		{"a loss", "01-allreduce-2p", func(_ []*jobLog, a *archive) {
			a.properties["NCCL_OTF2::LOST::RING::COLL"] = "3"
		}},
		{"a process less", "01-allreduce-2p", func(_ []*jobLog, a *archive) {
			a.properties["NCCL_OTF2::PROCESSES"] = "1"
		}},
		{"a process more", "01-allreduce-2p", func(_ []*jobLog, a *archive) { a.shards++ }},
		{"a phase", "01-allreduce-2p", func(l []*jobLog, _ *archive) { l[0].phases["step 1"] = 2 }},
		unreported(1, "1"), unreported(1), unreported(2, "1"), unreported(9, "9"),
		kernelsOf("all", func(*archive) {}),
		kernelsOf("none", func(a *archive) { a.kernels = nil }),
		kernelsOf("one is missing", func(a *archive) { a.kernels = a.kernels[1:] }),
		kernelsOf("one without plan", func(a *archive) { a.kernels[3].ids = nil }),
		kernelsOf("of another process's plan", func(a *archive) { a.kernels[3].ids = a.kernels[12].ids }),
		kernelsOf("plans exchanged", func(a *archive) {
			a.kernels[1].ids, a.kernels[5].ids = a.kernels[5].ids, a.kernels[1].ids
		}),
		kernelsOf("a replay that nobody knows the kernel of", func(a *archive) {
			a.kernels[3].ids, a.comms[0].rows[0][3].graph = nil, true
			a.properties["NCCL_OTF2::CUPTI::NCCL_KERNELS_UNLINKED"] = "1"
		}),
		kernelsOf("of which only the launch is known", func(a *archive) {
			a.kernels[3].ids, a.kernels[3].launched, a.comms[0].rows[0][3].graph = nil, true, true
		}),
		kernelsOf("of which nothing is said", func(a *archive) {
			a.kernels[3].ids, a.comms[0].rows[0][3].graph = nil, true
		}),
		kernelsOf("at other times, as the archive says", func(a *archive) {
			a.kernels[3].end += 1e9
			a.properties["NCCL_OTF2::ODDITIES::GPU_TIMES_DIFFER"] = "1"
		}),
	} {
		c := caseOf(d.recording, 0)
		c.more = func(v *verdict, logs []*jobLog, a *archive) {
			if len(a.kernels) > 0 {
				linked(v, logs, a)
			}
		}
		var v verdict
		if played[d.recording] == "" {
			f := newFakeJob(t, d.recording)
			played[d.recording] = t.TempDir()
			f.harness(t).play(context.Background(), caseOf(d.recording, f.ranks), played[d.recording], &v)
			testkit.Require(t, v.passed(), "%v", v.failures)
		}
		a := testkit.Value(readArchive(filepath.Join(played[d.recording], "experiment")))(t)
		var logs []*jobLog
		for c.ranks = range a.shards {
			logs = append(logs, testkit.Value(readJobLog(logFile(played[d.recording], c.ranks)))(t))
		}
		c.ranks = len(logs)
		d.change(logs, a)
		v = verdict{}
		v.check(c, logs, a)
		fmt.Fprintf(&said, "%s:\n%s\n\n", d.name, strings.Join(v.failures, "\n"))
	}
	golden.Text(t, "testdata/differences.txt", said.String())
}

// caseOf is how a recording is played.
func caseOf(name string, ranks int) *testCase {
	c := &testCase{mode: "collectives", events: "gpu", ranks: ranks}
	if name == "10-graph-3p" {
		c.mode = "graphs"
	}
	return c
}

// The program from end to end: cases, cost, report, and what is kept.
func TestWholeRun(t *testing.T) {
	f := newFakeJob(
		t, "01-allreduce-2p",
		`{"f":"cost","op":"AllReduce","bytes":8,"calls":50,"host_ns":[10000,12000,14000],"gpu_ns":[20000]}`)
	host := testkit.Value(caller.Build("../..", "../../build", t.TempDir()))(t)
	build := t.TempDir()
	for from, to := range map[string]string{host.Plugin: "libnccl-profiler-otf2.so", host.Tool: "nccl-otf2",
		host.Empty: "gpu/libnccl-profiler-empty.so"} {
		testkit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(build, to)), 0o777))
		testkit.Must(t, os.Symlink(from, filepath.Join(build, to)))
	}
	out := filepath.Join(t.TempDir(), "out")
	o := &options{cases: "^(collectives/(gpu/2p$|gpu/4p)|few/|" + overheadName + ")", time: time.Hour, out: out,
		build: build, python: f.python, script: "job.py", rounds: 1}
	bad := testkit.Value(o.run(context.Background()))(t)
	text := testkit.Read(t, filepath.Join(out, "report.md"))
	report := string(text)
	testkit.Contains(t, report, "a made-up GPU", "| collectives/none/2p | passed |", "| collectives/gpu/2p | passed",
		"| few/record/2p |",
		"| collectives/gpu/4p | **FAILED**",
		"| AllReduce | 8 | 1 | 0.0 % | 12.0 | 12.0 (1.000) |", "GPU time against CUDA events, 18 operations")
	if bad != 1 || t.Failed() { // there are only two ranks to play
		t.Fatalf("%d cases failed or were not run, want 1:\n%s", bad, report)
	}
	rec := testkit.Value(replay.Load(filepath.Join(out, "recording")))(t)
	testkit.Check(t, len(rec.Processes) == 2 && len(rec.Processes[1].Issues) == 9 &&
		len(rec.Processes[1].Events) != 0 && rec.Run.Name == "gpu-few-2p",
		"the recording that is kept is not the one that was made: %+v", rec.Run)
	files := 0
	for _, pattern := range []string{"*.md", "*.gz", "recording/*"} {
		list, _ := filepath.Glob(filepath.Join(out, pattern))
		files += len(list)
	}
	testkit.Equal(t, files, 8, "files were packed")
}

// Without time nothing is begun, and the report says so; without a GPU there is one clear line.
func TestNothingToRun(t *testing.T) {
	f := newFakeJob(t, "01-allreduce-2p")
	h := f.harness(t)
	r := new(run)
	until := time.Now().Add(time.Second)
	all := &options{}
	testkit.Must(t, h.cases(context.Background(), r, mustCompile(t, all.cases), until))
	if len(r.notRun) != len(cases) || len(r.results) > 0 ||
		!strings.Contains(r.markdown(), "collectives/none/2p: no time was left | NOT RUN") {
		t.Errorf("%d of %d cases are reported as not run:\n%s", len(r.notRun), len(cases), r.markdown())
	}
	h.python = "/bin/false"
	_, err := h.probe(context.Background())
	testkit.Check(t, err != nil && strings.HasPrefix(err.Error(), "a GPU and PyTorch with NCCL are needed"),
		"without PyTorch: %v", err)
}

// A rank that fails ends the job, soon, and the case says which.
func TestFailingRanks(t *testing.T) {
	python := filepath.Join(t.TempDir(), "python")
	script := "#!/bin/sh\n[ $RANK = 1 ] && { echo no memory >&2; exit 3; }\nexec sleep 80\n"
	testkit.Script(t, python, script)
	h := &harness{python: python, job: "job.py"}
	_, said, err := h.run(context.Background(), &job{mode: "collectives", ranks: 2}, t.TempDir())
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "rank 1: exit status 3") &&
		strings.Contains(err.Error(), "rank 0: signal: aborted"), "error: %v", err)
	testkit.Check(t, len(said) == 2 && said[1] == "no memory\n", "the ranks said %q", said)
}

func TestWarnings(t *testing.T) {
	for _, test := range []struct {
		said string
		must string
		want int
	}{
		{"h:1:2 [0] nccl-otf2:3 NCCL INFO NCCL_OTF2: records to /tmp", "", 0},
		{"h:1:2 [0] nccl-otf2:3 NCCL WARN NCCL_OTF2: CUPTI is in use", "", 1},
		{"h:1:2 [0] nccl-otf2:3 NCCL WARN NCCL_OTF2: CUPTI is in use", "(?i)cupti", 0},
		{"h:1:2 [0] nccl-otf2:3 NCCL WARN NCCL_OTF2: disk full", "(?i)cupti", 2},
	} {
		var v verdict
		c := testCase{}
		if test.must != "" {
			c.says = mustCompile(t, test.must)
		}
		v.warnings([]string{test.said}, c.says)
		testkit.Equal(t, len(v.failures), test.want, "%q: %q", test.said, v.failures)
	}
}

// The job's program compiles. The machine's python3 is there wherever the reference binding is.
func TestJobProgramCompiles(t *testing.T) {
	testkit.Watch(t, ".")
	out, err := exec.Command("python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])",
		"job.py").CombinedOutput()
	testkit.Require(t, err == nil, "job.py: %v\n%s", err, out)
}

// The job's program runs on the CPU where there is PyTorch, which these tests do not install: it is far larger than
// all else together. What runs on a GPU is tested there, by `make gpu-test`.
func TestJobProgramOnTheCPU(t *testing.T) {
	python := testkit.Value(exec.LookPath("python3"))(t)
	if err := exec.Command(python, "-c", "import torch").Run(); err != nil {
		t.Skip("NOT RUN ON THE CPU: PyTorch is missing")
	}
	job0 := testkit.Value(filepath.Abs("job.py"))(t)
	for _, mode := range []string{"collectives", "exchange", "groups", "training", "loader", "late-host",
		"late-never"} {
		t.Run(mode, func(t *testing.T) {
			h := &harness{python: python, job: job0}
			logs, said, err := h.run(context.Background(),
				&job{mode: mode, ranks: 3, args: []string{"--backend", "gloo"}}, t.TempDir())
			if err != nil {
				t.Fatalf("%v\n%s", err, strings.Join(said, "\n"))
			}
			for _, l := range logs {
				testkit.Check(t, len(l.wrong) == 0 && len(l.calls) != 0,
					"rank %d: %d calls, wrong: %q", l.Rank, len(l.calls), l.wrong)
			}
		})
	}
}

// Whom a report names is held against who it was, and what it says of each rank against who is missing.
func TestAnswers(t *testing.T) {
	culprit := func(rank int, kind diagnosis.Kind) []diagnosis.Culprit {
		return []diagnosis.Culprit{{Rank: rank, Kind: kind}}
	}
	both := append(culprit(1, diagnosis.HostLate), culprit(2, diagnosis.HostLate)...)
	for _, test := range []struct {
		name     string
		want     answer
		culprits []diagnosis.Culprit
		says     string
	}{
		{"the right one", answer{rank: 1, kind: diagnosis.HostLate}, culprit(1, diagnosis.HostLate), ""},
		{"another rank", answer{rank: 1, kind: diagnosis.HostLate}, culprit(2, diagnosis.HostLate),
			`report names "rank 2 (host_late)", it was rank 1 (host_late)`},
		{"another kind", answer{rank: 1, kind: diagnosis.HostLate}, culprit(1, diagnosis.GPULate),
			`report names "rank 1 (gpu_late)", it was rank 1 (host_late)`},
		{"one more", answer{rank: 1, kind: diagnosis.HostLate}, both,
			`report names "rank 1 (host_late), rank 2 (host_late)", it was`},
		{"one more, behind it", answer{rank: 1, kind: diagnosis.HostLate, first: true}, both, ""},
		{"one more, before it", answer{rank: 2, kind: diagnosis.HostLate, first: true}, both,
			`report names "rank 1 (host_late), rank 2 (host_late)", it was rank 2`},
		{"nobody", answer{rank: 1, kind: diagnosis.HostLate}, nil, `report names "", it was`},
		{"nobody, rightly", answer{rank: nobody}, nil, ""},
		{"an innocent", answer{rank: nobody}, culprit(0, diagnosis.GPULate),
			"report names rank 0 (gpu_late), and nobody held up the others"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var v verdict
			v.names(&test.want, test.culprits, "report")
			said := strings.Join(v.failures, "\n")
			testkit.Check(t, (test.says == "") == (said == "") && strings.HasPrefix(said, test.says),
				"said %q, want %q", said, test.says)
		})
	}
	if got := ofGPUs(append(both, culprit(0, diagnosis.GPULate)...)); !slices.EqualFunc(
		got, culprit(0, diagnosis.GPULate), func(a, b diagnosis.Culprit) bool {
			return a.Rank == b.Rank && a.Kind == b.Kind
		}) {
		t.Errorf("%+v are named for what their GPUs did", got)
	}
	var r hangReport
	testkit.Must(t, json.Unmarshal([]byte(`{"hang":{"jobs":[{"culprits":[{"rank":1,"kind":"missing"}],"communicators":[{"operation":"AllReduce",
		"members":[{"rank":0,"state":"running"},{"rank":1,"state":"missing"},{"rank":2,"state":"missing"}]}]}]}}`), &r))
	var v verdict
	v.missing(&answer{rank: 1, kind: diagnosis.Missing}, &r, "report")
	testkit.Check(t, slices.Equal(v.failures, []string{"report: rank 2 is missing"}),
		"a rank that is said to be missing: %q", v.failures)
}

// RAS must have said something of the rank that is missing, or nobody knows whether it was heard.
func TestAnswersOfRAS(t *testing.T) {
	for said, right := range map[string]bool{
		"RAS counts AllReduce begun on ncclComm 0x3829f5cb85cadb4a: 5 by Rank 1; 6 by Ranks 0,2":    true,
		"RAS counts AllReduce begun on ncclComm 0x3829f5cb85cadb4a: 5 by Rank 2; 6 by Ranks 0,1":    false,
		"RAS reports no problem with the communicators of this job":                                 false,
		"RAS gets no answer from Rank 1 (process 7 on vm)":                                          false,
		"RAS counts AllReduce begun on ncclComm 0x3829f5cb85cadb4a: 5 by Ranks 1,3; 6 by Ranks 0,2": false,
	} {
		text := testkit.Value(json.Marshal(
			map[string]any{"hang": map[string]any{"jobs": []any{map[string]any{"ras": []string{said},
				"culprits": []any{map[string]any{"rank": 1, "kind": diagnosis.Missing}},
				"communicators": []any{map[string]any{"members": []any{map[string]any{"rank": 1,
					"state": "missing"}}}}}}}}))(t)
		var r hangReport
		testkit.Must(t, json.Unmarshal(text, &r))
		var v verdict
		if v.missingByRAS(&answer{rank: 1, kind: diagnosis.Missing}, &r, "report"); v.passed() != right {
			t.Errorf("%q: %q", said, v.failures)
		}
	}
}

// NCCL may be asked for a rank's messages to itself, or the caller copies them, call by call.
func TestMessagesThatMayBeMissing(t *testing.T) {
	call := func(optional bool, counts ...uint64) (all []expectation) {
		for _, n := range counts {
			all = append(all, expectation{function: "Send", count: n, optional: optional, call: new(call)})
		}
		return all
	}
	both := append(call(true, 5), call(false, 5)...)
	for _, test := range []struct {
		name   string
		want   []expectation
		got    []uint64
		paired []int // by number of the expectation
		says   string
	}{
		{"all", call(true, 1, 1, 2, 2), []uint64{1, 1, 2, 2}, []int{0, 1, 2, 3}, ""},
		{"none", call(true, 1, 1, 2, 2), nil, nil, ""},
		{"every other", call(true, 1, 1, 2, 2), []uint64{1, 2}, []int{0, 2}, ""},
		{"one that must be there", both, []uint64{5}, []int{1}, ""},
		{"and one that need not", both, []uint64{5, 5}, []int{0, 1}, ""},
		{"not the one that must be there", both, nil, nil, "0 × Send 0 in the archive, 2 were called"},
		{"in another order", call(true, 1, 2), []uint64{2, 1}, nil, "Send 0 number 0 is count 2"},
		{"one that was not called", call(true, 1, 2), []uint64{3}, nil, "1 × Send 0 in the archive, 2 were called"},
		{"one more than called", call(true, 1), []uint64{1, 1}, nil, "2 × Send 0 in the archive, 1 were called"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var row []*operation
			for i, n := range test.got {
				row = append(row, &operation{function: "Send", count: n, plan: i})
			}
			var v verdict
			var paired []int
			for _, p := range v.compareRow("rank 0", test.want, row, false) {
				paired = append(paired, slices.IndexFunc(
					test.want, func(e expectation) bool { return e.call == p.want.call }))
			}
			said := strings.Join(v.failures, "\n")
			testkit.Check(t, (test.says != "" || said == "" && slices.Equal(paired, test.paired)) &&
				strings.Contains(said, test.says), "paired %v, want %v; said %q, want %q", paired, test.paired, said,
				test.says)
		})
	}
}

// Sensors' values are held against what a GPU can have, and memory against what PyTorch uses.
func TestSensorsAndMemory(t *testing.T) {
	all := map[string]*sensor{"GPU power": {20, 90, 400}, "GPU temperature": {20, 31, 45},
		"GPU SM clock":     {20, 345e6, 1.98e9},
		"GPU memory clock": {20, 3.2e9, 3.2e9}, "GPU utilization": {20, 0, 100}, "GPU memory used": {20, 1e9, 3e9}}
	var v verdict
	if sensorsRead(&v, nil, &archive{sensors: all}); !v.passed() {
		t.Errorf("a GPU at work: %q", v.failures)
	}
	all["GPU power"].least, all["GPU utilization"].values = 0.09, 3
	if sensorsRead(&v, nil, &archive{sensors: all}); len(v.failures) != 2 {
		t.Errorf("a power in other units, and three values: %q", v.failures)
	}
	v = verdict{}
	if memoryKnown(&v, nil, &archive{memory: map[string]int{"unknown": 2, "managed": 1}}); len(v.failures) != 2 {
		t.Errorf("no memory of the device, some managed: %q", v.failures)
	}
}

// What an H200 did by NCCL's tree, where end stamps come when ranks have sent their parts: the archive's intervals are
// within what the host and CUDA events say, members' intervals overlap, and report names the rank that was late.
// testdata/trees-4p is a recording of `gputest --cases trees/record`, with what its ranks logged; host name, boot id
// and UUID are replaced.
func TestTreesOfAGPU(t *testing.T) {
	const folder = "testdata/trees-4p"
	f := fakeJobOf(t, folder, func(_ *replay.Recording, k int) []byte {
		return testkit.Read(t, filepath.Join(folder, fmt.Sprintf("rank%d.jsonl", k)))
	})
	moved := uint64(0)
	c := &testCase{mode: "trees", events: "gpu", ranks: f.ranks,
		answer: &answer{rank: lateRank, kind: diagnosis.HostLate, first: true},
		more: func(v *verdict, _ []*jobLog, a *archive) {
			moved, _ = a.properties.Number(property.EndsMoved)
			kinds := make(map[bool]int)
			for _, row := range a.comms[0].rows {
				for _, o := range row {
					kinds[o.early]++
				}
			}
			if kinds[false] > 0 || kinds[true] != 4*39 {
				v.fail("%v operations are marked as those whose ends are those of parts, want all 156", kinds)
			}
		}}
	var v verdict
	dir := t.TempDir()
	f.harness(t).play(context.Background(), c, dir, &v)
	for _, failure := range v.failures {
		t.Error(failure)
	}
	testkit.Check(t, moved >= 100, "%d ends of 156 operations were moved", moved)
	for _, note := range v.notes {
		t.Log(note)
	}

	// Where NCCL stamped them, ends come before other members began.
	experiment := filepath.Join(dir, "experiment")
	testkit.Output(t, exec.Command(f.harness(t).tool, "unify", "--no-ends", experiment))
	a := testkit.Value(readArchive(experiment))(t)
	v = verdict{}
	if v.overlaps(a); v.passed() {
		t.Error("the stamped ends overlap, too: the recording shows nothing")
	}
}
