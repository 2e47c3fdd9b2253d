// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"math"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
)

// metric is one metric of profiles and how to get its values: count or seconds, of the node or total, sum or longest.
// Derived metrics have none.
type metric struct {
	cube.Metric
	above   string                                // unique name of the parent metric
	count   func(n *node, c *profile.Cell) uint64 // integers
	seconds func(n *node, c *profile.Cell) uint64 // ns, written as seconds
	number  func(c *profile.Cell) float64
	total   bool // with call paths below
	longest bool // visits
	wait    bool // of wait states
}

// ratio divides where the divisor is not 0. CUBE evaluates it after adding up, so the bandwidth of several operations
// or ranks is their bytes divided by their time, where each operation has the median time of its size.
func ratio(bytes string) string {
	return "{ ${s} = metric::nccl_busy_time(); ${v} = 0; if (${s} > 0) { ${v} = metric::" + bytes +
		"() / ${s}; }; return ${v}; }"
}

func waitMetric(unique, display, description string, kind lateness.WaitKind) metric {
	return metric{wait: true, above: "nccl_wait_time",
		seconds: func(_ *node, c *profile.Cell) uint64 { return c.Waits[kind] },
		Metric: cube.Metric{UniqueName: unique, DisplayName: display, Type: cube.Double, Unit: "sec",
			Kind: cube.Exclusive, Description: description}}
}

// metrics are all metrics in the order of profiles, derived ones last. Wait states have names like Scalasca's, but
// different definitions: waits at start-up are separate, members that delay others in rooted operations count, and of
// the messages of a launch only the longest wait counts.
var metrics = []metric{
	{count: func(_ *node, c *profile.Cell) uint64 { return c.Visits },
		Metric: cube.Metric{UniqueName: "visits", DisplayName: "Visits", Type: cube.Uint64, Unit: "occ",
			Kind:        cube.Exclusive,
			Description: "Calls, operations, launches of several operations, phases, transfers"}},
	{total: true,
		Metric: cube.Metric{UniqueName: "time", DisplayName: "Time", Type: cube.Double, Unit: "sec",
			Kind: cube.Inclusive,
			Description: "Of the host under program, of GPUs under KERNELS, of networks under NETWORK: times of one " +
				"kind in each tree"}},
	shareMetric(shareApplication, "Application threads", "Of threads, outside of NCCL"),
	shareMetric(shareKernels, "Application on GPUs", "Kernels and copies of the application"),
	shareMetric(shareEnqueue, "NCCL enqueue time", "Of the host in NCCL's calls, launches and enqueueing"),
	shareMetric(shareOperation, "NCCL operations",
		"In NCCL's operations, waiting included: by times of the GPU, else of the network, else by their length"),
	{wait: true, above: shareOperation, seconds: func(_ *node, c *profile.Cell) uint64 { return c.Waits.Total() },
		Metric: cube.Metric{UniqueName: "nccl_wait_time", DisplayName: "NCCL wait states", Type: cube.Double,
			Unit: "sec", Kind: cube.Exclusive,
			Description: "Time in operations of NCCL spent waiting for other ranks"}},
	waitMetric("nccl_wait_nxn", "NCCL Wait at N x N",
		"In an AllReduce, AllGather, ReduceScatter or AlltoAll, until the last member begins", lateness.WaitCollective),
	waitMetric("nccl_late_broadcast", "NCCL Late Broadcast",
		"In a Broadcast or Scatter, until the root begins, or the last member that holds it up",
		lateness.WaitLateBroadcast),
	waitMetric("nccl_early_reduce", "NCCL Early Reduce",
		"In a Reduce or Gather: of the root until the last of the others begins, of others until the member begins "+
			"that holds them up", lateness.WaitEarlyReduce),
	waitMetric("nccl_late_sender", "NCCL Late Sender", "Of a receiver, until the sender begins",
		lateness.WaitLateSender),
	waitMetric("nccl_late_receiver", "NCCL Late Receiver", "Of a sender, until the receiver begins",
		lateness.WaitLateReceiver),
	waitMetric("nccl_startup_wait", "NCCL start-up",
		"In the first of several collectives of a communicator: who starts late is waited for there",
		profile.WaitStartUp),
	shareMetric(shareUnplaced, "NCCL operations not timed",
		"Enqueueing of operations of which no other times are known: not how long they took"),
	shareMetric(shareNetwork, "NCCL network time",
		"While transfers were under way, by the phase of the oldest in each direction"),
	shareMetric(shareProxy, "NCCL proxy threads", "Work of NCCL's helper threads beside transfers"),
	shareMetric(shareIdle, "NCCL idle helper threads", "While NCCL's helper threads slept or had nothing to do"),
	{longest: true,
		Metric: cube.Metric{UniqueName: "max_time", DisplayName: "Maximum Inclusive Time", Type: cube.MaxDouble,
			Unit: "sec", Kind: cube.Exclusive,
			Description: "Of one visit, with what it calls; 0 where there was none"}},
	{count: func(_ *node, c *profile.Cell) uint64 { return c.Sent },
		Metric: cube.Metric{UniqueName: "bytes_sent", DisplayName: "bytes_sent", Type: cube.Uint64, Unit: "bytes",
			Kind:        cube.Exclusive,
			Description: "By operations, counted as Score-P does for the MPI operation of the name"}},
	{count: func(_ *node, c *profile.Cell) uint64 { return c.Received },
		Metric: cube.Metric{UniqueName: "bytes_received", DisplayName: "bytes_received", Type: cube.Uint64,
			Unit: "bytes", Kind: cube.Exclusive,
			Description: "By operations, counted as Score-P does for the MPI operation of the name"}},
	{count: func(_ *node, c *profile.Cell) uint64 { return c.Put },
		Metric: cube.Metric{UniqueName: "bytes_put", DisplayName: "bytes_put", Type: cube.Uint64, Unit: "bytes",
			Kind:        cube.Exclusive,
			Description: "By transfers over the network, as proxies saw them"}},
	{number: func(c *profile.Cell) float64 { alg, _ := c.Speeds.Sums(); return alg.Bytes },
		Metric: cube.Metric{UniqueName: "nccl_bytes", DisplayName: "NCCL bytes", Type: cube.Double, Unit: "bytes",
			Kind: cube.Exclusive,
			Description: "Sizes, as nccl-tests counts them, of operations that have a bandwidth: launched alone or " +
				"with equal ones, with times of the GPU or network, not in the first launch of a communicator"}},
	{number: func(c *profile.Cell) float64 { _, bus := c.Speeds.Sums(); return bus.Bytes },
		Metric: cube.Metric{UniqueName: "nccl_bus_bytes", DisplayName: "NCCL bus bytes", Type: cube.Double,
			Unit: "bytes", Kind: cube.Exclusive,
			Description: "The same times nccl-tests' factor of the operation for the bus"}},
	{seconds: func(_ *node, c *profile.Cell) uint64 { alg, _ := c.Speeds.Sums(); return uint64(math.Round(alg.Time)) },
		Metric: cube.Metric{UniqueName: "nccl_busy_time", DisplayName: "NCCL bandwidth time", Type: cube.Double,
			Unit: "sec", Kind: cube.Exclusive,
			Description: "Times of these operations, each the median of its size on its rank"}},
	{Metric: cube.Metric{UniqueName: "algbw", DisplayName: "Algorithm bandwidth", Type: cube.Double, Unit: "bytes/sec",
		Kind: cube.PostDerived, Ratio: true,
		Description: "nccl-tests' algbw: bytes together / time together, each operation with the median time of its " +
			"size", Expression: ratio("nccl_bytes")}},
	{Metric: cube.Metric{UniqueName: "busbw", DisplayName: "Bus bandwidth", Type: cube.Double, Unit: "bytes/sec",
		Kind: cube.PostDerived, Ratio: true,
		Description: "nccl-tests' busbw: bus bytes together / time together, each operation with the median time of " +
			"its size", Expression: ratio("nccl_bus_bytes")}},
}
