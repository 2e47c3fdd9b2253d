// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Metrics derived from what NCCL reported: bandwidths, operations outstanding, bytes in flight. Bandwidths are
// nccl-tests' (doc/PERFORMANCE.md there).

// derivedMetric is a metric that the model computes.
type derivedMetric int

const (
	metricBandwidth   derivedMetric = iota // of the running operation, on the rank's row
	metricOutstanding                      // operations in the queue, on the rank's row
	metricSending                          // bytes on the row of the sending proxy
	metricReceiving                        // and of the receiving one
	numDerivedMetrics
)

// derivedMetrics defines them. Rows record them among their other events: asynchronous classes without instances, as
// Score-P records user metrics. A value holds until the next one.
var derivedMetrics = [numDerivedMetrics]description.Metric{
	metricBandwidth: {Recorder: otf2.RecorderKindGPU, Members: []description.MetricMember{
		{Name: "NCCL algbw", Type: otf2.TypeDouble, Unit: "B/s",
			Description: "Algorithm bandwidth of the operation: nccl-tests' size over its duration"},
		{Name: "NCCL busbw", Type: otf2.TypeDouble, Unit: "B/s",
			Description: "Bus bandwidth of the operation: algbw times nccl-tests' factor for the function and the " +
				"number of ranks"},
	}},
	metricOutstanding: {Recorder: otf2.RecorderKindGPU, Members: []description.MetricMember{
		{Name: "NCCL outstanding", Type: otf2.TypeUint64, Unit: "#",
			Description: "Operations of the communicator rank that are enqueued and have not ended"},
	}},
	metricSending: {Recorder: otf2.RecorderKindCPU, Members: []description.MetricMember{
		{Name: "NCCL bytes in flight", Type: otf2.TypeUint64, Unit: "B",
			Description: "Handed to the network and not known to be sent"},
	}},
	metricReceiving: {Recorder: otf2.RecorderKindCPU, Members: []description.MetricMember{
		{Name: "NCCL bytes arrived", Type: otf2.TypeUint64, Unit: "B",
			Description: "Arrived from the network and not taken by the GPU"},
	}},
}

// metrics writes values onto rows.
type metrics struct {
	*board
	refs   [numDerivedMetrics]otf2.MetricRef // plus 1
	types  [2]otf2.Type
	values [2]uint64

	gpus  []*gpuMetrics // by index into process.GPUs; nil without measurements
	first uint64        // time of the first sample, 0 before
}

// metricRef returns the local id of a metric, which is defined at its first use.
func (ms *metrics) metricRef(d derivedMetric) otf2.MetricRef {
	s := ms
	if s.refs[d] == 0 {
		def := derivedMetrics[d]
		def.Location, def.GPU = -1, -1
		def.Members = slices.Clone(def.Members) // of the shared table
		for i := range def.Members {
			def.Members[i].Mode = otf2.MetricAbsoluteNext
		}
		ms.process.Metrics = append(ms.process.Metrics, def)
		s.refs[d] = otf2.MetricRef(len(ms.process.Metrics))
	}
	return s.refs[d] - 1
}

// writeMetric writes the values of a derived metric onto a row.
func (ms *metrics) writeMetric(loc *location, t otf2.Timestamp, d derivedMetric, values ...uint64) {
	ref := ms.metricRef(d)
	if loc.recorded&(1<<d) == 0 {
		loc.recorded |= 1 << d
		def := &ms.process.Metrics[ref]
		def.Locations = append(def.Locations, loc.Number)
	}
	s := ms
	for i, v := range values {
		s.types[i], s.values[i] = derivedMetrics[d].Members[i].Type, v
	}
	ms.keepError(loc.w.Metric(t, nil, ref, s.types[:len(values)], s.values[:len(values)]))
}

// planBandwidth returns the bandwidth of a plan's operations together, in bytes per second. Collectives add up
// nccl-tests' sizes and factors (doc/PERFORMANCE.md of nccl-tests). Messages count the larger of sent and received
// bytes; those to the rank itself count for algbw only. known is false if the size is not known.
func (ms *metrics) planBandwidth(c *commRank, p *plan, nanoseconds uint64) (algbw, busbw float64, known bool) {
	if c.NRanks < 2 {
		return 0, 0, false
	}
	var sizes, moved float64
	var sent, received, sentAway, receivedAway float64
	for _, op := range p.ops {
		if op.p2p {
			bytes := float64(op.shareBytes())
			all, away := &received, &receivedAway
			if op.name == "Send" {
				all, away = &sent, &sentAway
			}
			*all += bytes
			if int(op.peer) != c.Rank {
				*away += bytes
			}
			continue
		}
		f := CollectiveNamed(op.name)
		if f == nil {
			return 0, 0, false
		}
		size := float64(f.Size(op.shareBytes(), uint64(c.NRanks)))
		sizes += size
		moved += size * f.BusFactor(float64(c.NRanks))
	}
	seconds := float64(nanoseconds) / 1e9
	sizes += max(sent, received)
	moved += max(sentAway, receivedAway)
	return sizes / seconds, moved / seconds, sizes > 0
}

// beginBandwidth writes the bandwidth of a plan at its begin, and reports whether it did; endBandwidth must then follow
// at its end. Times are those of the plan's work, not yet raised to the row's.
func (ms *metrics) beginBandwidth(c *commRank, loc *location, p *plan, begin, end uint64) bool {
	if !ms.opts.Metrics || end <= begin {
		return false
	}
	algbw, busbw, known := ms.planBandwidth(c, p, end-begin)
	if known {
		ms.writeMetric(loc, loc.raiseTime(begin), metricBandwidth, math.Float64bits(algbw), math.Float64bits(busbw))
	}
	return known
}

func (ms *metrics) endBandwidth(loc *location, t otf2.Timestamp) {
	ms.writeMetric(loc, t, metricBandwidth, 0, 0)
}

// outstanding counts the operations in the queue of a communicator rank, as of the time up to which its row is written.
type outstanding struct {
	seen int // number of entries at the head of the queue that are counted
	n    int
}

// showsOutstanding reports whether the ends of operations are recorded at all.
func (ms *metrics) showsOutstanding(c *commRank) bool {
	return ms.opts.Metrics && c.NRanks > 1 && (ms.recordsType(shm.EventKernelCh) || ms.recordsType(shm.EventProxyOp))
}

// countOperations returns the number of operations of a plan.
func (p *plan) countOperations(c *commRank) int {
	if p.compositeFunction(c) != nil {
		return 1
	}
	return len(p.ops)
}

// writeEnqueued writes how the queue has grown up to a time: what was enqueued while the row's last operations ran. All
// records up to then are known, because an operation is written after it has ended.
func (ms *metrics) writeEnqueued(c *commRank, loc *location, until otf2.Timestamp) {
	if !ms.showsOutstanding(c) {
		return
	}
	o := &c.outstanding
	for ; o.seen < len(c.queue.plans); o.seen++ {
		p := c.queue.plans[o.seen]
		if p.measurement != 0 || p.captureOnly || p.counted != 0 {
			continue
		}
		at := otf2.Timestamp(p.enqueue.start)
		if p.enqueue.launch != nil {
			at = otf2.Timestamp(p.enqueue.launch.Start)
		}
		if at > until {
			return
		}
		if p.counted = p.countOperations(c); p.counted == 0 {
			continue
		}
		o.n += p.counted
		ms.writeMetric(loc, max(at, loc.w.LastTime()), metricOutstanding, uint64(o.n))
	}
}

// beginOutstanding counts the plan at the head of the queue, unless it is counted: calls without a plan come to the
// queue late, and so do operations of a plan.
func (ms *metrics) beginOutstanding(c *commRank, loc *location, p *plan, t otf2.Timestamp) {
	ms.writeEnqueued(c, loc, t)
	if !ms.showsOutstanding(c) {
		return
	}
	if w := p.countOperations(c); p.counted != w {
		c.outstanding.n += w - p.counted
		p.counted = w
		ms.writeMetric(loc, t, metricOutstanding, uint64(c.outstanding.n))
	}
}

func (ms *metrics) endOutstanding(c *commRank, loc *location, p *plan, t otf2.Timestamp) {
	ms.writeEnqueued(c, loc, t)
	if !ms.showsOutstanding(c) {
		return
	}
	c.outstanding.n -= p.counted
	p.counted = 0
	ms.writeMetric(loc, t, metricOutstanding, uint64(c.outstanding.n))
}

// removePlan notes that a plan leaves the queue, drawn or not.
func (o *outstanding) removePlan(p *plan) {
	o.n -= p.counted
	o.seen = max(0, o.seen-1)
}

// inFlight notes a change of the bytes in flight by a transfer. It does nothing where transfers are summed up.
func (net *network) inFlight(s *netSide, step *proxyStep, t, bytes uint64) {
	if net.opts.NetSums {
		return // as many values as transfers
	}
	if !net.opts.Metrics || int64(bytes) == step.bytes || s.loc == nil {
		return
	}
	s.bytes += int64(bytes) - step.bytes
	step.bytes = int64(bytes)
	d := metricReceiving
	if s == &s.rank.send {
		d = metricSending
		net.flushPolls(s.rank)
	}
	if s.phase.start < t { // it has lasted, so it is drawn; what takes no time may begin behind this
		net.writePhaseBegin(s)
	}
	net.metrics.writeMetric(s.loc, s.loc.raiseTime(t), d, uint64(s.bytes))
}
