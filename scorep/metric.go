// SPDX-License-Identifier: Apache-2.0

package scorep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// repeated holds the metric rows to leave out, by process and location number: another process's measurements of the
// same GPU are used.
type repeated map[*jobs.Process]map[uint32]bool

// repeatedMetrics decides whose measurements of a GPU are used if several processes of a machine measured it: those of
// the process with the most events or, among equals, of the first in world order. The rows of the others are left out
// and counted. Processes cannot agree on this while they record, because they do not communicate with each other.
func repeatedMetrics(of *roster) repeated {
	type gpu struct{ machine, uuid string }
	type row struct {
		part   *jobs.Process
		number uint32
	}
	events := make(map[gpu]map[*jobs.Process]uint64) // by process
	rows := make(map[gpu][]row)
	for _, p := range of.ordered() {
		for _, l := range p.Shard.Locations {
			if l.Kind != description.KindGPUMetrics {
				continue
			}
			g := gpuOfMetrics(p, l.Number)
			if g < 0 || identityOf(&p.Shard.GPUs[g]) == "" {
				continue
			}
			key := gpu{p.Shard.Host + "\x00" + p.Shard.BootID, identityOf(&p.Shard.GPUs[g])}
			keyed.Map(events, key)[p] += l.Events
			rows[key] = append(rows[key], row{p, l.Number})
		}
	}
	out := make(repeated)
	for key, all := range rows {
		best := all[0].part
		for _, r := range all { // in world order
			if events[key][r.part] > events[key][best] {
				best = r.part
			}
		}
		for _, r := range all {
			if r.part == best {
				continue
			}
			keyed.Map(out, r.part)[r.number] = true
		}
	}
	return out
}

// gpuOfMetrics returns the index of the GPU that a row of kind KindGPUMetrics measures; −1 if unknown.
func gpuOfMetrics(p *jobs.Process, number uint32) int {
	for i := range p.Shard.Metrics {
		m := &p.Shard.Metrics[i]
		if m.Location >= 0 && uint32(m.Location) == number && m.GPU >= 0 && m.GPU < len(p.Shard.GPUs) {
			return m.GPU
		}
	}
	return -1
}

// defineMetrics defines each metric member and each class once, whichever processes use it. Measurements of GPUs become
// one instance per row: recorded by the row, with the device as its scope.
func (d *definer) defineMetrics(t *systemTree) {
	members := make(map[description.MetricMember]otf2.MetricMemberRef)
	classes := make(map[string]otf2.MetricRef)
	next := d.from.metric // classes and instances share one range of ids
	global := make(map[*jobs.Process][]uint64)
	class := func(m *description.Metric) otf2.MetricRef {
		refs := make([]otf2.MetricMemberRef, len(m.Members))
		var key strings.Builder
		fmt.Fprintf(&key, "%d", m.Recorder)
		for i, q := range m.Members {
			refs[i] = keyed.EntryMade(members, q, func() otf2.MetricMemberRef {
				ref := d.from.metricMember + otf2.MetricMemberRef(len(d.MetricMembers))
				d.MetricMembers = append(d.MetricMembers, otf2.MetricMember{
					Self: ref, Name: d.text(q.Name), Description: d.text(q.Description), Type: otf2.MetricTypeOther,
					Mode: q.Mode, ValueType: q.Type, Base: otf2.BaseDecimal, Exponent: q.Exponent, Unit: d.text(q.Unit),
				})
				return ref
			})
			fmt.Fprintf(&key, " %d", refs[i])
		}
		return keyed.EntryMade(classes, key.String(), func() otf2.MetricRef {
			d.MetricClasses = append(d.MetricClasses, otf2.MetricClass{
				Self: next, Members: refs, Occurrence: otf2.MetricAsynchronous, RecorderKind: m.Recorder,
			})
			next++
			return next - 1
		})
	}
	for _, p := range d.ordered() {
		global[p] = make([]uint64, len(p.Shard.Metrics))
		for i := range p.Shard.Metrics {
			ref := class(&p.Shard.Metrics[i])
			global[p][i] = uint64(ref)
			for _, n := range p.Shard.Metrics[i].Locations {
				if l := d.ids[p][n]; l != nil {
					d.MetricClassRecorders = append(d.MetricClassRecorders,
						otf2.MetricClassRecorder{Metric: ref, Recorder: l.Self})
				}
			}
		}
	}
	for _, p := range d.ordered() {
		for i := range p.Shard.Metrics {
			m := &p.Shard.Metrics[i]
			if m.Location < 0 {
				continue
			}
			l := d.ids[p][uint32(m.Location)]
			if l == nil { // the row is left out, or its file is missing
				global[p][i] = math.MaxUint64
				continue
			}
			d.MetricInstances = append(d.MetricInstances, otf2.MetricInstance{
				Self: next, MetricClass: otf2.MetricRef(global[p][i]), Recorder: l.Self,
				MetricScope: otf2.MetricScopeSystemTreeNode,
				Scope:       uint64(t.devices[jobs.Device{Process: p, GPU: l.gpu}]),
			})
			global[p][i] = uint64(next)
			next++
		}
		d.tables.add(p, otf2.MappingMetric, global[p])
	}
	slices.SortStableFunc(d.MetricClassRecorders, func(x, y otf2.MetricClassRecorder) int {
		return cmp.Or(cmp.Compare(x.Metric, y.Metric), cmp.Compare(x.Recorder, y.Recorder))
	})
}

// writeMetrics writes the definitions of defineMetrics. Classes precede instances, so that their common ids ascend.
func (d *definitions) writeMetrics(w *otf2.GlobalDefWriter) {
	for _, m := range d.MetricMembers {
		_ = w.MetricMember(m.Self, m.Name, m.Description, m.Type, m.Mode, m.ValueType, m.Base, m.Exponent, m.Unit)
	}
	for _, m := range d.MetricClasses {
		_ = w.MetricClass(m.Self, m.Members, m.Occurrence, m.RecorderKind)
	}
	for _, m := range d.MetricInstances {
		_ = w.MetricInstance(m.Self, m.MetricClass, m.Recorder, m.MetricScope, m.Scope)
	}
	for _, m := range d.MetricClassRecorders {
		_ = w.MetricClassRecorder(m.Metric, m.Recorder)
	}
}

// rows returns the number of rows left out.
func (r repeated) rows() (n uint64) {
	for _, rows := range r {
		n += uint64(len(rows))
	}
	return n
}
