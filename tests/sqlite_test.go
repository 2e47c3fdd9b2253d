// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// builtTables leaves a test out without the program that reads SQLite files.
func builtTables(t *testing.T) {
	t.Helper()
	_, err := os.Stat(filepath.Join("../build", "nccl-otf2-query"))
	need.NoError(t, "build/nccl-otf2-query (make query)", err)
}

// Files of SQLite itself, of a made-up job with one late rank, are answered right.
func TestSQLiteFilesOfProfilers(t *testing.T) {
	builtTables(t)
	python := need.Program(t, "python3", "its module sqlite3 makes files")
	for name, rests := range map[string]string{"nsight": "(From Nsight Systems: ", "rocpd": "(From rocprofv3: "} {
		path := filepath.Join(t.TempDir(), name+".db")
		run := exec.Command(python, "-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())",
			path)
		run.Stdin = bytes.NewReader(testkit.Read(t, "../cmd/nccl-otf2-query/testdata/"+name+".sql"))
		testkit.Output(t, run)
		out := testkit.Output(t, exec.Command(builtFile(t, "nccl-otf2"), "report", path))
		testkit.Contains(t, string(out), "Rank 1 on node0 made the others wait: 100 %", rests)
	}
}

// Public files of Nsight Systems: tests/fixtures of GindaChen/nsys-ai, in one folder.
func TestPublicFilesOfNsightSystems(t *testing.T) {
	dir := os.Getenv("NSIGHT_FILES")
	if dir == "" {
		t.Skip("SKIPPED, NOT TESTED: NSIGHT_FILES names no folder with the files of GindaChen/nsys-ai")
	}
	builtTables(t)
	const noBlobs = "kernels of NCCL, but their NVTX ranges do not say which communicators they are of"
	for _, c := range []struct{ name, says string }{
		{"mfu_2gpu_before.sqlite", "has 33 " + noBlobs},
		{"mfu_2gpu_after.sqlite", "has 31 " + noBlobs},
		{"h100_2gpu_1s.sqlite", "has no kernels of NCCL"},
		{"mock.sqlite", "has no kernels of NCCL"},
		{"healthy_1pct.sqlite", "does not say of which processes its kernels are"},
		{"healthy_judged_1pct.sqlite", "does not say of which processes its kernels are"},
	} {
		path := filepath.Join(dir, c.name)
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: NOT TESTED: %v", c.name, err)
			continue
		}
		out, err := exec.Command(builtFile(t, "nccl-otf2"), "report", path).CombinedOutput()
		testkit.Check(t, err != nil && bytes.Contains(out, []byte(c.says)), "%s: %v: %s", c.name, err, out)
	}
}
