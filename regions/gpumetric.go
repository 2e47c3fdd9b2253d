// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/provenance"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Measurements of GPUs by the driver (docs/gpu.md), on rows of their own.

// gpuMetrics is the row of measurements of one GPU, at the GPU in the system tree.
type gpuMetrics struct {
	loc  *location
	refs map[string]otf2.MetricRef // by the quantity's name
}

// GPUs returns the number of GPUs that communicators of the process have used so far.
func (m *Model) GPUs() int { return len(m.process.GPUs) }

// Identify sets what the driver reported of a GPU; gpu is an index below GPUs. What the process learned from CUDA
// itself stays.
func (m *Model) Identify(gpu int, uuid, pci string, facts *provenance.GPUFacts) {
	g := &m.process.GPUs[gpu]
	if g.UUID == "" || facts.MIG != nil { // CUDA does not say that a UUID is a part's
		g.UUID = uuid
	}
	g.PCI = cmp.Or(g.PCI, pci)
	g.Facts = facts
}

// Sample writes a measurement of a GPU, at a time on the process's time line. Samples of one GPU come in order; their
// order against NCCL's records is free.
func (m *Model) Sample(gpu int, q *description.MetricMember, t, value uint64) error {
	m.metrics.addGPUSample(gpu, q, t, value)
	return m.err
}

func (ms *metrics) addGPUSample(gpu int, q *description.MetricMember, t, value uint64) {
	for len(ms.gpus) <= gpu {
		ms.gpus = append(ms.gpus, nil)
	}
	g := ms.gpus[gpu]
	if g == nil {
		ordinal := ms.process.GPUs[gpu].Device
		if ordinal < 0 {
			ordinal = gpu
		}
		loc, err := ms.newLocation(description.KindGPUMetrics, otf2.LocationTypeMetric, gpuMetricsName(ordinal), -1, -1)
		if ms.keepError(err) {
			return
		}
		g = &gpuMetrics{loc: loc, refs: make(map[string]otf2.MetricRef)}
		ms.gpus[gpu] = g
	}
	ref := keyed.EntryMade(g.refs, q.Name, func() otf2.MetricRef {
		ms.process.Metrics = append(ms.process.Metrics, description.Metric{
			Members: []description.MetricMember{*q}, Recorder: otf2.RecorderKindAbstract, Location: int(g.loc.Number),
			GPU: gpu,
		})
		return otf2.MetricRef(len(ms.process.Metrics) - 1)
	})
	if ms.first == 0 {
		ms.first = t
	}
	s := ms
	s.types[0], s.values[0] = q.Type, value
	ms.keepError(g.loc.w.Metric(g.loc.raiseTime(t), nil, ref, s.types[:1], s.values[:1]))
}

// firstTime returns the time of the first record or sample.
func (m *Model) firstTime() uint64 {
	if s := m.metrics.first; s != 0 && (m.first == 0 || s < m.first) {
		return s
	}
	return m.first
}
