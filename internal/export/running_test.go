// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// runningRanks is a job of so many processes, each of which has done operations for ns and waited for the last one in a
// part of that.
func runningRanks(ranks int, operations, ns, waited uint64) RunningJob {
	j := RunningJob{Defs: &otf2.Definitions{}, Processes: map[string]int{"running": ranks}}
	text := func(s string) otf2.StringRef {
		j.Defs.Strings = append(j.Defs.Strings, otf2.String{Self: otf2.StringRef(len(j.Defs.Strings)), Text: s})
		return otf2.StringRef(len(j.Defs.Strings) - 1)
	}
	nodes := []profile.Node{
		{Parent: profile.None, Kind: profile.Kernels}, {Parent: 0, Kind: profile.Operation, Name: "AllReduce"},
		{Parent: 1, Kind: profile.Size, Name: "AllReduce up to 1 KiB"},
		{Parent: 0, Kind: profile.Kernel, Name: "a kernel of the application"},
	}
	for r := range ranks {
		group, location := otf2.LocationGroupRef(r), otf2.LocationRef(r)
		j.Defs.LocationGroups = append(j.Defs.LocationGroups,
			otf2.LocationGroup{Self: group, Name: text(fmt.Sprintf("Rank %d", r)), Type: otf2.LocationGroupTypeProcess})
		j.Defs.Locations = append(j.Defs.Locations, otf2.Location{Self: location, Name: text("row"), Group: group})
		c := profile.Cell{Visits: operations, Time: ns}
		c.Waits[0] = waited
		row := &profile.Row{Ranks: ranks, Rank: r, First: 1, Last: 1 + ns,
			Cells:       []profile.CellAt{{Node: 2, Cell: c}, {Node: 3, Cell: profile.Cell{Visits: 99, Time: ns}}},
			FirstSample: &profile.FirstSample{}}
		one := profile.RankRow{Location: location, Nodes: nodes, Row: row}
		if r == ranks-1 {
			one.Caused = float64(waited) * float64(ranks-1)
		}
		j.Rows = append(j.Rows, one)
	}
	j.Defs.Reindex()
	return j
}

// valuesOf reads metrics: the values of one by the rank.
func valuesOf(t *testing.T, text []byte, name string) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families := testkit.Value(parser.TextToMetricFamilies(bytes.NewReader(text)))(t)
	values := make(map[string]float64)
	for _, m := range families[name].GetMetric() {
		rank := ""
		for _, l := range m.GetLabel() {
			if l.GetName() == "rank" {
				rank = l.GetValue()
			}
		}
		values[rank] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return values
}

// Counters never fall: not where a rank is gone, nor where a sum that is estimated gets smaller.
func TestCountersOfRunningJobsNeverFall(t *testing.T) {
	m := NewMeter("4711", "/job")
	now := time.Unix(1000, 0)
	for _, step := range []struct {
		jobs               []RunningJob
		operations, waited float64
	}{
		{[]RunningJob{runningRanks(3, 10, 5e9, 2e9)}, 10, 2},
		// the estimate is better now
		{[]RunningJob{runningRanks(3, 12, 6e9, 1e9)}, 12, 2},
		{[]RunningJob{runningRanks(3, 12, 6e9, 1e9), runningRanks(3, 1, 1e9, 2e9)}, 13, 3}, // it was started anew
		// what was before cannot be read any more
		{[]RunningJob{runningRanks(3, 2, 1e9, 1e9)}, 13, 3},
		{nil, 0, 0}, // nor anything else
	} {
		text := m.Write(step.jobs, now, false)
		if len(step.jobs) == 0 {
			continue
		}
		testkit.Equal(t, valuesOf(t, text, "nccl_otf2_operations_total")["Rank 1"], step.operations, "operations")
		testkit.Equal(t, valuesOf(t, text, "nccl_otf2_waited_seconds_total")["Rank 1"], step.waited, "waited")
		got := valuesOf(t, text, "nccl_otf2_caused_wait_share")
		testkit.Check(t, len(got) == 1 && got["Rank 2"] == 1, "shares %v", got)
	}
}

// However large a job is, its nodes bound its series.
func TestSeriesOfLargeJobsAreBounded(t *testing.T) {
	text := NewMeter("", "/job").Write([]RunningJob{runningRanks(mostNamedRanks+1, 1, 1e9, 0)}, time.Unix(1, 0), true)
	got := valuesOf(t, text, "nccl_otf2_operations_total")
	testkit.Check(t, len(got) == 1 && got[allRanks] == mostNamedRanks+1, "%v", got)
	testkit.Contains(t, string(text), `nccl_otf2_job_running{slurm_job_id="unknown",directory="/job"} 0`)
	n := bytes.Count(text, []byte("\n"))
	testkit.Check(t, n <= 60, "%d lines", n)
}

// Only files that keepers name are removed when nobody writes them any more: what somebody exported after a job stays.
func TestOnlyKeptFilesAreStale(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	kept := RunningName("/scratch/run 7")
	for _, name := range []string{kept, "nccl-otf2-job-77.prom", "nccl-otf2-00000000.prom.bak", "other.prom"} {
		path := filepath.Join(folder, name)
		testkit.Write(t, path, nil)
		testkit.Must(t, os.Chtimes(path, time.Time{}, now.Add(-time.Hour)))
	}
	removed := RemoveStale(folder, now)
	testkit.Check(t, slices.Equal(removed, []string{filepath.Join(folder, kept)}), "removed %q", removed)
}

// Of too many buckets those of the most operations have series; the others are counted.
func TestBucketsOfTheMostOperations(t *testing.T) {
	m := NewMeter("", "/job")
	for i := range mostSeries + 2 {
		m.last[promKey{ranks: i}] = promBucket{operations: uint64(i)}
	}
	text := m.Write(nil, time.Unix(1, 0), false)
	n := bytes.Count(text, []byte("\nnccl_bus_bandwidth_gbs{"))
	testkit.Check(t, n == mostSeries && valuesOf(t, text, "nccl_otf2_series_left_out")[""] == 2, "%d series", n)
	testkit.Check(t, !bytes.Contains(text, []byte(`nranks="1",`)) && bytes.Contains(text, []byte(`nranks="2",`)),
		"others are kept than those of the most operations")
}
