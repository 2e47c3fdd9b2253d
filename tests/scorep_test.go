// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// instrumented is what a process's environment needs to look as if it had been linked by `scorep --user` with a thread
// model.
func instrumented(t *testing.T, model, truth string) []string {
	t.Helper()
	return []string{
		"LD_PRELOAD=" + builtFile(t, filepath.Join("fakescorep", model, "libscorep_adapter_user_event.so.11")),
		"FAKESCOREP_TRUTH=" + truth, "FAKESCOREP_MEMORY=256",
	}
}

// userRegion is a region that Score-P has to have: one call of NCCL's.
type userRegion struct {
	name  string
	bytes uint64 // value of the metric; unsized if there is to be none
	order int    // of its end among the thread's
}

const unsized = ^uint64(0)

var datatypeSizes = map[string]uint64{
	"ncclInt8": 1, "ncclUint8": 1, "ncclFloat8e4m3": 1, "ncclFloat8e5m2": 1, "ncclFloat16": 2, "ncclBfloat16": 2,
	"ncclInt32": 4, "ncclUint32": 4, "ncclFloat32": 4, "ncclInt64": 8, "ncclUint64": 8, "ncclFloat64": 8,
}

// userRegions are the regions of the calls that a recording has, by thread: a plain call is one that ends when NCCL
// leaves it, the calls within a group of the user's are one each.
func userRegions(p *replay.Process) map[*replay.Thread][]userRegion {
	inside := make(map[*replay.Event][]*replay.Event) // the plain call's operations
	out := make(map[*replay.Thread][]userRegion)
	for _, e := range p.Events {
		if e.Type != descriptor.TypeCollApi && e.Type != descriptor.TypeP2pApi {
			continue
		}
		g, thread := e.Parent, e.Start.Thread
		plain := g != nil && g.Type == descriptor.TypeGroupApi && g.Descr.(*descriptor.GroupApi).GroupDepth == 1 &&
			g.Start.Thread == thread && (g.Stop == nil || g.Stop.Index > e.Start.Index)
		if plain {
			inside[g] = append(inside[g], e)
			continue
		}
		name, bytes := callOf(e)
		out[thread] = append(out[thread], userRegion{name, bytes, e.Start.Index})
	}
	for g, calls := range inside {
		end := len(p.Calls) // with the next call, or never
		if g.Stop != nil {
			end = g.Stop.Index
		}
		for _, other := range p.Events {
			if other.Type == descriptor.TypeGroupApi && other.Start.Thread == g.Start.Thread &&
				other.Start.Index > g.Start.Index {
				end = min(end, other.Start.Index)
			}
		}
		name, bytes := plainCall(calls)
		out[g.Start.Thread] = append(out[g.Start.Thread], userRegion{name, bytes, end})
	}
	for _, regions := range out {
		slices.SortFunc(regions, func(a, b userRegion) int { return cmp.Compare(a.order, b.order) })
	}
	return out
}

func callOf(e *replay.Event) (string, uint64) {
	var name, datatype string
	var count uint64
	switch d := e.Descr.(type) {
	case *descriptor.CollApi:
		name, datatype, count = d.Func, d.Datatype, uint64(d.Count)
	case *descriptor.P2pApi:
		name, datatype, count = d.Func, d.Datatype, uint64(d.Count)
	}
	bytes := uint64(unsized)
	if datatypeSizes[datatype] != 0 {
		bytes = count * datatypeSizes[datatype]
	}
	if !slices.Contains([]string{"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "Send", "Recv",
		"AlltoAll", "Gather", "Scatter"}, name) {
		return "ncclOther", bytes
	}
	return "nccl" + name, bytes
}

// plainCall names what one plain call does: NCCL carries out some collectives as sends and receives.
func plainCall(calls []*replay.Event) (string, uint64) {
	name, bytes := callOf(calls[0])
	if len(calls) == 1 {
		return name, bytes
	}
	sum := map[string]uint64{}
	n := map[string]int{}
	known, ranks := true, 0
	for _, e := range calls {
		name, bytes := callOf(e)
		known = known && bytes != unsized
		sum[name] += bytes
		n[name]++
		if e.Context != nil {
			ranks = e.Context.NRanks
		}
	}
	bytes = max(sum["ncclSend"], sum["ncclRecv"])
	if !known {
		bytes = unsized
	}
	switch [2]int{n["ncclSend"], n["ncclRecv"]} {
	case [2]int{ranks, ranks}:
		return "ncclAlltoAll", bytes
	case [2]int{1, ranks}:
		return "ncclGather", bytes
	case [2]int{ranks, 1}:
		return "ncclScatter", bytes
	}
	return "ncclSendRecv", bytes
}

// text of a thread's regions, for comparing.
func regionsText(regions []userRegion) string {
	var b strings.Builder
	for _, r := range regions {
		fmt.Fprintf(&b, "%s", r.name)
		if r.bytes != unsized {
			fmt.Fprintf(&b, " %d", r.bytes)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// readUserRegions reads what the fake recorded, by thread, the main one first, and holds it against the rules: all is
// balanced, and values are those of the region that they lie in.
func readUserRegions(t *testing.T, path string) (threads [][]userRegion, ignored int) {
	t.Helper()
	text := testkit.Value(os.ReadFile(path))(t)
	open := map[int][]userRegion{}
	threads = [][]userRegion{nil}
	ended := false
	for line := range bytes.Lines(text) {
		var e struct {
			Thread          int
			Event           string
			Name, File      string
			Value           uint64
			Ignored, Closed int
		}
		err := json.Unmarshal(line, &e)
		testkit.Require(t, err == nil, "%s: %v", line, err)
		for e.Thread >= len(threads) {
			threads = append(threads, nil)
		}
		stack := open[e.Thread]
		switch e.Event {
		case "counts":
			ended, ignored = true, e.Ignored
			testkit.Equal(t, e.Closed, 0, "regions were open when their threads ended")
		case "enter":
			testkit.Check(t, e.Name == "main" || e.File == "NCCL", "region %s is of file %q", e.Name, e.File)
			open[e.Thread] = append(stack, userRegion{name: e.Name, bytes: unsized})
		case "metric":
			testkit.Require(t, len(stack) != 0 && e.Name == "nccl_bytes" && stack[len(stack)-1].bytes == unsized,
				"a value of %s where none is to be", e.Name)
			stack[len(stack)-1].bytes = e.Value
		case "leave":
			testkit.Require(t, len(stack) != 0 && stack[len(stack)-1].name == e.Name,
				"thread %d leaves %s, in %v", e.Thread, e.Name, stack)
			if e.Name != "main" {
				threads[e.Thread] = append(threads[e.Thread], stack[len(stack)-1])
			}
			open[e.Thread] = stack[:len(stack)-1]
		}
	}
	for thread, stack := range open {
		testkit.Check(t, len(stack) == 0, "thread %d: %v are open", thread, stack)
	}
	testkit.Check(t, ended, "%s has no end", path)
	return threads, ignored
}

// playInstrumented plays a recording in processes with a Score-P, and gives what each process's Score-P has, and what
// the plugin said.
func playInstrumented(t *testing.T, rec *replay.Recording, model string, changes ...change) (
	[][][]userRegion, *replay.Result) {
	t.Helper()
	dir := t.TempDir()
	changes = append([]change{spool, env(instrumented(t, model, filepath.Join(dir, "truth-%p"))...)}, changes...)
	res := run(t, rec, usual(t, filepath.Join(dir, "experiment"), changes...))
	var out [][][]userRegion
	for i := range res.Processes {
		testkit.Check(t, !strings.Contains(res.Processes[i].Stderr, "fakescorep"),
			"Score-P says %s", res.Processes[i].Stderr)
		threads, ignored := readUserRegions(t, filepath.Join(dir, fmt.Sprint("truth-", res.Processes[i].PID)))
		testkit.Check(t, ignored == 0, "process %d called Score-P %d times behind its measurement", i, ignored)
		out = append(out, threads)
	}
	return out, res
}

// compareUserRegions holds what a process's Score-P has against its recording.
func compareUserRegions(t *testing.T, p *replay.Process, model string, got [][]userRegion) (calls int) {
	t.Helper()
	var main string
	var wantOthers, gotOthers []string
	for thread, regions := range userRegions(p) {
		calls += len(regions)
		switch text := regionsText(regions); {
		case thread.TID == p.PID:
			main = text
		case model == "pthread":
			wantOthers = append(wantOthers, text)
		}
	}
	testkit.Equal(t, gocmp.Diff(main, regionsText(got[0])), "", "process %d, main thread", p.Index)
	for _, regions := range got[1:] {
		if text := regionsText(regions); text != "" {
			gotOthers = append(gotOthers, text)
		}
	}
	slices.Sort(wantOthers)
	slices.Sort(gotOthers)
	testkit.Equal(t, gocmp.Diff(wantOthers, gotOthers), "", "process %d, other threads", p.Index)
	return calls
}

var scorepModels = []string{"none", "omp", "pthread"}

// Every call of every recording arrives in Score-P, balanced and on its thread, if its thread model allows that thread.
func TestScorepGetsTheCallsOfRecordings(t *testing.T) {
	for i, rec := range recordings(t) {
		for j, model := range scorepModels {
			c := []replay.Clock{replay.ClockRecorded, replay.ClockLive}[(i+j)%2] // in turn: calls have no times
			t.Run(fmt.Sprint(rec.Name, "/", model, "/", c), func(t *testing.T) {
				t.Parallel()
				got, _ := playInstrumented(t, rec, model, clock(c))
				for i, p := range rec.Processes {
					calls := compareUserRegions(t, p, model, got[i])
					testkit.Check(t, calls != 0, "process %d made no calls", i)
				}
			})
		}
	}
}

// Whatever NCCL does, Score-P does not abort, and has every call.
func TestScorepLivesWithHazards(t *testing.T) {
	turn := 0
	for _, h := range hazards {
		for _, release := range h.releases {
			if !slices.Contains(withAPI, release) {
				continue
			}
			model := scorepModels[turn%len(scorepModels)] // in turn: what differs is which threads are told
			turn++
			t.Run(fmt.Sprintf("%s/%s/%s", h.name, release, model), func(t *testing.T) {
				t.Parallel()
				rec := h.load(t, release)
				got, _ := playInstrumented(t, rec, model, env(h.env...))
				for i, p := range rec.Processes {
					compareUserRegions(t, p, model, got[i])
				}
			})
		}
	}
}

// Jobs of any operations and misuses.
func TestScorepLivesWithRandomJobs(t *testing.T) {
	calls := 0
	for seed := range uint64(24) {
		rec := testkit.Value(scenario.Random(seed, scenario.RandomOptions{Release: withAPI[seed%3],
			Hazards: seed%2 == 1}).Load(
			t.TempDir()))(t)
		model := scorepModels[seed/2%3]
		got, _ := playInstrumented(t, rec, model)
		for i, p := range rec.Processes {
			calls += compareUserRegions(t, p, model, got[i])
		}
		testkit.Require(t, !t.Failed(), "seed %d, %s, %s", seed, rec.Run.NCCL, model)
	}
	testkit.Check(t, calls >= 1000, "%d calls only", calls)
}

// callsOfManyThreads is a job whose calls come from more threads than Score-P has memory for, if nobody raises it.
func callsOfManyThreads(t *testing.T) *replay.Recording {
	t.Helper()
	s := scenario.New("many-threads", "2.28.9")
	ranks := pair(s)
	for range 40 {
		for _, r := range ranks {
			r.App = r.App.Process().ShortThread("")
			r.Call(allReduce)
		}
	}
	scenario.Leave(ranks)
	return testkit.Value(s.Load(filepath.Join(t.TempDir(), "many-threads")))(t)
}

// checkManyThreads wants the calls of some threads, all of those.
func checkManyThreads(t *testing.T, got [][][]userRegion) {
	t.Helper()
	for i := range got {
		calls := 0
		for _, thread := range got[i] {
			calls += len(thread)
		}
		testkit.Check(t, calls >= 8 && calls <= 13,
			"process %d: %d of 40 calls, each from a thread of its own", i, calls)
	}
}

// Each thread takes of Score-P's memory for good: it gets to know no more than it has room for.
func TestScorepKeepsItsMemory(t *testing.T) {
	got, _ := playInstrumented(t, callsOfManyThreads(t), "pthread", env("FAKESCOREP_MEMORY=16"))
	checkManyThreads(t, got)
}

// Before and behind the measurement, in a pause, and where jobs end otherwise than in order, Score-P is left alone.
func TestScorepIsLeftAlone(t *testing.T) {
	rec := recording(t, "01-allreduce-2p")
	for _, variable := range []string{"FAKESCOREP_PHASE=-1", "FAKESCOREP_PHASE=1", "FAKESCOREP_RECORDING=off",
		"NCCL_OTF2_SCOREP=off"} {
		t.Run(variable, func(t *testing.T) {
			got, _ := playInstrumented(t, rec, "none", env(variable))
			for i := range got {
				testkit.Check(t, len(got[i][0]) == 0, "Score-P was told %v", got[i][0])
			}
		})
	}
	t.Run("no finalize", func(t *testing.T) {
		got, _ := playInstrumented(t, rec, "pthread", func(o *replay.Options) { o.NoFinalize = true })
		for i, p := range rec.Processes {
			compareUserRegions(t, p, "pthread", got[i])
		}
	})
}

// What became of the calls is in the shards and in the archive, and what the user can do about it in the log.
func TestScorepStateIsVisible(t *testing.T) {
	for _, tc := range []struct {
		name, recording string
		env             func(t *testing.T) []string
		state, said     string
		counts          []string
	}{
		{"forwarded", "01-allreduce-2p", func(t *testing.T) []string { return instrumented(t, "none", os.DevNull) },
			"on (none)", "", []string{"FORWARDED"}},
		{"all threads", "04-threads-4r", func(t *testing.T) []string { return instrumented(t, "pthread", os.DevNull) },
			"on (pthread)", "", []string{"FORWARDED"}},
		{"other threads", "04-threads-4r", func(t *testing.T) []string { return instrumented(t, "omp", os.DevNull) },
			"on (omp)",
			"from other threads than the main one", []string{"OTHER_THREADS"}},
		{"no user regions", "01-allreduce-2p", func(t *testing.T) []string {
			return []string{"LD_PRELOAD=" + builtFile(t, "fakescorep/none/libscorep_measurement.so")}
		}, "unusable: the program has not loaded Score-P's user regions; start it with LD_PRELOAD=",
			"start it with LD_PRELOAD=", nil},
		{"none there", "01-allreduce-2p", func(*testing.T) []string { return []string{"NCCL_OTF2_SCOREP=on"} },
			"absent: this process shows none", "instrument the program", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rec, dir := recording(t, tc.recording), filepath.Join(t.TempDir(), "experiment")
			res := run(t, rec, usual(t, dir, env("NCCL_OTF2_EVENTS=gpu"), env(tc.env(t)...)))
			waitDone(t, dir, len(rec.Processes))
			for _, p := range shardsByProcess(t, dir) {
				testkit.Check(t, p.Scorep != nil && strings.HasPrefix(tc.state, p.Scorep.State), "Score-P: %+v",
					p.Scorep)
				var names []string
				for name, n := range p.Counts.Scorep {
					names = append(names, name)
					// Plain calls and calls in groups: no more than calls there are.
					calls := p.Counts.Starts["CollApi"] + p.Counts.Starts["P2pApi"]
					testkit.Check(t, n != 0 && n <= calls, "%s: %d of %d calls", name, n, calls)
				}
				testkit.Check(t, slices.Equal(names, tc.counts), "calls %v, want %v", p.Counts.Scorep, tc.counts)
			}
			for i := range res.Processes {
				said := res.Processes[i].Stderr
				testkit.Check(t, (tc.said != "" || said == "") &&
					(tc.said == "" || strings.Count(said, "\n") == 1 && strings.Contains(said, tc.said)),
					"the plugin says %q", said)
			}
			a := openArchive(t, unified(t, dir))
			self := selfreport.Read(a)
			if !slices.ContainsFunc(self.Recording, func(v selfreport.Value) bool {
				return v.Name == "SCOREP_STATE" && v.Processes == "all" && strings.HasPrefix(v.Value, tc.state)
			}) {
				t.Errorf("the archive says %+v", self.Recording)
			}
			for _, name := range tc.counts {
				if !slices.ContainsFunc(self.Counts, func(c selfreport.Count) bool {
					return c.Kind == "SCOREP" && c.Name == name && c.Count > 0
				}) {
					t.Errorf("the archive does not count %s: %+v", name, self.Counts)
				}
			}
		})
	}
}
