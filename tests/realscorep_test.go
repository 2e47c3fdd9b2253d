// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

const noRealScorep = "SKIPPED, NOT TESTED: no Score-P on the PATH; tests/fakescorep stands for it"

// realHosts are the test hosts instrumented with the Score-P on the PATH, by kind; each is built once.
var realHosts = struct {
	sync.Mutex
	dir   string
	built map[string]error
}{built: map[string]error{}}

// A realHostKind is how a host is made.
type realHostKind struct {
	model   string // Score-P's thread model
	flags   []string
	library bool // the host is a library, as NCCL is: Score-P does not see its threads before they call it
	nccl    bool // the functions that stand for NCCL's are instrumented, too
}

var realHostKinds = map[string]realHostKind{
	"none":         {model: "none"},
	"pthread":      {model: "pthread", flags: []string{"-pthread"}},
	"orphans":      {model: "pthread", flags: []string{"-pthread"}, library: true},
	"omp":          {model: "omp", flags: []string{"-fopenmp"}},
	"instrumented": {model: "pthread", flags: []string{"-pthread"}, nccl: true},
}

func needRealScorep(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("scorep"); err != nil {
		t.Skip(noRealScorep)
	}
}

// realHost is a host that writes its measurement to DIR/scorep-<rank>, DIR being $REALSCOREP_DIR.
func realHost(t *testing.T, kind string) string {
	t.Helper()
	needRealScorep(t)
	realHosts.Lock()
	defer realHosts.Unlock()
	if realHosts.dir == "" {
		dir := testkit.Value(filepath.Abs("../build/realscorep"))(t)
		realHosts.dir = dir
	}
	dir := filepath.Join(realHosts.dir, kind)
	err, built := realHosts.built[kind]
	if !built {
		err = buildRealHost(dir, realHostKinds[kind])
		realHosts.built[kind] = err
	}
	testkit.Must(t, err)
	return filepath.Join(dir, "host")
}

func buildRealHost(dir string, kind realHostKind) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	sources, err := filepath.Glob("../internal/replay/host/*.c")
	if err != nil {
		return err
	}
	sources = slices.DeleteFunc(sources, func(s string) bool {
		return filepath.Base(s) == "library.c" // a library of its own
	})
	run := func(command string, args ...string) error {
		if out, err := exec.Command(command, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", command, strings.Join(args, " "), err, out)
		}
		return nil
	}
	gcc := []string{"gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-I..", "-fPIC"}
	instrumentation := "--nocompiler" // what is linked together with NCCL counts as NCCL
	if kind.library || kind.nccl {
		instrumentation = "--compiler"
	}
	instrumented := slices.Concat([]string{"--user", instrumentation, "--thread=" + kind.model}, gcc, kind.flags)
	var objects []string
	for _, source := range sources {
		object := filepath.Join(dir, filepath.Base(source)+".o")
		compiler := gcc
		if kind.nccl {
			compiler = append([]string{"scorep"}, instrumented...)
		}
		args := slices.Concat(compiler[1:], []string{"-c", source, "-o", object})
		if filepath.Base(source) == "main.c" {
			args = append(args, "-Dmain=replay_host_main")
		}
		if err := run(compiler[0], args...); err != nil {
			return err
		}
		objects = append(objects, object)
	}
	if kind.library {
		library := filepath.Join(dir, "libreplay-host.so")
		if err := run("gcc", append(objects, "-shared", "-o", library, "-pthread", "-ldl")...); err != nil {
			return err
		}
		objects = []string{library, "-Wl,-rpath," + dir}
	}
	own := filepath.Join(dir, "own.o")
	if err := run("scorep", slices.Concat(instrumented,
		[]string{"-c", "realscorep/main.c", "-o", own})...); err != nil {
		return err
	}
	if err := run("scorep", slices.Concat(instrumented, []string{own}, objects,
		[]string{"-rdynamic", "-ldl", "-o", filepath.Join(dir, "replay-host")})...); err != nil {
		return err
	}
	if err := os.Symlink("../../libexec/nccl-otf2/callers", filepath.Join(dir, "callers")); err != nil {
		return err
	}
	script :=
		"#!/bin/sh\nSCOREP_EXPERIMENT_DIRECTORY=$REALSCOREP_DIR/scorep-$RANK exec \"${0%/*}/replay-host\" \"$@\"\n"
	return os.WriteFile(filepath.Join(dir, "host"), []byte(script), 0o755)
}

// readMeasurement reads what Score-P traced of user regions of ours, by location, the master's first, in the order of
// their ends.
func readMeasurement(t *testing.T, dir string) [][]userRegion {
	t.Helper()
	a := openArchive(t, filepath.Join(dir, "traces.otf2"))
	text := func(s otf2.StringRef) string { return a.Defs.String(s) }
	regions := make(map[otf2.RegionRef]string)
	for _, r := range a.Defs.Regions {
		if text(r.SourceFile) == "NCCL" {
			regions[r.Self] = text(r.Name)
		}
	}
	metrics := make(map[otf2.MetricRef]bool)
	members := make(map[otf2.MetricMemberRef]bool)
	for _, m := range a.Defs.MetricMembers {
		members[m.Self] = text(m.Name) == "nccl_bytes"
	}
	for _, c := range a.Defs.MetricClasses {
		metrics[c.Self] = len(c.Members) == 1 && members[c.Members[0]]
	}
	var threads [][]userRegion
	for _, location := range a.Defs.Locations {
		var stack, ended []userRegion
		for e, err := range a.EventsOf(location.Self) {
			testkit.Must(t, err)
			switch e.Kind {
			case otf2.EventEnter:
				stack = append(stack, userRegion{name: regions[e.Enter().Region], bytes: unsized})
			case otf2.EventLeave:
				if len(stack) == 0 || stack[len(stack)-1].name != regions[e.Leave().Region] {
					t.Fatalf("%s: location %#x leaves %q in %v", dir, location.Self, regions[e.Leave().Region], stack)
				}
				if top := stack[len(stack)-1]; top.name != "" {
					ended = append(ended, top)
				}
				stack = stack[:len(stack)-1]
			case otf2.EventMetric:
				if m := e.Metric(); metrics[m.Metric] {
					if _, value := m.At(0); len(stack) > 0 && stack[len(stack)-1].bytes == unsized {
						stack[len(stack)-1].bytes = value
					} else {
						t.Fatalf("%s: location %#x has a value of nccl_bytes in %v", dir, location.Self, stack)
					}
				}
			}
		}
		testkit.Check(t, len(stack) == 0, "%s: %v are open on location %#x", dir, stack, location.Self)
		threads = append(threads, ended)
	}
	return threads
}

// checkProfile holds a measurement's profile against its trace: visits and bytes of each region of ours.
func checkProfile(t *testing.T, dir string, threads [][]userRegion) {
	t.Helper()
	p := testkit.Value(cube.Open(filepath.Join(dir, "profile.cubex")))(t)
	defer p.Close()
	type sum struct{ visits, bytes uint64 }
	got, want := make(map[string]sum), make(map[string]sum)
	for _, thread := range threads {
		for _, r := range thread {
			s := want[r.name]
			s.visits++
			if r.bytes != unsized {
				s.bytes += r.bytes
			}
			want[r.name] = s
		}
	}
	var row cube.Row
	for i, c := range p.Cnodes {
		region := p.Regions[c.Callee]
		if region.Module != "NCCL" {
			continue
		}
		s := got[region.Name]
		for m, metric := range p.Metrics {
			if metric.UniqueName != "visits" && metric.UniqueName != "nccl_bytes" {
				continue
			}
			testkit.Value(p.Row(cube.MetricID(m), cube.CnodeID(i), &row))(t)
			for l := range p.Locations {
				if v := uint64(row.At(cube.LocationID(l)).Float64()); metric.UniqueName == "visits" {
					s.visits += v
				} else {
					s.bytes += v
				}
			}
		}
		got[region.Name] = s
	}
	testkit.Equal(t, gocmp.Diff(want, got, gocmp.AllowUnexported(sum{})), "",
		"%s: the profile is not what was traced", dir)
}

// checkReadable lets the reference tools read a measurement, as far as they are there.
func checkReadable(t *testing.T, dir string) {
	t.Helper()
	for _, tool := range [][]string{
		{"otf2-print", "-Werror", filepath.Join(dir, "traces.otf2")},
		{"cube_sanity", filepath.Join(dir, "profile.cubex")},
		{"scorep-score", "-r", filepath.Join(dir, "profile.cubex")},
	} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			t.Logf("%s is not there", tool[0])
			continue
		}
		if out, err := exec.Command(tool[0], tool[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(tool, " "), err, out[max(0, len(out)-1000):])
		}
	}
}

// isLateThread tells the line in which Score-P says that a thread ended behind the measurement. So does, with Score-P
// 9, the plugin's.
func isLateThread(line string) bool {
	return strings.Contains(line, "[Score-P]") && strings.Contains(line, "Thread after main")
}

// playReal plays a recording in processes that are instrumented with the real Score-P, and gives what each process's
// has.
func playReal(t *testing.T, rec *replay.Recording, kind string, changes ...change) [][][]userRegion {
	t.Helper()
	host, dir := realHost(t, kind), t.TempDir()
	changes = append([]change{spool, env("REALSCOREP_DIR="+dir, "SCOREP_TOTAL_MEMORY=256M",
		"SCOREP_ENABLE_TRACING=true", "SCOREP_ENABLE_PROFILING=true")}, changes...)
	opt := usual(t, filepath.Join(dir, "experiment"), changes...)
	opt.Host = host
	res := run(t, rec, opt)
	var all [][][]userRegion
	for i := range res.Processes {
		said := res.Processes[i].Stderr
		for line := range strings.Lines(said) {
			testkit.Check(t, !strings.Contains(line, "[Score-P]") || isLateThread(line), "Score-P says %s", line)
		}
		testkit.Equal(t, strings.Contains(said, "NCCL itself is instrumented"), realHostKinds[kind].nccl,
			"the plugin says %q", said)
		measurement := filepath.Join(dir, fmt.Sprint("scorep-", i))
		checkReadable(t, measurement)
		threads := readMeasurement(t, measurement)
		checkProfile(t, measurement, threads)
		all = append(all, threads)
	}
	return all
}

// What tests/fakescorep is told, the real Score-P is: every call of every recording and of every hazard, traced and
// profiled.
func TestRealScorepGetsTheCalls(t *testing.T) {
	needRealScorep(t)
	for kind, k := range realHostKinds {
		play := func(t *testing.T, rec *replay.Recording, c change) {
			got := playReal(t, rec, kind, c)
			for i, p := range rec.Processes {
				compareUserRegions(t, p, k.model, got[i])
			}
		}
		for _, rec := range recordings(t) {
			for _, c := range []replay.Clock{replay.ClockRecorded, replay.ClockLive} {
				t.Run(fmt.Sprint(kind, "/", rec.Name, "/", c), func(t *testing.T) { play(t, rec, clock(c)) })
			}
		}
		for _, h := range hazards {
			for _, release := range h.releases {
				if !slices.Contains(withAPI, release) {
					continue
				}
				t.Run(fmt.Sprint(kind, "/", h.name, "/", release), func(t *testing.T) {
					play(t, h.load(t, release), env(h.env...))
				})
			}
		}
	}
}

func TestRealScorepKeepsItsMemory(t *testing.T) {
	needRealScorep(t)
	out := testkit.Value(exec.Command("scorep", "--version").Output())(t)
	var release int
	_, err := fmt.Sscanf(string(out), "Score-P %d", &release)
	testkit.Require(t, err == nil, "%q: %v", out, err)
	if release < 9 {
		checkManyThreads(t, playReal(t, callsOfManyThreads(t), "orphans",
			env("SCOREP_TOTAL_MEMORY=16000k"))) // its default
		return
	}
	// It knows threads of libraries from their creation on, and with its default ends a program that has so many, by
	// itself.
	for i, threads := range playReal(t, callsOfManyThreads(t), "orphans", env("SCOREP_TOTAL_MEMORY=128M")) {
		calls := 0
		for _, thread := range threads {
			calls += len(thread)
		}
		testkit.Equal(t, calls, 40, "process %d: of 40 calls, each from a thread of its own", i)
	}
}
