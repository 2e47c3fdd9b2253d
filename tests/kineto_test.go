// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// torchReport is what a report says of traces of PyTorch's profiler.
type torchReport struct {
	Verdict struct {
		Text      string
		StandsOut bool `json:"stands_out"`
	}
	Waits struct {
		Ranks []struct {
			Rank string `json:"rank"`
			Last int    `json:"last"`
		}
	}
}

// Public traces of PyTorch's profiler: checkouts of facebookresearch/HolisticTraceAnalysis, AMD-AGI/TraceLens and
// facebookresearch/param in one folder.
func TestPublicTracesOfPyTorch(t *testing.T) {
	dir := os.Getenv("KINETO_TRACES")
	if dir == "" {
		t.Skip("SKIPPED, NOT TESTED: KINETO_TRACES names no folder with HolisticTraceAnalysis, TraceLens and param")
	}
	const (
		noGroups = "does not say which process groups its"
		noGPU    = "has no kernels of GPUs: profile with ProfilerActivity.CUDA"
		noNCCL   = "has no kernels of NCCL"
		alone    = "Not known who made the others wait: no operation has comparable times on two ranks."
	)
	for _, c := range []struct{ path, says string }{
		{"HolisticTraceAnalysis/tests/data/nccl_parser_config/nccl_data.json.gz", alone},
		{"HolisticTraceAnalysis/tests/data/cpu_only", noGPU},
		{"HolisticTraceAnalysis/tests/data/df_index_resolver", noGroups + " 2020 kernels"},
		{"HolisticTraceAnalysis/tests/data/trace_filter", noGroups + " 10 kernels"},
		{"HolisticTraceAnalysis/tests/data/ns_resolution_trace", noNCCL},
		{"TraceLens/tests/traces/b200/eager_trace.json.gz", alone},
		{"TraceLens/tests/traces/mi300/resnet_act_checkpoint.json.gz", alone},
		{"TraceLens/tests/traces/mi300/llama_70b_fsdp", "Rank 4"}, // last in 86.1 % of 488 collectives, says TraceLens
		{"TraceLens/tests/traces/torch_compile_triton/trace.json.gz", noNCCL},
		{"param/et_replay/tests/inputs/resnet_kineto.json.gz", noNCCL},
	} {
		t.Run(c.path, func(t *testing.T) {
			path := filepath.Join(dir, c.path)
			if _, err := os.Stat(path); err != nil {
				t.Skipf("SKIPPED, NOT TESTED: %v", err)
			}
			out, err := exec.Command(builtFile(t, "nccl-otf2"), "report", path).CombinedOutput()
			testkit.Check(t, (err == nil) == (c.says == alone || c.says == "Rank 4"), "%v", err)
			testkit.Contains(t, string(out), c.says)
		})
	}
}

// A step of DLRM on eight GPUs of one machine (param, unpacked from et_replay/tests/inputs/dlrm_kineto.tar.gz), from
// 2023, when traces did not have groups yet: all its operations are of the world, and the test adds that. Who came last
// to each is what the begins of its kernels show.
func TestPublicTracesOfPyTorchWithAGroupAdded(t *testing.T) {
	from, _ := filepath.Glob(filepath.Join(os.Getenv("KINETO_TRACES"), "param/dlrm_kineto/*.json"))
	if len(from) != 8 {
		t.Skip("SKIPPED, NOT TESTED: KINETO_TRACES names no folder with the 8 traces of param/dlrm_kineto")
	}
	in := t.TempDir()
	for _, path := range from {
		var trace map[string]any
		testkit.Must(t, json.Unmarshal(testkit.Read(t, path), &trace))
		for _, e := range trace["traceEvents"].([]any) {
			e := e.(map[string]any)
			name, _ := e["name"].(string)
			args, _ := e["args"].(map[string]any)
			if !strings.HasPrefix(name, "ncclKernel") || args == nil {
				continue
			}
			args["Process Group Name"], args["Process Group Ranks"] = "0", "[0, 1, 2, 3, 4, 5, 6, 7]"
			args["Group size"], args["Collective name"] = 8, "all_to_allv"
			if strings.Contains(name, "AllReduce") {
				args["Collective name"] = "allreduce"
			}
		}
		testkit.Write(t, filepath.Join(in, filepath.Base(path)), testkit.Value(json.Marshal(trace))(t))
	}
	var r torchReport
	out := testkit.Output(t, exec.Command(builtFile(t, "nccl-otf2"), "report", "--format", "json", in))
	testkit.Must(t, json.Unmarshal(out, &r))
	last := make(map[string]int)
	for _, rank := range r.Waits.Ranks {
		if rank.Last > 0 {
			last[rank.Rank] = rank.Last
		}
	}
	// of the operations after the first one, which is start-up
	testkit.Same(t, last, map[string]int{"Rank 7": 4, "Rank 5": 2, "Rank 4": 1})
	testkit.Check(t, !r.Verdict.StandsOut, "%s", r.Verdict.Text)
}
