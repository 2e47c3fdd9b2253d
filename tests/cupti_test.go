// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selfreport"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/fakegpu"
)

// playKernels plays a recording with its kernels on the fake CUPTI.
func playKernels(t *testing.T, rec *replay.Recording, dir string, changes ...change) *replay.Result {
	t.Helper()
	res := runQuietly(t, rec, usual(t, dir, append(changes, kernels)...))
	for i := range res.Processes {
		gpu := fakegpu.Ran(t, &res.Processes[i])
		testkit.Require(t, gpu != nil && len(gpu.Kernels) != 0, "process %d ran no kernels: %+v", i, gpu)
	}
	return res
}

// kernelSizes are the sizes of kernel records by CUPTI's version.
var kernelSizes = map[uint32]int{18: 200, 22: 208, 26: 208, 130000: 216, 130400: 248}

// Where CUPTI cannot be had the rest is as ever, one line says why, and so does the shard.
func TestWithoutCupti(t *testing.T) {
	rec := recording(t, "01-allreduce-2p")
	for _, tc := range []struct{ env, state, line string }{
		{"FAKECUPTI_BUSY=1", "busy", "another profiler"},
		{"FAKECUPTI_NO_DRIVER=1", "failed", "NOT_INITIALIZED"},
		{"SCOREP_CUDA_ENABLE=yes", "busy", "SCOREP_CUDA_ENABLE"},
		{"FAKECUPTI_FAULTS=enable:10", "failed", "INSUFFICIENT_PRIVILEGES"},
	} {
		t.Run(tc.env, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "experiment")
			res := run(t, rec, usual(t, dir, kernels, env("NCCL_OTF2_EVENTS=gpu", tc.env)))
			waitDone(t, dir, len(rec.Processes))
			byPID := shardsByProcess(t, dir)
			for i := range res.Processes {
				p := &res.Processes[i]
				testkit.Check(t, strings.Count(p.Stderr, "\n") == 1 && strings.Contains(p.Stderr, tc.line),
					"the plugin says %q", p.Stderr)
				c := byPID[p.PID].Cupti
				testkit.Check(t, c != nil && c.State == tc.state && strings.Contains(c.Why, tc.line) &&
					len(c.Records) == 0, "CUPTI: %+v", c)
				if got, want := byPID[p.PID].Counts.Starts["KernelLaunch"],
					uint64(p.Report.Delivered.Starts["KernelLaunch"]); got != want || want == 0 {
					t.Errorf("%d launches, want %d", got, want)
				}
			}
			a := openArchive(t, unified(t, dir))
			said := slices.ContainsFunc(selfreport.Read(a).Recording, func(v selfreport.Value) bool {
				return v.Name == "CUPTI_STATE" && v.Processes == "all" && strings.HasPrefix(v.Value, tc.state+": ") &&
					strings.Contains(v.Value, tc.line)
			})
			if !said {
				t.Errorf("the archive does not say why there are no kernels: %+v", selfreport.Read(a).Recording)
			}
		})
	}
}
