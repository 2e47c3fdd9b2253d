// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// inspectorLine is a line as inspector_json.cc writes it (NCCL, June 2026); trace is event_trace_ts, "" without.
func inspectorLine(rank int, function string, number, size, took uint64, source string, dumped uint64,
	trace string) string {
	if trace != "" {
		trace = `,"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[]},"event_trace_ts":` + trace
	}
	return fmt.Sprintf(
		`{"header":{"id":"0x7f8c496ae9f661","comm_name":"unknown","rank":%d,"n_ranks":2,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"node%d","pid":%d},"coll_perf":{"coll":"%s","coll_sn":%d,"coll_msg_size_bytes":%d,"coll_exec_time_us":%d,"coll_timing_source":"%s","coll_algobw_gbs":1.5,"coll_busbw_gbs":1.5%s}}`,
		rank, dumped, rank, 100+rank, function, number, size, took, source, trace) + "\n"
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
}

// With event traces operations lie where the host heard of them; their length is the GPU's.
func TestInspectorWithEventTraces(t *testing.T) {
	in, epoch := t.TempDir(), uint64(1_760_000_000_000_000) // µs
	for rank := range 2 {
		text := ""
		for i := range uint64(4) {
			at := epoch + 1000*i
			kernels := fmt.Sprintf(
				`[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d},{"channel_id":1,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}]`,
				at+20, at+150, at+150, at+25, at+160, at+161)
			source := []string{"kernel_gpu", "kernel_gpu", "kernel_cpu", "collective_cpu"}[i]
			text += inspectorLine(rank, "AllReduce", i, 1<<20, 100, source, at+5000,
				fmt.Sprintf(`{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":%s}`, at, at+5, kernels))
		}
		write(t, in, fmt.Sprintf("node%d-pid%d.log", rank, 100+rank), text)
	}
	dir := filepath.Join(t.TempDir(), "made")
	res := testkit.Value(Import([]string{in}, dir, nil))(t)
	testkit.Check(t, res.Records["operations"] == 8 && len(res.NotUsed) == 0 && len(res.Problems) == 0, "%+v", res)
	a := unify(t, dir, false)
	want := []struct {
		begin, end, slack uint64 // µs after the operation was enqueued
		source            string
	}{{20, 120, 81, "gpu"}, {20, 120, 81, "gpu"}, {20, 161, 81, "gpu"}, {0, 5, 0, "enqueue"}}
	n := 0
	if _, err := operations.EachPart(a, nil, analysis.Slice{}, func(p *operations.Part) error {
		n++
		w, at := want[p.Ordinal], (epoch+1000*p.Ordinal)*1000
		testkit.Check(t, uint64(p.Begin) == at+w.begin*1000 && uint64(p.End) == at+w.end*1000 && p.Source == w.source &&
			p.Uncertainty == w.slack*1000 && p.Size == 1<<20, "operation %d: %d to %d ± %d of %s, %d bytes; want %+v",
			p.Ordinal, uint64(p.Begin)-at, uint64(p.End)-at, p.Uncertainty, p.Source, p.Size, w)
		return nil
	}); err != nil || n != 8 {
		t.Fatal(n, err)
	}
	testkit.Check(t, property(a, "IMPORTED_FROM") == "JSON of NCCL Inspector v4.0" &&
		strings.Contains(property(a, "IMPORT_MISSING"), "roots") && property(a, "API_VERSION") != "", "properties %v",
		a.Anchor.Properties)
}

// What Inspector recorded inside the real NCCL names the rank that was late on purpose (testdata/inspector/README.md).
func TestRecordsOfInspector(t *testing.T) {
	for _, c := range []struct {
		name string
		late int
	}{{"gpu-late", 1}, {"host-late", 2}} {
		in, dir := filepath.Join(t.TempDir(), "all.jsonl"), filepath.Join(t.TempDir(), "made")
		packed := testkit.Value(gzip.NewReader(bytes.NewReader(testkit.Read(t, "testdata/inspector/"+c.name+".jsonl.gz"))))(t)
		testkit.Write(t, in, testkit.Value(io.ReadAll(packed))(t))
		testkit.Value(Import([]string{in}, dir, nil))(t)
		report := testkit.Value(operations.Observe(unify(t, dir, false), new(operations.Observer)))(t)
		late := report.Verdict.Late()
		testkit.Check(t, len(late) == 1 && late[0].Rank == c.late && late[0].Share > 0.8 && late[0].Confidence > 0.999,
			"%s: %s", c.name, report.Verdict.Text)
	}
}

// Without event traces only lengths are known: they make bandwidths, and nobody is said to have waited.
func TestInspectorWithoutEventTraces(t *testing.T) {
	in, dump := t.TempDir(), uint64(1_760_000_000_000_000)
	for rank := range 2 {
		text := ""
		for i := range uint64(3) {
			text += inspectorLine(rank, "AllGather", i, 1<<10, 100+50*uint64(rank), "kernel_gpu", dump, "")
		}
		text += inspectorLine(rank, "Broadcast", 0, 1<<10, 7, "kernel_gpu", dump+1000, "")
		message := strings.ReplaceAll(inspectorLine(
			rank, []string{"Send", "Recv"}[rank], 1, 4096, 9, "kernel_gpu", dump+2000, ""), "coll", "p2p")
		text += strings.Replace(message, `"p2p_sn"`, fmt.Sprintf(`"p2p_peer":%d,"p2p_sn"`, 1-rank), 1)
		write(t, in, fmt.Sprintf("node%d-pid%d.log", rank, 100+rank), text)
	}
	dir := filepath.Join(t.TempDir(), "made")
	res := testkit.Value(Import([]string{in}, dir, nil))(t)
	testkit.Check(t, len(res.Problems) == 2 && strings.Contains(res.Problems[0], "root"), "problems %v", res.Problems)
	a := unify(t, dir, false)
	report := testkit.Value(operations.Observe(a, new(operations.Observer)))(t)
	seen := make(map[string]bool)
	for _, r := range report.Operations {
		seen[r.Operation] = true
		testkit.Check(t, r.TimingSource == "duration", "%+v", r)
		testkit.Check(t, r.Operation != "AllGather" || r.Size == 2<<10 && r.Time.Avg == 125000 && r.AlgBW != 0 &&
			r.Count == 3, "%+v", r)
	}
	testkit.Check(t, seen["AllGather"] && seen["Send"] && seen["Recv"] && report.WaitStates.Total.Waits == 0 &&
		report.WaitStates.Collectives == 0, "operations %v, waits %+v", seen, report.WaitStates.Total)
	testkit.Value(operations.EachPart(a, nil, analysis.Slice{}, func(p *operations.Part) error {
		testkit.Check(t, p.Function != "AllGather" || p.Rank != 0 || uint64(p.End) == (dump-100*(2-p.Ordinal))*1000,
			"AllGather %d ends at %d", p.Ordinal, p.End)
		return nil
	}))(t)
}

// Members that lack different operations are seen to differ, even if all operations are equal: Inspector numbers them.
func TestMissingOperationsOfInspectorAreSeen(t *testing.T) {
	in, dump := t.TempDir(), uint64(1_760_000_000_000_000)
	for rank := range 2 {
		text := ""
		for i := range uint64(6) {
			if int(i) != 2+rank { // each lacks another one
				text += inspectorLine(rank, "AllReduce", i, 1<<10, 100, "kernel_gpu", dump, "")
			}
		}
		write(t, in, fmt.Sprintf("node%d-pid%d.log", rank, 100+rank), text)
	}
	dir := filepath.Join(t.TempDir(), "made")
	res := testkit.Value(Import([]string{in}, dir, nil))(t)
	testkit.Check(t, len(res.Problems) == 2 && strings.Contains(res.Problems[0], "1 operation is not in the input"),
		"problems %v", res.Problems)
	a := unify(t, dir, false)
	testkit.Check(t, property(a, "SEQUENCES_DIFFER") == "2" && property(a, "LOST::NOT_IN_INPUT::COLL") == "2",
		"properties %v", a.Anchor.Properties)
}

// From v4.1 on lines tell what was dropped, from v4.2 on algorithm and protocol, and in v4.4 lines have the header of
// the marker before them.
func TestInspectorLaterFormats(t *testing.T) {
	const dump = uint64(1_760_000_000_000_000)
	stats := func(rank int, version string, dropped uint64) string {
		text := inspectorLine(rank, "AllReduce", 0, 0, 0, "", dump, "")
		at := strings.Index(text, `,"coll_perf"`)
		return strings.Replace(text[:at], "v4.0", version, 1) +
			fmt.Sprintf(
				`,"dump_stats":{"coll_records":2,"coll_dropped_total":%d,"coll_dropped_since_last_dump":1,"p2p_records":0,"p2p_dropped_total":0,"p2p_dropped_since_last_dump":0}}`, dropped) + "\n"
	}
	operation := func(rank int, version string, number uint64) string {
		text := strings.Replace(inspectorLine(rank, "AllReduce", number, 1<<20, 100, "kernel_gpu", dump, ""), "v4.0",
			version, 1)
		if version != "v4.1" {
			text = strings.Replace(text, `"coll_sn"`, `"coll_algo":"RING","coll_proto":"unknown","coll_sn"`, 1)
		}
		if version == "v4.4" {
			text = "{" + text[strings.Index(text, `"coll_perf"`):]
		}
		return text
	}
	for _, version := range []string{"v4.1", "v4.2", "v4.4"} {
		in := t.TempDir()
		for rank := range 2 {
			text := stats(rank, version, 1) + operation(rank, version, 0) + operation(rank, version, 1) +
				stats(rank, version, 3) + operation(rank, version, 2)
			if version == "v4.4" {
				text += `{"proxy_trace":{"record_type":"proxy_op","record_sn":1,"parent_type":"coll","parent_sn":2,"proxy_op_sn":1,"rank":0,"channel_id":0,"peer":1,"direction":"send"}}` + "\n"
			}
			write(t, in, fmt.Sprintf("node%d-pid%d.log", rank, 100+rank), text)
		}
		dir := filepath.Join(t.TempDir(), "made")
		res := testkit.Value(Import([]string{in}, dir, nil))(t)
		testkit.Check(t, res.Malformed == 0 && res.Records["operations"] == 6 && len(res.Problems) == 2 &&
			strings.Contains(res.Problems[0], "dropped 3 collectives"), "%s: %+v", version, res)
		testkit.Equal(t, res.NotUsed["PROXY_RECORDS"], map[string]uint64{"v4.4": 2}[version],
			"%s: records of proxies", version)
		a := unify(t, dir, false)
		algorithm := map[bool]string{true: "RING", false: ""}[version != "v4.1"]
		n := 0
		_, err := operations.EachPart(a, nil, analysis.Slice{}, func(p *operations.Part) error {
			if n++; p.Algorithm != algorithm || p.Protocol != "" || p.Ordinal > 2 {
				t.Errorf("%s: %+v", version, p)
			}
			return nil
		})
		testkit.Check(t, err == nil && n == 6, "%s: %d operations, %v", version, n, err)
		testkit.Equal(t, property(a, "IMPORTED_FROM"), "JSON of NCCL Inspector "+version, "%s: imported from", version)
		if missing := property(a, "IMPORT_MISSING"); strings.Contains(missing, "algorithms") != (algorithm == "") {
			t.Errorf("%s: missing %q", version, missing)
		}
	}
}

// A line without header that follows none belongs to nobody.
func TestInspectorLineWithoutMarker(t *testing.T) {
	in := t.TempDir()
	text := inspectorLine(0, "AllReduce", 0, 1<<20, 100, "kernel_gpu", 1_760_000_000_000_000, "")
	write(t, in, "node0-pid100.log", "{"+text[strings.Index(text, `"coll_perf"`):]+text)
	res, err := Import([]string{in}, filepath.Join(t.TempDir(), "made"), nil)
	testkit.Check(t, err == nil && res.Records["operations"] == 1 && res.Malformed+res.NotUsed["OTHER_RECORDS"] == 1,
		"%+v, %v", res, err)
}
