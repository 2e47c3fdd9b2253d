// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Metric adds a set of quantities that locations record of themselves, and returns its local id.
func (p *Process) Metric(recorder otf2.RecorderKind, members ...description.MetricMember) otf2.MetricRef {
	p.Shard.Metrics = append(p.Shard.Metrics,
		description.Metric{Members: members, Recorder: recorder, Location: -1, GPU: -1})
	return otf2.MetricRef(len(p.Shard.Metrics) - 1)
}

// Measure writes values of a set at a time onto the row of a location.
func (p *Process) Measure(location int, metric otf2.MetricRef, t uint64, values ...uint64) {
	m := &p.Shard.Metrics[metric]
	types := make([]otf2.Type, len(m.Members))
	for i, q := range m.Members {
		types[i] = q.Type
	}
	p.check(p.writers[location].Metric(otf2.Timestamp(t), nil, metric, types, values))
	if m.Location < 0 && (len(m.Locations) == 0 || m.Locations[len(m.Locations)-1] != uint32(location)) {
		m.Locations = append(m.Locations, uint32(location))
	}
}

// GPUMetrics makes the row of a GPU's measurements, with one quantity after the other, and returns the row and the
// first quantity's id.
func (p *Process) GPUMetrics(gpu int, quantities ...description.MetricMember) (location int, first otf2.MetricRef) {
	location = len(p.writers)
	p.Location(description.KindGPUMetrics, otf2.LocationTypeMetric,
		fmt.Sprintf("GPU %d metrics", p.Shard.GPUs[gpu].Device), -1)
	first = otf2.MetricRef(len(p.Shard.Metrics))
	for _, q := range quantities {
		p.Shard.Metrics = append(p.Shard.Metrics, description.Metric{
			Members: []description.MetricMember{q}, Recorder: otf2.RecorderKindAbstract, Location: location, GPU: gpu,
		})
	}
	return location, first
}

// Quantities for tests.
var (
	Power = description.MetricMember{Name: "GPU power", Description: "Power", Type: otf2.TypeUint64,
		Mode: otf2.MetricAbsolutePoint, Exponent: -3, Unit: "W"}
	Traffic = description.MetricMember{Name: "NVLink sent", Description: "Data", Type: otf2.TypeDouble,
		Mode: otf2.MetricAbsoluteLast, Unit: "B/s"}
	Outstanding = description.MetricMember{Name: "NCCL outstanding", Description: "Operations", Type: otf2.TypeUint64,
		Mode: otf2.MetricAbsoluteNext, Unit: "#"}
)
