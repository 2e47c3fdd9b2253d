// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

const acclFileName = "accl-profiler_rank0_node0_pid100_0xbeef.jsonl"

// acclRecord is a line in the form of accl-profiler's, as its documentation shows it.
func acclRecord(rank int, number uint64, took string) string {
	return fmt.Sprintf(
		`{"header":{"rank":%d,"n_ranks":2},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":4194304,"coll_algo":"Ring","coll_proto":"Simple","coll_n_channels":4,"coll_n_channels_reported":4,"coll_exec_time_us":%s,"coll_algobw_gbs":0.027907,"coll_busbw_gbs":0.048836,"coll_timing_source":"gpu_globaltimer","decomposition":{"enqueue_to_kernel_us":5.20,"gpu_kernel_avg_us":45.10,"n_proxy_ops":8},"event_trace_ts":{"kernel_events":[{"channel_id":0,"kernel_start_ts":123456,"kernel_stop_ts":128006,"duration_us":45}]}}}`+"\n",
		rank, number, took)
}

func TestACCLProfiler(t *testing.T) {
	in, dir := t.TempDir(), filepath.Join(t.TempDir(), "made")
	for rank := range 2 {
		text := acclRecord(rank, 0, "150.30") + acclRecord(rank, 1, "50.55") + acclRecord(rank, 3, "50.55")
		if rank == 0 {
			text += acclRecord(rank, 4, "10.00")
		}
		text += fmt.Sprintf(
			`{"summary":{"dropped_collectives":%d,"leaked_collectives":1,"pool_size":256,"complete":false}}`+"\n", rank)
		testkit.Write(t, filepath.Join(in, fmt.Sprintf(
			"accl_profiler_rank%d_gpu_host_%d_pid%d_0x7f8c496ae9f661.jsonl", rank, rank, 100+rank)), []byte(text))
	}
	res := testkit.Value(Import([]string{in}, dir, nil))(t)
	testkit.Check(t, res.Processes == 2 && res.Malformed == 0 && res.Records["operations"] == 7, "%+v", res)
	a := unify(t, dir, false)
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	s := &report.Summary
	testkit.Check(t, s.Hosts == 2 && s.Operations == 3 && s.Timing["DURATION"] == 7 &&
		s.Lost["DROPPED_BY_PROFILER::COLL"] == 3 && !report.Verdict.StandsOut, "%+v, %s", s, report.Verdict.Text)
	r := &report.Operations[0]
	testkit.Check(t, r.Size == 4<<20 && (r.Time.Max == 150300 || r.Time.Max == 50550), "%+v", r)
	testkit.Equal(t, property(a, "IMPORTED_FROM"), "JSONL of accl-profiler", "imported from")
}

// A file without Inspector's frame; its name says whose it is.
func TestACCLProfilerWithoutFrame(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	res, err := Import([]string{filepath.Join("testdata", acclFileName)}, dir, nil)
	testkit.Require(t, err == nil && res.Records["operations"] == 1 &&
		strings.Contains(strings.Join(res.Problems, "\n"), "process 100: 7 operations are not in the input"), "%+v, %v",
		res, err)
	report := testkit.Value(operations.Observe(unify(t, dir, false), new(operations.Observer)))(t)
	s := &report.Summary
	testkit.Check(t, s.Operations == 1 && s.Missing == 1 && report.Operations[0].Time.Avg == 50000 &&
		report.Operations[0].Communicator == "ncclComm 0xbeef", "%+v", report.Operations)
}
