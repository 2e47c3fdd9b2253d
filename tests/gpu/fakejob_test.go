// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// fakeJob is a recording in a job's place: a program that is started as Python is plays each rank's calls through the
// plugin, and leaves a log that was made from the recording's reference of what the application called.
type fakeJob struct {
	python, dir string
	ranks       int
}

func builtFile(t *testing.T, name string) string {
	t.Helper()
	path := testkit.Value(filepath.Abs(filepath.Join("../../build", name)))(t)
	_, err := os.Stat(path)
	testkit.Require(t, err == nil, "%s is not built: run `make build` first", name)
	return path
}

func newFakeJob(t *testing.T, name string, more ...string) *fakeJob {
	t.Helper()
	return fakeJobOf(t, filepath.Join("../../testdata/nccl-callbacks", name),
		func(rec *replay.Recording, k int) []byte {
			return []byte(strings.Join(append(logOf(rec, k), more...), "\n") + "\n")
		})
}

// fakeJobOf plays the recording of a folder; log gives what a rank leaves.
func fakeJobOf(t *testing.T, folder string, log func(rec *replay.Recording, k int) []byte) *fakeJob {
	t.Helper()
	rec := testkit.Value(replay.Load(folder))(t)
	f := &fakeJob{dir: t.TempDir(), ranks: len(rec.Processes)}
	for k := range rec.Processes {
		program := testkit.Value(replay.Compile(rec, k))(t)
		testkit.Write(t, filepath.Join(f.dir, fmt.Sprintf("p%d.program", k)), program)
		testkit.Write(t, filepath.Join(f.dir, fmt.Sprintf("rank%d.jsonl", k)), log(rec, k))
	}
	f.python = filepath.Join(f.dir, "python")
	testkit.Script(t, f.python, fmt.Sprintf(`#!/bin/sh
[ "$1" = -c ] && { echo "a made-up GPU"; exit; }
while [ $# -gt 0 ]; do [ "$1" = --log ] && log=$2; shift; done
unset NCCL_OTF2_CUPTI # no kernels are played
[ -z "$NCCL_PROFILER_PLUGIN" ] || NCCL_OTF2_CLOCK=host %s --clock recorded %s/p$RANK.program || exit
cp %s/rank$RANK.jsonl "$log"
`, builtFile(t, replay.HostFile), f.dir, f.dir))
	return f
}

// span is what a recording tells of the GPU's part in an operation: how long it ran, ns, and when its end was known.
type span struct{ duration, reported uint64 }

// logOf makes what job.py would have written.
func logOf(rec *replay.Recording, k int) (lines []string) {
	add := func(what string, fields map[string]any) {
		fields["f"] = what
		text, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		lines = append(lines, string(text))
	}
	p := rec.Processes[k]
	add("start", map[string]any{"rank": k, "size": len(rec.Processes), "nccl": rec.Run.NCCL})
	end := p.Calls[len(p.Calls)-1].T
	gpu := spans(p)
	known := make(map[int]bool)
	ranks := make([]int, len(rec.Processes))
	for i := range ranks {
		ranks[i] = i
	}
	graph := -1
	replayed := func(n int) { add("replay", map[string]any{"graph": n, "t0": p.Opens[0].T, "t1": end, "done": end}) }
	n := make(map[string]int)
	for i, is := range p.Issues {
		if !known[is.Comm] {
			known[is.Comm] = true
			add("comm", map[string]any{"name": fmt.Sprint(is.Comm), "ranks": ranks})
		}
		op, root, dtype := operationNames[is.Op], -1, "ncclFloat32"
		for _, a := range is.Args {
			if r, err := strconv.Atoi(a); err == nil {
				root = r
			} else if a != "" {
				dtype = cmp.Or(map[string]string{"f16": "ncclFloat16", "i32": "ncclInt32", "f64": "ncclFloat64"}[a], a)
			}
		}
		c := map[string]any{"comm": fmt.Sprint(is.Comm), "op": op, "count": is.Count, "dtype": dtype, "root": root,
			"t0": is.T0, "t1": is.T1, "done": end}
		next, before := (is.CommRank+1)%is.NRanks, (is.CommRank+is.NRanks-1)%is.NRanks
		switch is.Op {
		case "sr":
			c["messages"] = [][]any{{"Send", next, is.Count}, {"Recv", before, is.Count}}
		case "pair":
			from, _ := strconv.Atoi(is.Args[0])
			to, _ := strconv.Atoi(is.Args[1])
			c["root"] = -1
			switch is.CommRank {
			case from:
				c["messages"] = [][]any{{"Send", to, is.Count}}
			case to:
				c["messages"] = [][]any{{"Recv", from, is.Count}}
			}
		}
		if rec.Name == "10-graph-3p" { // its program: see run.json
			switch i {
			case 1:
				graph = 0
			case 5, 6, 7:
				if graph = -1; i == 5 {
					for range 4 {
						replayed(0)
					}
				}
				replayed(0)
			case 8:
				graph = 1
			}
		}
		if graph >= 0 {
			c["graph"] = graph
		} else if is.Done > 0 { // of a real GPU
			c["done"], c["event_ns"] = is.Done, is.EventNs
		} else if g := gpu[op]; n[op] < len(g) && rec.Name != "10-graph-3p" {
			c["done"], c["event_ns"] = g[n[op]].reported, g[n[op]].duration
		}
		n[op]++
		add("call", c)
	}
	if rec.Name == "10-graph-3p" {
		replayed(1)
		replayed(0)
	}
	add("end", map[string]any{"t": end})
	return lines
}

var operationNames = map[string]string{"ar": "AllReduce", "ag": "AllGather", "rs": "ReduceScatter", "bc": "Broadcast",
	"rd":  "Reduce",
	"a2a": "AlltoAll", "alltoall": "AlltoAll", "gather": "Gather", "scatter": "Scatter", "sr": "Batch", "pair": "Batch"}

// spans gives for each collective, by function, how long its kernel ran and when its end was known.
func spans(p *replay.Process) map[string][]span {
	if slices.ContainsFunc(p.Events, toItself) { // stamps are other kernels' from there on
		return spansOfKernels(p)
	}
	return spansOfStamps(p)
}

func toItself(ev *replay.Event) bool {
	d, ok := ev.Descr.(*descriptor.P2p)
	return ok && int(d.Peer) == ev.Context.Rank
}

// spansOfStamps goes by the stamps that NCCL reported for each plan, and by when it reported the last of them.
func spansOfStamps(p *replay.Process) map[string][]span {
	type times struct{ begin, end, reported uint64 }
	plans := make(map[*replay.Event]*times)
	for _, ev := range p.Events {
		if ev.Type != descriptor.TypeKernelCh || ev.Parent == nil || ev.Parent.Group == nil {
			continue
		}
		t := plans[ev.Parent.Group]
		if t == nil {
			t = &times{begin: ev.Descr.(*descriptor.KernelCh).PTimer}
			plans[ev.Parent.Group] = t
		}
		t.begin = min(t.begin, ev.Descr.(*descriptor.KernelCh).PTimer)
		for _, s := range ev.States {
			if s.Args != nil && s.Args.PTimer != nil {
				t.end, t.reported = max(t.end, *s.Args.PTimer), max(t.reported, s.T)
			}
		}
	}
	out := make(map[string][]span)
	for _, ev := range p.Events {
		if d, ok := ev.Descr.(*descriptor.Coll); ok {
			s := span{}
			if t := plans[ev.Group]; t != nil && t.end > t.begin {
				s = span{t.end - t.begin, t.reported}
			}
			out[d.Func] = append(out[d.Func], s)
		}
	}
	return out
}

// spansOfKernels goes by the kernels that ran, those of a function in the order of its plans. The process has one
// communicator.
func spansOfKernels(p *replay.Process) map[string][]span {
	kernels := slices.SortedFunc(slices.Values(p.Kernels),
		func(a, b replay.Kernel) int { return cmp.Compare(a.T0, b.T0) })
	ran := make(map[string][]*replay.Kernel) // one for each plan, over all its channels
	for _, k := range kernels {
		function, _, _ := strings.Cut(k.Func, "_")
		list := ran[function]
		if n := len(list); n > 0 && k.T0 < list[n-1].T1 && k.Channel != list[n-1].Channel {
			last := list[n-1]
			last.T0, last.T1 = min(last.T0, k.T0), max(last.T1, k.T1)
			continue
		}
		ran[function] = append(list, &k)
	}
	out := make(map[string][]span)
	of := make(map[*replay.Event]*replay.Kernel)
	for _, ev := range p.Events {
		d, ok := ev.Descr.(*descriptor.Coll)
		if !ok {
			continue
		}
		k := of[ev.Group]
		if k == nil {
			k, ran[d.Func] = ran[d.Func][0], ran[d.Func][1:]
			of[ev.Group] = k
		}
		out[d.Func] = append(out[d.Func], span{k.T1 - k.T0, k.T1})
	}
	return out
}

func (f *fakeJob) harness(t *testing.T) *harness {
	return &harness{python: f.python, job: "job.py", plugin: builtFile(t, "libnccl-profiler-otf2.so"),
		tool: builtFile(t, "nccl-otf2"), work: t.TempDir()}
}
