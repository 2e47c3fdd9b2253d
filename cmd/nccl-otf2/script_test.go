// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ncclotf2/cmd/nccl-otf2/internal/doctor"
	"ncclotf2/need"
)

func TestMain(m *testing.M) {
	// The test program is the tool, and the collector that the plugin starts, too.
	testscript.Main(m, map[string]func(){"nccl-otf2": main})
}

// built names the parts in C that sessions need; `make build` makes them.
var built = []string{doctor.PluginName, substrateLibrary, "fakenccl"}

const buildFolder = "../../build"

// toolWithParts gives the test program under the tool's name, with the parts in C beside it.
func toolWithParts(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("nccl-otf2")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range built {
		from, to := filepath.Join(buildFolder, name), filepath.Join(filepath.Dir(tool), name)
		if _, err := os.Stat(to); err == nil {
			continue // another test has put it there
		}
		_, err := os.Stat(from)
		need.NoError(t, "what make build makes", err)
		copyFile(t, from, to)
	}
	return tool
}

// TestSessions runs the sessions in testdata/script. In each, $REC is a folder of recordings and $SCOREP a trace of Score-P's.
func TestSessions(t *testing.T) {
	tool := toolWithParts(t)
	recordings, err := filepath.Abs("../../testdata/nccl-callbacks")
	if err != nil {
		t.Fatal(err)
	}
	trace, err := filepath.Abs("../../analysis/testdata/scorep-mpi")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("REC", recordings)
			e.Setenv("SCOREP", trace)
			e.Setenv("BIN", filepath.Dir(tool))
			e.Setenv("PLUGIN", filepath.Join(filepath.Dir(tool), doctor.PluginName))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NCCL_OTF2_START_LIMIT", "60") // what is tested is not how busy the machine is
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exitcode": exitCodeOf,
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
	err := ts.Exec("sh", append([]string{"-c", `want=$1; shift; "$@"; code=$?; [ $code = $want ] || { echo "exit code $code, want $want" >&2; exit 1; }`, "sh"}, args...)...)
	if err != nil {
		ts.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o777)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
