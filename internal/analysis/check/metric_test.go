// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// Metrics on rows of ranks and of GPUs are sound; a metric that is not defined is found.
func TestMetricsAreChecked(t *testing.T) {
	path := jobtest.Typical(t, func(rank int, p *shardtest.Process) {
		outstanding := p.Metric(otf2.RecorderKindGPU, shardtest.Outstanding)
		p.Measure(p.Shard.Comms[0].Location, outstanding, t0+700*us, 0)
		row, power := p.GPUMetrics(0, shardtest.Power)
		p.Measure(row, power, t0, 300_000)
	})
	res := jobtest.Check(t, path)
	testkit.Check(t, len(res.Findings) == 0, "findings:\n%s", jobtest.Lines(res))
	s := jobtest.Load(t, path)
	s.Find(s.Defs.MetricInstances[0].Recorder, otf2.EventMetric, 0).Args[0] = 99
	res = jobtest.Check(t, s.Write())
	testkit.Check(t, res.Errors() == 1, "findings:\n%s", jobtest.Lines(res))
}
