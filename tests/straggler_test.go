// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// traced is what a rank did in a step of a traced training job. Times are s since the step began.
type traced struct {
	Replica int32   `parquet:"dp_rank"`
	Stage   int32   `parquet:"stage"`
	Step    int64   `parquet:"step"`
	What    string  `parquet:"optype"`
	Begin   float32 `parquet:"start_ts"`
	Took    float32 `parquet:"duration"`
}

// tracedError is how far times of consecutive operations of a rank in these traces contradict each other at most, ns.
const tracedError = 140_000

// Public traces of Megatron jobs, whose slow workers and stages have been simulated away by others: "Understanding
// Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025). The traces have each rank's computations and
// operations, with their waits. Two operations are missing, as nobody of these goes on before all have come: the last
// stages meet after their last message, and then the first replica's stages do. They are filled in. Of the ranks of a
// tensor-parallel group the traces have one.
func TestStragglersOfPublicTraces(t *testing.T) {
	dir := os.Getenv("STRAGGLER_DATA")
	if dir == "" {
		t.Skip("SKIPPED, NOT TESTED: STRAGGLER_DATA names no folder with trace-AR.parquet, mw-AR.json and so on")
	}
	stage := make([]int, 32)
	for i := range stage {
		stage[i] = 32 + i
	}
	for _, c := range []struct {
		job, truth   string
		ranks, named []int // the ranks without which the run is shorter, and those of them that are named one by one
	}{{"AR", "mw-AR.json", []int{0}, []int{0}}, {"ST", "ms-ST.json", []int{6, 7}, []int{6, 7}},
		{"SE", "ms-SE.json", stage, nil}} {
		t.Run(c.job, func(t *testing.T) {
			var truth struct{ Tori, Trem, Tideal float64 }
			testkit.Must(t, json.Unmarshal(testkit.Read(t, filepath.Join(dir, c.truth)), &truth))
			rows := testkit.Value(parquet.ReadFile[traced](filepath.Join(dir, "trace-"+c.job+".parquet")))(t)
			from, to := t.TempDir(), filepath.Join(t.TempDir(), "archive")
			writeTraced(t, from, rows)
			testkit.Output(t, exec.Command(builtFile(t, "nccl-otf2"), "import", "-o", to, from))
			var r struct {
				Verdict      struct{ Culprits []struct{ Rank int } }
				CriticalPath struct {
					Length float64 `json:"length_ns"`
					WhatIf []struct {
						Change string
						Rank   int
						Ranks  []int
						Gain   float64 `json:"gain_ns"`
					} `json:"what_if"`
				} `json:"critical_path"`
			}
			out := testkit.Output(t, exec.Command(builtFile(t, "nccl-otf2"), "report", "--format", "json", to))
			testkit.Must(t, json.Unmarshal(out, &r))
			var named []int
			for _, culprit := range r.Verdict.Culprits {
				named = append(named, culprit.Rank)
			}
			slices.Sort(named)
			testkit.Same(t, named, c.named)
			gains := make([]float64, 2)
			want := []float64{100 * (1 - truth.Trem/truth.Tori), 100 * (1 - truth.Tideal/truth.Tori)}
			for _, w := range r.CriticalPath.WhatIf {
				if len(w.Ranks) == 0 {
					w.Ranks = []int{w.Rank}
				}
				switch gain := 100 * w.Gain / r.CriticalPath.Length; {
				case slices.Equal(w.Ranks, c.ranks):
					gains[0] = gain
				case w.Change == "ranks":
					gains[1] = gain
				}
			}
			if len(c.named) > 0 { // one cause: all together save what it does, and have no row
				gains, want = gains[:1], want[:1]
			}
			t.Logf("without it, and with all alike, the run would be %.1f %% shorter; in truth %.1f %%", gains, want)
			for i, gain := range gains {
				testkit.Check(t, math.Abs(gain-want[i]) < 5, "more than 5 points off")
			}
		})
	}
}

// writeTraced writes the records of a job, a file for each rank: its steps one after the other.
func writeTraced(t *testing.T, dir string, rows []traced) {
	slices.SortStableFunc(rows, func(a, b traced) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Begin, b.Begin))
	})
	replicas, stages := 0, 0
	for _, r := range rows {
		replicas, stages = max(replicas, int(r.Replica)+1), max(stages, int(r.Stage)+1)
	}
	files, since := make([]bytes.Buffer, replicas*stages), 1.0
	plans, counts, last := make([]int, len(files)), make(map[string]int), make([]float64, len(files))
	draw := func(at int, begin, end float32, op tracedOperation) {
		replica, stage := at%replicas, at/replicas
		of := [...]struct{ id, rank, ranks int }{dp: {100 + stage, replica, replicas}, pp: {200 + replica, stage, stages},
			embedding: {300 + replica, min(stage, 1), 2}, world: {400, at, len(files)}, first: {500, stage, stages}}[op.comm]
		record := func(kind, function string, begin, end float64, details map[string]any) {
			testkit.Must(t, json.NewEncoder(&files[at]).Encode(map[string]any{"recordType": "event", "type": kind,
				"func": function, "gpuUuid": fmt.Sprint("GPU-", at), "commId": of.id, "rank": of.rank,
				"start": map[string]float64{"ts": begin * 1e6}, "stop": map[string]float64{"ts": end * 1e6},
				"myPid": 100 + at, "eventAddr": fmt.Sprintf("%#x", files[at].Len()+1), "details": details}))
		}
		if counts[fmt.Sprint(at, of.id)]++; counts[fmt.Sprint(at, of.id)] == 1 {
			record("ProfilerLifecycle", "ProfilerInit", 0, 0, map[string]any{"host": fmt.Sprint("node", at/8),
				"worldRank": at, "worldSize": len(files), "nranks": of.ranks, "source": "nccl-otf2", "epoch": 1e15})
		}
		from, kind, key := since+float64(begin), "ncclProfileColl", fmt.Sprint(at, of.id, op)
		if from != last[at] { // messages of one begin are one launch
			plans[at]++
		}
		details := map[string]any{"func": op.function, "count": 1, "dtype": "ncclFloat32", "ordinal": counts[key],
			"timingSource": "gpu", "uncertaintyNs": tracedError / 2, "plan": plans[at]}
		if op.comm == pp {
			kind, details["peer"] = "ncclProfileP2p", stage+op.peer
		}
		record(kind, op.function, from, since+float64(end), details)
		counts[key]++
		last[at] = from
	}
	for n := 0; len(rows) > 0; rows = rows[n:] {
		n = slices.IndexFunc(append(rows[:len(rows):len(rows)], traced{Step: -1}),
			func(r traced) bool { return r.Step != rows[0].Step })
		left, met, ended := make([]float32, len(files)), float32(math.MaxFloat32), float32(0)
		for _, r := range rows[:n] {
			if ended = max(ended, r.Begin+r.Took); int(r.Stage) == stages-1 && r.What == "layernorm-grads-all-reduce" {
				met = min(met, r.Begin)
			}
		}
		for _, r := range rows[:n] {
			at, end := int(r.Stage)*replicas+int(r.Replica), r.Begin+r.Took
			op, known := tracedOperations[r.What]
			switch {
			case known:
				draw(at, r.Begin, end, op)
			case r.What == "layernorm-grads-all-reduce":
				if int(r.Stage) == stages-1 {
					draw(at, left[at], met, tracedOperation{"AllReduce", dp, 0})
					left[at] = met
				}
				if r.Replica == 0 {
					draw(at, left[at], r.Begin, tracedOperation{"AllReduce", first, 0})
				}
			}
			left[at] = max(left[at], end)
		}
		since += float64(ended) + 0.001
	}
	for at := range files {
		path := filepath.Join(dir, fmt.Sprintf("trace_1_pid%d.jsonl", 100+at))
		testkit.Must(t, os.WriteFile(path, files[at].Bytes(), 0o600))
	}
}

// Communicators of a traced job.
const (
	dp        = iota // a stage's replicas
	pp               // a replica's stages
	embedding        // its first and its last one
	world
	first // the first replica's stages
)

type tracedOperation struct {
	function   string
	comm, peer int // peer: how many stages later the other end of a message is
}

var tracedOperations = map[string]tracedOperation{
	"params-all-gather":          {"AllGather", dp, 0},
	"forward-send":               {"Send", pp, 1},
	"forward-recv":               {"Recv", pp, -1},
	"backward-send":              {"Send", pp, -1},
	"backward-recv":              {"Recv", pp, 1},
	"embedding-grads-all-reduce": {"AllReduce", embedding, 0},
	"grads-reduce-scatter":       {"ReduceScatter", dp, 0},
	"optimizer-clip-main-grad":   {"AllReduce", world, 0},
}
