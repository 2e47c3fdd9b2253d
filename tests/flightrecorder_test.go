// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Public dumps of PyTorch's Flight Recorder, of four jobs of 16 ranks in each of which faults were injected into two:
// tests/attribution/unit/fr_traces of NVIDIA's nvidia-resiliency-ext. A log beside the dumps names the two ranks.
func TestFaultsInPublicFlightRecorderDumps(t *testing.T) {
	dir := os.Getenv("FR_TRACES")
	if dir == "" {
		t.Skip("SKIPPED, NOT TESTED: FR_TRACES names no folder with gpu_error_1st, lock_gil_1st and so on")
	}
	for _, c := range []struct{ job, says string }{
		{"gpu_error_1st", "Rank 12 has not ended AllGather 42806 on TENSOR_MODEL_PARALLEL_GROUP (41), which Rank 13 has, though"},
		{"gpu_error_2nd",
			"Rank 9 has not ended AllGather 87749 on TENSOR_MODEL_PARALLEL_GROUP (37), which Ranks 8,10-11 have"},
		{"lock_gil_1st", "Ranks 9,14 never called AlltoAll 45265 on EXPERT_MODEL_PARALLEL_GROUP (72)"},
		{"lock_gil_2nd", "Rank 10 never called AlltoAll 20947 on EXPERT_MODEL_PARALLEL_GROUP (73)"},
	} {
		t.Run(c.job, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "archive")
			testkit.Output(t, exec.Command(builtFile(t, "nccl-otf2"), "import", "-o", to, filepath.Join(dir, c.job)))
			testkit.Output(t, exec.Command(builtFile(t, "nccl-otf2"), "check", to))
			var r struct {
				Verdict struct {
					Text     string
					Culprits []struct{ Rank int }
				}
			}
			out := testkit.Output(t, exec.Command(builtFile(t, "nccl-otf2"), "report", "--format", "json", to))
			testkit.Must(t, json.Unmarshal(out, &r))
			var named []int
			for _, culprit := range r.Verdict.Culprits {
				named = append(named, culprit.Rank)
			}
			slices.Sort(named)
			truth := "Fault ranks: " + strings.ReplaceAll(fmt.Sprint(named), " ", ", ")
			log := string(testkit.Read(t, filepath.Join(dir, c.job, "fault_injection.log")))
			testkit.Check(t, strings.HasPrefix(log, truth), "named %v, of %s", named, log)
			testkit.Contains(t, r.Verdict.Text, c.says, "from Flight Recorder dumps: order and state, no times")
		})
	}
}
