// SPDX-License-Identifier: Apache-2.0

// Package realnccl tests what the real NCCL runs on without a GPU: what it does where something is missing or unknown.
package realnccl

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// root is the module's folder, from which make works.
const root = "../.."

// nowhere is a mirror that nobody answers for.
const nowhere = "DEBIAN_MIRROR=http://127.0.0.1:1/debian"

// watch looks at the sources beside the tests, so that a change of theirs makes the tests run again.
func watch(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"*.sh", "*.mk", "*/*.[ch]"} {
		sources, err := filepath.Glob(pattern)
		testkit.Require(t, err == nil && len(sources) != 0, "no %s (%v)", pattern, err)
		for _, source := range sources {
			testkit.Value(os.Stat(source))(t)
		}
	}
}

func command(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	return cmd
}

// A library that the emulator does not know ends the job with a message that says what to do, and not with wrong
// results.
func TestAnUnknownLibraryIsNamed(t *testing.T) {
	watch(t)
	need.Program(t, "make", "to build the stand-ins")
	cc := need.Program(t, "cc", "to build the stand-ins")
	build := t.TempDir()
	standin := filepath.Join(build, "realnccl/common/libcudart.so.12")
	out, err := command(t, root, "make", "-f", "tests/realnccl/realnccl.mk", "BUILD="+build, standin).CombinedOutput()
	testkit.Require(t, err == nil, "make: %v\n%s", err, out)
	for _, test := range []struct{ name, define, says string }{
		{"release", "-DVERSION=29901", "is NCCL 2.99.1; the layouts of its device side are known of NCCL 2.28 to 2.31"},
		{"rows", "-DROWS=2002", "its table of device functions has 2002 rows; known are 1999 (since 2.29) and 1996"},
		{"order", `-DKERNEL_NAME="ncclDevKernel_AllGather_RING_LL"`,
			"device function 0 is SendRecv by the table of rows, and its kernel is ncclDevKernel_AllGather_RING_LL"},
		{"no names", `-DKERNEL_NAME=NULL`, "no kernel was registered under a name"},
		{"no table", "-DWITHOUT_TABLE", "no symbol ncclDevFuncRowToId in its symbol table"},
		{"stripped", "-s", "no symbol ncclDevFuncRowToId in its symbol table"},
		{"layout", "-DRANKS=-5",
			"a launch of NCCL 2.29.7 has a number of ranks of -5: its device side is laid out otherwise"},
	} {
		t.Run(test.name, func(t *testing.T) {
			library := filepath.Join(t.TempDir(), "libstrange.so")
			program := filepath.Join(filepath.Dir(library), "strange")
			for _, args := range [][]string{
				{"-fPIC", "-shared", test.define, "-o", library, "strange.c", standin},
				{"-DMAIN", "-o", program, "strange.c", library, standin, "-Wl,-rpath,$ORIGIN"},
			} {
				testkit.Output(t, command(t, "testdata", cc, args...))
			}
			run := command(t, "", program)
			run.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(standin))
			out, err := run.CombinedOutput()
			testkit.Check(t, err != nil && strings.Contains(string(out), test.says),
				"it ended with %v and said %q, not %q", err, out, test.says)
		})
	}
}

// furnish makes beds where the published library is not to be had.
func furnish(t *testing.T, out string, env ...string) (said string, err error) {
	t.Helper()
	watch(t)
	need.Program(t, "flock", "util-linux")
	bed := command(t, root, "tests/realnccl/bed.sh", out)
	bed.Env = append(os.Environ(), append([]string{"CC=cc", "CFLAGS=", "REALNCCL=", "RCCL=", "HOME=" + t.TempDir(),
		"XDG_CACHE_HOME=", nowhere}, env...)...)
	var stderr bytes.Buffer
	bed.Stderr = &stderr
	err = bed.Run()
	return stderr.String(), err
}

// What cannot be fetched is said, in one line, and fails nothing.
func TestWhatIsNotCheckedIsSaid(t *testing.T) {
	out := t.TempDir()
	said, err := furnish(t, out)
	testkit.Check(t, err == nil && strings.Count(said, "\n") == 1 &&
		strings.HasPrefix(said, "real-nccl: NOT CHECKED: nothing runs on the published NCCL: "),
		"it ended with %v and said %q", err, said)
	why, err := os.ReadFile(filepath.Join(out, "NOT_CHECKED"))
	testkit.Check(t, err == nil && strings.HasSuffix(said, string(why)),
		"NOT_CHECKED is %q (%v), where %q was said", why, err, said)
	beds, err := os.ReadFile(filepath.Join(out, "beds"))
	testkit.Check(t, err == nil && len(beds) == 0, "beds are %q (%v)", beds, err)
}

// A library that was asked for and cannot be used is a failure.
func TestAGivenLibraryHasToBeOne(t *testing.T) {
	empty, headless, static := t.TempDir(), t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(headless, "libnccl.so.2"), filepath.Join(static, "libnccl.so.2"),
		filepath.Join(static, "nccl.h")} {
		testkit.Must(t, os.WriteFile(file, nil, 0o666))
	}
	for _, test := range []struct{ dir, says string }{
		{"/nonexistent/nccl", "no folder /nonexistent/nccl"},
		{empty, "no libnccl.so.2 in " + empty},
		{headless, "no nccl.h in " + headless},
		{static, "does not take libcudart.so.12 as a shared library"},
	} {
		said, err := furnish(t, t.TempDir(), "REALNCCL="+test.dir)
		testkit.Check(t, err != nil && strings.Contains(said, test.says),
			"REALNCCL=%s ended with %v and said %q, not %q", test.dir, err, said, test.says)
	}
}

// beds are the folders that `make real-nccl-bed` has made.
func beds(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "build/realnccl/beds"))
	if folders := strings.Fields(string(text)); len(folders) > 0 {
		return folders
	}
	why, _ := os.ReadFile(filepath.Join(root, "build/realnccl/NOT_CHECKED"))
	t.Skipf("NOT CHECKED: no library to run (make real-nccl-bed): %v %s", err, why)
	return nil
}

// The driver program tells right from wrong, and says how a job ended.
func TestTheDriverSaysHowAJobEnds(t *testing.T) {
	for _, bed := range beds(t) {
		for _, test := range []struct {
			args []string
			env  string
			exit int
			says string
		}{
			{args: []string{"!ar:100 (!ag:20:f64 !rs:10:bf16:max ) !agv:5,6:i8"}, exit: 0, says: "rank 1: 4 results, "},
			{args: []string{"fill =ar:100"}, exit: 1, says: "wrong results"},
			{args: []string{"0?[ ar:100 ]", "-t", "2"}, exit: 124, says: "ncclrun: time limit of 2 s"},
			{args: []string{"1?[ quit:7 ] ar:100 sync"}, exit: 7, says: ", rank 0 is at: sync"},
			{args: []string{"kill:KILL"}, exit: 5, says: "was killed by signal 9"},
			{args: []string{"quit:7"}, exit: 7, says: "ended with exit code 7"},
			{args: []string{"nonsense"}, exit: 2, says: "no word nonsense"},
			{args: []string{"bc:100:0:f128"}, exit: 2, says: "no type f128"},
			{args: []string{"!ag:1m"}, exit: 2, says: "does not fit into buffers"},
			{args: []string{"ag:1000", "-H"}, env: "NCCL_ALGO=PAT", exit: 5,
				says: "is not emulated: set NCCL_ALGO to Ring,Tree"},
		} {
			if test.env != "" && strings.HasPrefix(filepath.Base(bed), "rccl-") {
				continue // it takes another algorithm
			}
			t.Run(filepath.Base(bed)+"/"+test.args[0], func(t *testing.T) {
				t.Parallel()
				args := append([]string{"-n", "2", "-o", t.TempDir()}, test.args[1:]...)
				run := command(t, "", filepath.Join(bed, "ncclrun"), append(args, test.args[0])...)
				run.Env = append(os.Environ(), test.env)
				out, _ := run.CombinedOutput()
				testkit.Check(t, run.ProcessState.ExitCode() == test.exit && strings.Contains(string(out), test.says),
					"it ended with %v, not %d, and said %q, not %q", run.ProcessState, test.exit, out, test.says)
			})
		}
	}
}
