// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/replaytest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// sanitized has the recordings with the most concurrency, with reloading, and with each kind of event.
var sanitized = []string{"03-onethread-4r-groups", "04-threads-4r", "05-p2p-3p", "07-twocomms-streams", "10-graph-3p"}

func TestTheHostIsCleanUnderSanitizers(t *testing.T) {
	replaytest.Sanitizers(t, func(t *testing.T, dir string, env []string) {
		for _, name := range sanitized {
			for i, opt := range []Options{
				{Clock: ClockLive},
				{Clock: ClockRecorded},
				{Clock: ClockLive, NoFinalize: true, Env: []string{fmt.Sprintf(
					"RECORDER_DECLINE=%d", descriptor.TypeColl.Bit()|descriptor.TypeProxyStep.Bit())}},
				{Clock: ClockLive, Die: "300"},
				{Clock: ClockLive, Env: []string{"RECORDER_SWITCH=2:0"}},
			} {
				t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
					t.Parallel()
					opt.Host = filepath.Join(dir, HostFile)
					opt.Env = append(opt.Env, env...)
					res, _ := mustPlay(t, load(t, name), opt)
					for _, p := range res.Processes {
						testkit.Check(t, p.Stderr == "", "process %d says %s", p.Rank, p.Stderr)
					}
				})
			}
		}
	})
}

func TestTheHostIsCleanUnderValgrind(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, NOT TESTED: -short leaves out valgrind")
	}
	valgrind := need.Program(t, "valgrind", "to look at the host")
	dir := replaytest.Build(t, "")
	rec := load(t, "07-twocomms-streams")
	program := testkit.Value(Compile(rec, 0))(t)
	path := programFile(t, program)
	for _, flags := range [][]string{nil, {"--clock", "recorded"}, {"--no-finalize"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
			defer cancel()
			args := []string{"--quiet", "--error-exitcode=66", "--leak-check=full",
				"--errors-for-leak-kinds=definite,possible", filepath.Join(dir, HostFile)}
			cmd := exec.CommandContext(ctx, valgrind, append(append(args, flags...), path)...)
			cmd.Env = append(os.Environ(), "RECORDER_DIR="+t.TempDir(),
				"NCCL_PROFILER_PLUGIN="+filepath.Join(dir, "librecorder.so"))
			out, err := cmd.CombinedOutput()
			testkit.Check(t, err == nil, "%v\n%s", err, out)
		})
	}
}
