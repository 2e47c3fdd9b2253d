// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

func timestamp(t uint64) otf2.Timestamp { return otf2.Timestamp(t) }

// The names and labels are those of NCCL Inspector's README (NCCL, June 2026).
var inspectorLabels = map[string][]string{
	"nccl_bus_bandwidth_gbs": {"version", "slurm_job_id", "node", "gpu", "comm_name", "n_nodes",
		"nranks", "collective", "message_size", "algo_proto"},
	"nccl_collective_exec_time_microseconds": {"version", "slurm_job_id", "node", "gpu", "comm_name", "n_nodes",
		"nranks", "collective", "message_size", "algo_proto"},
	"nccl_p2p_bus_bandwidth_gbs": {"version", "slurm_job_id", "node", "gpu", "comm_name", "n_nodes",
		"nranks", "p2p_operation", "message_size"},
	"nccl_p2p_exec_time_microseconds": {"version", "slurm_job_id", "node", "gpu", "comm_name", "n_nodes",
		"nranks", "p2p_operation", "message_size"},
}

func TestMetricsAreInspectors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.prom")
	res := testkit.Value(Prometheus(job(t), path, nil, &Options{Job: "4711"}))(t)
	text := testkit.Read(t, path)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families := testkit.Value(parser.TextToMetricFamilies(bytes.NewReader(text)))(t)
	samples := 0
	found := make(map[string]float64)
	for name, f := range families {
		want, ok := inspectorLabels[name]
		if strings.HasPrefix(name, "nccl_otf2_") {
			samples += len(f.Metric)
			continue
		}
		if !ok {
			t.Errorf("Inspector has no metric %s", name)
		}
		for _, m := range f.Metric {
			samples++
			var names []string
			labels := make(map[string]string)
			for _, l := range m.Label {
				names = append(names, l.GetName())
				labels[l.GetName()] = l.GetValue()
			}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("labels of %s:\n%s", name, diff)
			}
			if labels["comm_name"] != odd || labels["slurm_job_id"] != "4711" || labels["version"] != "v6.1" ||
				labels["n_nodes"] != "2" || labels["nranks"] != "3" {
				t.Errorf("labels %v", labels)
			}
			found[strings.Join([]string{name, labels["node"], labels["gpu"],
				labels["collective"] + labels["p2p_operation"], labels["message_size"], labels["algo_proto"]}, " ")] =
				m.Gauge.GetValue()
		}
	}
	if uint64(samples) != res.Records["samples"] || len(families) != metricsOf(archiveMetric)-1 { // nobody stands out
		t.Errorf("%d samples of %d metrics, %v", samples, len(families), res.Records)
	}
	size := float64(4 << 20)
	for key, want := range map[string]float64{
		// Rank 1: AllReduces of 25 µs each; rank 0 of 35 µs.
		"nccl_collective_exec_time_microseconds node0 GPU1 AllReduce 4-5MB RING_SIMPLE": 25,
		"nccl_bus_bandwidth_gbs node0 GPU0 AllReduce 4-5MB RING_SIMPLE":                 size / 35000 * 4 / 3,
		"nccl_p2p_exec_time_microseconds node0 GPU0 Send 4-5KB ":                        10,
		"nccl_p2p_bus_bandwidth_gbs node0 GPU1 Send 100-101B ":                          100.0 / 10000,
	} {
		if got, ok := found[key]; !ok || math.Abs(got/want-1) > 1e-5 {
			t.Errorf("%s: %g, want %g", key, got, want)
		}
	}
	if res.LeftOut["operations launched together with others"] != 6 || res.LeftOut["operations without GPU time"] != 3 {
		t.Errorf("left out %v", res.LeftOut)
	}
}

// metricsOf counts the metrics of a kind.
func metricsOf(kind promKind) (n int) {
	for i := range promMetrics {
		if promMetrics[i].kind&kind != 0 {
			n++
		}
	}
	return n
}

// What Inspector has not are the report's numbers, of each rank.
func TestMetricsOfTheReport(t *testing.T) {
	a := job(t)
	var out bytes.Buffer
	_, err := Prometheus(a, "-", &out, &Options{Job: "4711"})
	testkit.Must(t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&out)
	testkit.Must(t, err)
	report, err := operations.Observe(a, new(operations.Observer))
	testkit.Must(t, err)
	type sample struct{ name, node, rank string }
	got := make(map[sample]int64)
	for name, f := range families {
		for _, m := range f.Metric {
			s := sample{name: name}
			for _, l := range m.Label {
				switch l.GetName() {
				case "node":
					s.node = l.GetValue()
				case "rank":
					s.rank = l.GetValue()
				}
			}
			got[s] = int64(math.Round(m.Gauge.GetValue() * 1e9))
		}
	}
	if len(report.WaitStates.Ranks) != 3 {
		t.Fatalf("%d ranks", len(report.WaitStates.Ranks))
	}
	for _, r := range report.WaitStates.Ranks {
		for name, want := range map[string]uint64{"nccl_otf2_waited_seconds": r.Waited,
			"nccl_otf2_operations_seconds": r.Time, "nccl_otf2_goes_back_seconds": uint64(math.Round(*r.GoesBack))} {
			if ns, ok := got[sample{name, r.Host, r.Name}]; !ok || ns != int64(want) {
				t.Errorf("%s of %s: %d ns, want %d", name, r.Name, ns, want)
			}
		}
	}
	testkit.Equal(t, got[sample{name: "nccl_otf2_run_duration_seconds"}], int64(report.Summary.Duration), "duration %v",
		got)
}

func TestSizesHaveInspectorsRanges(t *testing.T) {
	for bytes, want := range map[uint64]string{
		0: "0B", 1: "1-2B", 1023: "1023-1024B", 1024: "1-2KB", 8191: "7-8KB", 4 << 30: "4-5GB",
		537_000_000: "512-513MB", 5 << 50: "5120-5121TB",
	} {
		testkit.Equal(t, sizeRange(lowerBound(bytes)), want, "%d bytes", bytes)
	}
}

// Nothing appears under a name before it is complete, and nothing stays of what failed.
func TestFilesAppearWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.prom")
	testkit.Write(t, path, []byte("old"))
	f, err := createFile(path)
	testkit.Must(t, err)
	f.WriteString("half")
	f.Flush()
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("half a file is there: %q", b)
	}
	f.abandon()
	if names := list(t, dir); !slices.Equal(names, []string{"m.prom"}) {
		t.Errorf("%v is left", names)
	}
	if f, err = createFile(path); err != nil {
		t.Fatal(err)
	}
	f.WriteString("new")
	testkit.Must(t, f.commit())
	f.abandon()
	if b, _ := os.ReadFile(path); string(b) != "new" {
		t.Errorf("%q", b)
	}
	// A folder in the way: the error tells, and no other file stays.
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "d"), 0o777))
	if _, err := Perfetto(job(t), filepath.Join(dir, "d"), nil, nil); err == nil {
		t.Error("a folder was overwritten")
	}
	if names := list(t, dir); !slices.Equal(names, []string{"d", "m.prom"}) {
		t.Errorf("%v is left", names)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries := testkit.Value(os.ReadDir(dir))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
