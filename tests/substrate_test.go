// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

const pauseCalls, pauseThreads = 5, 3

// runPauses runs the program fakescorep/pauses with our substrate plugin in its measurement, and gives what the NCCL
// plugin left and the tids of its threads, the main one's first.
func runPauses(t *testing.T, program, dir string, env ...string) (*description.Process, []int) {
	t.Helper()
	directory := filepath.Join(dir, "experiment")
	out, errs := execPauses(t, []string{program}, append([]string{"NCCL_OTF2_DIR=" + directory, "NCCL_OTF2_UNIFY=off",
		"SCOREP_SUBSTRATE_PLUGINS=nccl_otf2", "LD_LIBRARY_PATH=" +
			filepath.Dir(builtFile(t, "libscorep_substrate_nccl_otf2.so"))}, env...))
	for line := range strings.Lines(errs) {
		testkit.Require(t, isLateThread(line), "%v", errs)
	}
	tids := tidsOf(t, out)
	waitDone(t, directory, 1)
	unified(t, directory)
	return shardsByProcess(t, directory)[tids[0]], tids
}

// execPauses runs a command line with the arguments of fakescorep/pauses behind it.
func execPauses(t *testing.T, line, env []string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(line[0], append(line[1:], builtFile(t, "libnccl-profiler-otf2.so"), strconv.Itoa(pauseCalls),
		strconv.Itoa(pauseThreads))...)
	cmd.Env = append(append(os.Environ(), "NCCL_OTF2_EVENTS=light", "NCCL_OTF2_START_LIMIT=60"), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out := testkit.Output(t, cmd)
	return string(out), errs.String()
}

// tidsOf are the lines that are numbers.
func tidsOf(t *testing.T, out string) (tids []int) {
	t.Helper()
	for line := range strings.Lines(out) {
		if tid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			tids = append(tids, tid)
		}
	}
	testkit.Require(t, len(tids) == 1+pauseThreads, "pauses printed %q", out)
	return tids
}

// checkPauses wants the calls of the pause to be missing, and no others, and to be known to be.
func checkPauses(t *testing.T, p *description.Process, dir string) {
	t.Helper()
	testkit.Require(t, len(p.Comms) == 1+pauseThreads, "%d communicators", len(p.Comms))
	for _, c := range p.Comms {
		want, gaps := uint64(pauseCalls), []description.Gap(nil)
		if c.ID == 1 {
			want = 2 * pauseCalls
			gaps = []description.Gap{{From: pauseCalls, To: 2 * pauseCalls}}
		}
		testkit.Equal(t, c.Sequences["AllReduce"].Count, want, "communicator %d: operations", c.ID)
		for i := range c.Gaps {
			c.Gaps[i].FromTime, c.Gaps[i].ToTime = 0, 0
		}
		testkit.Equal(t, gocmp.Diff(gaps, c.Gaps), "", "communicator %d: gaps", c.ID)
	}
	testkit.Equal(t, p.Counts.Paused["CollApi"], pauseCalls, "calls in the pause")
	a := openArchive(t, filepath.Join(dir, "experiment", "traces.otf2"))
	var switches []otf2.MeasurementMode
	for e, err := range a.Events(&otf2.Selection{Kinds: otf2.Kinds(otf2.EventMeasurementOnOff)}) {
		testkit.Must(t, err)
		switches = append(switches, e.MeasurementOnOff().MeasurementMode)
	}
	testkit.Check(t, slices.Equal(switches, []otf2.MeasurementMode{otf2.MeasurementOff, otf2.MeasurementOn}),
		"recording went %v", switches)
}

// What is called while Score-P's recording is off is not in the archive either, and Score-P's locations are known by
// thread.
func TestScorepSubstrate(t *testing.T) {
	dir := t.TempDir()
	p, tids := runPauses(t, builtFile(t, "fakescorep/pauses"), dir,
		append(instrumented(t, "pthread", filepath.Join(dir, "truth")), "FAKESCOREP_RANK=7")...)
	checkPauses(t, p, dir)
	testkit.Require(t, p.Scorep != nil && p.Scorep.Substrate != nil && p.Scorep.Substrate.Rank == 7, "Score-P: %+v",
		p.Scorep)
	// Which of the threads was first is up to the system.
	var got, locations []int
	for _, thread := range p.Scorep.Substrate.Threads {
		got = append(got, thread.TID)
		locations = append(locations, int(thread.Location))
	}
	testkit.Check(t, got[0] == tids[0] && slices.Equal(locations, []int{0, 1, 2, 3}),
		"threads %+v, the main one is %d", p.Scorep.Substrate.Threads, tids[0])
	slices.Sort(got)
	slices.Sort(tids)
	testkit.Check(t, slices.Equal(got, tids), "threads %v, want %v", got, tids)
	threads, _ := readUserRegions(t, filepath.Join(dir, "truth"))
	calls := 0
	for _, regions := range threads {
		calls += len(regions)
	}
	if want := (2 + pauseThreads) * pauseCalls; calls != want || p.Counts.Scorep["FORWARDED"] != uint64(want) {
		t.Errorf("%d calls forwarded, %v, want %d", calls, p.Counts.Scorep, want)
	}
}

// `run` finds the substrate plugin by itself: nothing is set but what tells of Score-P.
func TestRunFindsTheSubstratePlugin(t *testing.T) {
	dir := t.TempDir()
	line := []string{builtFile(t, "nccl-otf2"), "run", "--dir", filepath.Join(dir, "experiment"), "--", "env"}
	line = append(append(line, instrumented(t, "pthread", filepath.Join(dir, "truth"))...), "FAKESCOREP_RANK=7",
		builtFile(t, "fakescorep/pauses"))
	out, errs := execPauses(t, line, []string{"SCOREP_ENABLE_PROFILING=true", "LD_LIBRARY_PATH="})
	tids := tidsOf(t, out)
	p := shardsByProcess(t, filepath.Join(dir, "experiment"))[tids[0]]
	testkit.Require(t, p != nil && p.Scorep != nil && p.Scorep.Substrate != nil && p.Scorep.Substrate.Rank == 7,
		"Score-P did not load the plugin: %+v\n%s", p, errs)
	checkPauses(t, p, dir)
}

// The real Score-P tells the same, and its traces name the same threads.
func TestRealScorepSubstrate(t *testing.T) {
	for _, kind := range []string{"pthread", "omp", "none"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			program := buildRealPauses(t, kind, dir)
			p, tids := runPauses(t, program, dir, "SCOREP_ENABLE_TRACING=true",
				"SCOREP_EXPERIMENT_DIRECTORY="+filepath.Join(dir, "scorep"))
			checkPauses(t, p, dir)
			testkit.Require(t, p.Scorep != nil && p.Scorep.Substrate != nil, "nothing is known of Score-P")
			got := make(map[otf2.LocationRef][]int)
			for _, thread := range p.Scorep.Substrate.Threads {
				id := otf2.LocationRef(thread.Location)<<32 | otf2.LocationRef(p.Scorep.Substrate.Rank)
				got[id] = append(got[id], thread.TID)
			}
			// Score-P 9 has locations of the plugin's own thread, too.
			ofApplication := func(byLocation map[otf2.LocationRef][]int) map[otf2.LocationRef][]int {
				maps.DeleteFunc(byLocation, func(_ otf2.LocationRef, threads []int) bool {
					return !slices.ContainsFunc(threads, func(tid int) bool { return slices.Contains(tids, tid) })
				})
				return byLocation
			}
			want := ofApplication(threadsInTrace(t, filepath.Join(dir, "scorep")))
			d := gocmp.Diff(want, ofApplication(got))
			testkit.Check(t, d == "" && len(want) != 0, "threads by location: %s", d)
		})
	}
}

// threadsInTrace are the threads of a measurement's locations, by what Score-P writes with the begins of processes and
// threads.
func threadsInTrace(t *testing.T, dir string) map[otf2.LocationRef][]int {
	t.Helper()
	a := openArchive(t, filepath.Join(dir, "traces.otf2"))
	names := make(map[otf2.AttributeRef]string)
	for _, d := range a.Defs.Attributes {
		names[d.Self] = a.Defs.String(d.Name)
	}
	threads := make(map[otf2.LocationRef][]int)
	for e, err := range a.Events(nil) {
		testkit.Must(t, err)
		for _, attribute := range e.Attributes {
			if name := names[attribute.ID]; name == "ProcessId" || name == "ThreadId" {
				if tid := int(attribute.Bits); !slices.Contains(threads[e.Location], tid) {
					threads[e.Location] = append(threads[e.Location], tid)
				}
			}
		}
	}
	return threads
}

// buildRealPauses links fakescorep/pauses with the Score-P on the PATH. It stands for NCCL, whose functions are not
// instrumented.
func buildRealPauses(t *testing.T, kind, dir string) string {
	t.Helper()
	if _, err := exec.LookPath("scorep"); err != nil {
		t.Skip(noRealScorep)
	}
	k := realHostKinds[kind]
	gcc := slices.Concat([]string{"--user", "--nocompiler", "--thread=" + k.model, "gcc", "-D_GNU_SOURCE", "-O1",
		"-I.."}, k.flags)
	program := filepath.Join(dir, "pauses")
	for _, args := range [][]string{
		{"-Dmain=replay_host_main", "-c", "fakescorep/pauses.c", "-o", program + ".o"},
		{"-c", "realscorep/main.c", "-o", program + "-main.o"},
		{program + ".o", program + "-main.o", "-rdynamic", "-ldl", "-o", program},
	} {
		testkit.Output(t, exec.Command("scorep", slices.Concat(gcc, args)...))
	}
	return program
}
