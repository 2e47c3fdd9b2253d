// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// measuredJob has six ranks on one node: 0 and 1 on one GPU, 2 and 3 on two parts of another, 4 and 5 on GPUs that were
// guessed to be the first. Each has measured its own, rank 1 most often.
func measuredJob(t *testing.T, dir string) []*shardtest.Process {
	t.Helper()
	return job(t, dir, 6, 2, func(rank int, p *shardtest.Process) {
		p.On("node0", 1000+rank)
		g := &p.Shard.GPUs[0]
		facts := &provenance.GPUFacts{
			Index: 0, Name: "Test GPU", Memory: 80 << 30, Driver: "570.1", PCIeGeneration: 5, PCIeWidth: 16,
			NVLinks: []provenance.NVLink{
				{Link: 0, Version: "4.0", Speed: 26562, Peer: "0000:80:00.0", Switch: true},
				{Link: 1, Version: "4.0", Speed: 26562, Peer: "0000:80:00.0", Switch: true},
				{Link: 2, Speed: 20000, Peer: "0000:81:00.0"}, {Link: 3},
			},
		}
		g.UUID, g.PCI, g.Facts = "GPU-first", "0000:01:00.0", facts
		switch rank {
		case 0:
			g.Facts = nil // the driver had no answer for it
		case 2, 3:
			g.UUID, g.PCI = fmt.Sprintf("MIG-%d", rank), "0000:02:00.0"
			facts.Index, facts.MIGMode, facts.MIG = 1, true,
				&provenance.MIG{Parent: "GPU-second", GPUInstance: rank, ComputeInstance: 0}
		case 4, 5:
			facts.Guess = "ordinal"
		}
		outstanding := p.Metric(otf2.RecorderKindGPU, shardtest.Outstanding)
		row := p.Shard.Comms[0].Location
		p.Measure(row, outstanding, uint64(p.Writer(row).LastTime()), uint64(rank))
		measure, power := p.GPUMetrics(0, shardtest.Power, shardtest.Traffic)
		for i := range uint64(1 + rank%2) {
			p.Measure(measure, power, t0+i*1000, 300_000+i)
			p.Measure(measure, power+1, t0+i*1000, math.Float64bits(1.5e9))
		}
	})
}

func TestGPUsAndMetrics(t *testing.T) {
	dir := t.TempDir()
	finish(measuredJob(t, dir))
	run := unify(t, dir, nil).Runs[0]
	testkit.Check(t, len(run.Problems) == 0, "%v", run.Problems)
	var lines []string
	for line := range strings.Lines(accept(t, run.Archive)) {
		if strings.HasPrefix(line, "METRIC") || strings.Contains(line, "Device") || strings.Contains(line, "metrics") {
			lines = append(lines, line)
		}
	}
	golden.Text(t, "testdata/metrics.defs.txt", strings.Join(lines, ""))

	// Of the GPU that two processes measured, those who did so more often are taken; nothing of the others is there.
	a := open(t, run.Archive)
	testkit.Equal(t, propertyText(a, "NCCL_OTF2::GPU_METRICS_LEFT_OUT"), "1", "left out")
	type row struct {
		events int
		metric []uint64
	}
	rows := make(map[otf2.LocationRef]row)
	for _, l := range a.Defs.Locations {
		for e, err := range a.EventsOf(l.Self) {
			testkit.Must(t, err)
			if e.Kind != otf2.EventMetric {
				continue
			}
			r := rows[l.Self]
			r.events++
			if !slices.Contains(r.metric, e.Args[0]) {
				r.metric = append(r.metric, e.Args[0])
			}
			rows[l.Self] = r
		}
	}
	instances := 0
	for self, r := range rows {
		rank, number := uint64(self)&0xffffffff, uint64(self)>>32
		if number == 1 { // the rank's row, where all have the same quantity
			testkit.Check(t, r.events == 1 && r.metric[0] == uint64(a.Defs.MetricClasses[0].Self),
				"rank %d: %+v", rank, r)
			continue
		}
		testkit.Check(t, rank != 0 && r.events == 2*int(1+rank%2) && len(r.metric) == 2,
			"measurements of rank %d: %+v", rank, r)
		for _, m := range r.metric {
			i := slices.IndexFunc(a.Defs.MetricInstances,
				func(x otf2.MetricInstance) bool { return uint64(x.Self) == m })
			testkit.Check(t, i >= 0 && a.Defs.MetricInstances[i].Recorder == self,
				"rank %d: no instance %d of its row", rank, m)
			instances++
		}
	}
	testkit.Check(t, len(rows) == 6+5 && instances == len(a.Defs.MetricInstances),
		"%d rows, %d instances in use of %d", len(rows), instances, len(a.Defs.MetricInstances))
}

// Shards that say nonsense of metrics do no harm.
func TestMetricsOfDamagedShards(t *testing.T) {
	dir := t.TempDir()
	procs := job(t, dir, 2, 1, func(rank int, p *shardtest.Process) {
		location, _ := p.GPUMetrics(0, shardtest.Power)
		p.Measure(location, 0, t0, 1)
		if rank == 1 {
			p.Shard.Metrics[0].GPU = 7
			p.Shard.Metrics = append(p.Shard.Metrics,
				description.Metric{Members: []description.MetricMember{shardtest.Power}, Location: 99, GPU: -3,
					Recorder: otf2.RecorderKindAbstract},
				description.Metric{Members: []description.MetricMember{shardtest.Outstanding}, Location: -1, GPU: -1,
					Locations: []uint32{1, 77}})
		}
	})
	finish(procs)
	accept(t, unify(t, dir, nil).Runs[0].Archive)
}
