// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/scenario"
)

// unify converts raw files and makes the archive under one lock: nobody else can get in between.
func TestUnifyLocksOnce(t *testing.T) {
	needInjection(t)
	rec := testkit.Value(scenario.Random(1, scenario.RandomOptions{Release: "2.29.7", Processes: 2, Calls: 300}).Load(
		filepath.Join(t.TempDir(), "recording")))(t)
	ctx, cancel := context.WithTimeout(context.Background(), mostTime)
	defer cancel()
	dir, log := filepath.Join(t.TempDir(), "experiment"), filepath.Join(t.TempDir(), "log")
	res, err := replay.Run(ctx, rec, replay.Options{
		Host: builtFile(t, replay.HostFile), Plugin: builtFile(t, "libnccl-profiler-otf2.so"), Clock: replay.ClockLive,
		Spool: true,
		Env:   []string{"NCCL_OTF2_DIR=" + dir},
	})
	if err == nil {
		err = res.Err()
	}
	testkit.Must(t, err)
	// Who takes the lock writes into its file who that is.
	cmd := exec.Command(builtFile(t, "inject"), "unify", dir)
	cmd.Env = append(os.Environ(), "INJECT_PROGRAM="+builtFile(t, "nccl-otf2"),
		"INJECT_BELOW="+filepath.Join(dir, experiment.Folder, experiment.UnifyLock),
		"INJECT_RULES=ftruncate 1 0 short;", "INJECT_LOG="+log)
	testkit.Output(t, cmd)
	text := testkit.Value(os.ReadFile(log))(t)
	n := strings.Count(string(text), "call ")
	testkit.Check(t, n == 1, "the lock was taken %d times:\n%s", n, text)
	done, _ := filepath.Glob(filepath.Join(dir, experiment.Folder, fmt.Sprintf("*%s.done", experiment.SpoolSuffix)))
	testkit.Check(t, len(done) == len(rec.Processes),
		"%d of %d raw files were converted", len(done), len(rec.Processes))
}
