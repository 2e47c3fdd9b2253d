// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A program's phases, marked with the Python module, are regions on its threads; what it marks before anything is
// recorded does nothing.
func TestPhasesOfAPythonProgram(t *testing.T) {
	python3 := need.Program(t, "python3", "to run the program")
	o := &outcome{t: t, dir: filepath.Join(t.TempDir(), "experiment")}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python3, "marks/program.py", builtFile(t, "libnccl-profiler-otf2.so"))
	cmd.Env = append(os.Environ(), "NCCL_OTF2_DIR="+o.dir, "NCCL_OTF2_UNIFY=off", "NCCL_OTF2_START_LIMIT=60",
		"PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	testkit.Require(t, err == nil && len(out) == 0, "%v: %s", err, out)
	waitDone(t, o.dir, 1)
	o.unify()
	step := func(name string) []string {
		return []string{"Enter " + name, "Enter forward", "Leave forward", "Enter backward", "Leave backward",
			"Leave " + name}
	}
	want := map[string][]string{
		"Thread 0": slices.Concat(step("step 0"), step("step 1"), step("step 2"),
			[]string{"Enter training done", "Leave training done"}),
		"Thread 1": {"Enter on another thread", "Leave on another thread"},
	}
	got := make(map[string][]string)
	for loc, events := range o.archive.events {
		for _, e := range events {
			if name := o.archive.locations[loc].Name; e.Event == "Enter" || e.Event == "Leave" {
				got[name] = append(got[name], e.Event+" "+o.archive.regions[e.Region])
			}
		}
	}
	testkit.Same(t, want, got)
}
