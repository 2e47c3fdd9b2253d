// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nccl-otf2/nccl-otf2/cmd/nccl-otf2/internal/doctor"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/scoutrules"
)

func TestMain(m *testing.M) {
	// The test program is the tool, and the collector that the plugin starts, too.
	testscript.Main(m, map[string]func(){"nccl-otf2": main})
}

// built names the parts in C that sessions need; `make build` makes them.
var built = []string{doctor.PluginName, substrateLibrary, replay.HostFile, "libexec/nccl-otf2/callers/libnccl.so.2",
	"libexec/nccl-otf2/callers/librccl.so.1"}

const buildFolder = "../../build"

// toolWithParts gives the test program under the tool's name, with the parts in C beside it.
func toolWithParts(t *testing.T) string {
	t.Helper()
	tool := testkit.Value(exec.LookPath("nccl-otf2"))(t)
	for _, name := range built {
		from, to := filepath.Join(buildFolder, name), filepath.Join(filepath.Dir(tool), name)
		if _, err := os.Stat(to); err == nil {
			continue // another test has put it there
		}
		_, err := os.Stat(from)
		need.NoError(t, "what make build makes", err)
		testkit.Must(t, os.MkdirAll(filepath.Dir(to), 0o777))
		copyFile(t, from, to)
	}
	return tool
}

// TestSessions runs the sessions in testdata/script. In each, $REC is a folder of recordings, $SCOREP a trace of
// Score-P's, and $TORCH a folder of traces of PyTorch's profiler.
func TestSessions(t *testing.T) {
	tool := toolWithParts(t)
	recordings := testkit.Value(filepath.Abs("../../testdata/nccl-callbacks"))(t)
	trace := testkit.Value(filepath.Abs("../../tests/jobtest/testdata/scorep-mpi"))(t)
	torch := testkit.Value(filepath.Abs("../../internal/ingest/testdata/kineto"))(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("REC", recordings)
			e.Setenv("SCOREP", trace)
			e.Setenv("TORCH", torch)
			e.Setenv("BIN", filepath.Dir(tool))
			e.Setenv("PLUGIN", filepath.Join(filepath.Dir(tool), doctor.PluginName))
			e.Setenv("HOST", filepath.Join(filepath.Dir(tool), replay.HostFile))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NCCL_OTF2_START_LIMIT", "60") // what is tested is not how busy the machine is
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exitcode":   exitCodeOf,
			"eventually": eventuallyOf,
			"still":      stillOf,
			"goon":       goOnOf,
			"scout":      scoutOf,
		},
	})
}

// exitCodeOf runs a command and compares its exit code: exitcode N COMMAND… . Its output is kept for
// stdout and stderr.
func exitCodeOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N COMMAND…")
	}
	// A shell tells the code; testscript itself tells only success.
	err := ts.Exec("sh", append([]string{"-c",
		`want=$1; shift; "$@"; code=$?; [ $code = $want ] || { echo "exit code $code, want $want" >&2; exit 1; }`,
		"sh"}, args...)...)
	if err != nil {
		ts.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
}

// eventuallyOf runs a command until a regular expression is found so often in its output, or oftener: eventually N
// REGEXP COMMAND… .
func eventuallyOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: eventually N REGEXP COMMAND…")
	}
	least, err := strconv.Atoi(args[0])
	ts.Check(err)
	want := regexp.MustCompile(args[1])
	for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		err := ts.Exec(args[2], args[3:]...) // it may fail until then
		out := ts.ReadFile("stdout")
		switch {
		case len(want.FindAllString(out, -1)) >= least:
			return
		case time.Now().After(limit):
			ts.Fatalf("%q is not %s times in what %q says (%v): %s", args[1], args[0], args[2:], err, out)
		}
	}
}

// scoutOf holds the archive of a view for Scalasca to what scout needs: scout DIR.
func scoutOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: scout DIR")
	}
	found, err := scoutrules.Check(filepath.Join(ts.MkAbs(args[0]), "traces.otf2"), nil)
	ts.Check(err)
	if len(found.Findings) > 0 || found.Events == 0 {
		ts.Fatalf("%d events, findings: %v", found.Events, found.Findings)
	}
}

// stillOf waits until the processes of a job stand still (REPLAY_HOST_STOP_AT) and each has events on disk: still DIR
// PROCESSES.
func stillOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: still DIR PROCESSES")
	}
	dir, want := ts.MkAbs(args[0]), args[1]
	for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		n := 0
		for _, e := range shardsIn(dir) {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.Process.PID))
			_, state, _ := strings.Cut(string(stat), ") ")
			if err == nil && strings.HasPrefix(state, "T") && hasEvents(e.Path) {
				n++
			}
		}
		switch {
		case strconv.Itoa(n) == want:
			return
		case time.Now().After(limit):
			ts.Fatalf("%s: %d processes stand still, want %s", dir, n, want)
		}
	}
}

// goOnOf lets them go on: goon DIR.
func goOnOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: goon DIR")
	}
	for _, e := range shardsIn(ts.MkAbs(args[0])) {
		ts.Check(syscall.Kill(e.Process.PID, syscall.SIGCONT))
	}
}

// shardsIn are those that can be read by now.
func shardsIn(dir string) []experiment.Entry {
	list, err := experiment.List(dir)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(e experiment.Entry) bool { return e.Process == nil })
}

// hasEvents reports whether a shard has an event file with more in it than the beginning of a communicator.
func hasEvents(path string) bool {
	files, _ := filepath.Glob(filepath.Join(path, "*.evt"))
	return slices.ContainsFunc(files, func(f string) bool {
		info, err := os.Stat(f)
		return err == nil && info.Size() > 100
	})
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in := testkit.Value(os.Open(from))(t)
	defer in.Close()
	out := testkit.Value(os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o777))(t)
	testkit.Value(io.Copy(out, in))(t)
	testkit.Must(t, out.Close())
}
