// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The generated files are what the description says today.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	for _, out := range files() {
		have := testkit.Value(os.ReadFile(filepath.Join("..", "..", out.Name)))(t)
		testkit.Check(t, bytes.Equal(have, out.Text),
			"%s differs from what the generator makes: run go generate in otf2", out.Name)
	}
	known := map[string]bool{}
	for _, out := range files() {
		known[out.Name] = true
	}
	found := testkit.Value(filepath.Glob("../../zz_*.go"))(t)
	for _, path := range found {
		testkit.Check(t, known[filepath.Base(path)], "%s is no output of the generator", path)
	}
}

func TestGoNames(t *testing.T) {
	for name, want := range map[string]string{
		"COLL_ALL2ALL": "CollAll2All", "MPI": "MPI", "CPU_THREAD": "CPUThread", "RMA_WIN": "RmaWin",
		"ALLREDUCE": "Allreduce", "FILE_IO": "FileIO", "NUMA": "NUMA",
	} {
		testkit.Equal(t, goName(name), want, "goName(%s) =", name)
	}
}
