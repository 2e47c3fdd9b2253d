// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cube"
)

// arranged is a metric in the tree that report tools make of a profile: one of the profile, or one that exists only
// there.
type arranged struct {
	name                 string // unique
	display, description string // of a metric that the profile does not have
	hidden               bool   // without values, but tools look for it
	below                []arranged
}

// arrangement is that tree. The metrics below time divide it, each part in one place, so that no time becomes negative.
// Tools look for some names of Score-P that the profile lacks: execution, comp, and computational imbalance, which has
// no meaning where threads, GPUs and networks are rows of one process.
var arrangement = []arranged{
	{name: "time", below: []arranged{
		{name: "execution", display: "Execution", description: "All but idle helper threads", below: []arranged{
			{name: "comp", display: "Computation",
				description: "The application: threads outside of NCCL, kernels and copies", below: []arranged{
					{name: shareApplication}, {name: shareKernels},
				}},
			{name: "nccl_time", display: "Communication",
				description: "NCCL: calls, operations, transfers, each on rows of their own", below: []arranged{
					{name: shareEnqueue},
					{name: shareOperation, below: []arranged{{name: "nccl_wait_time", below: []arranged{
						{name: "nccl_wait_nxn"}, {name: "nccl_late_broadcast"}, {name: "nccl_early_reduce"},
						{name: "nccl_late_sender"}, {name: "nccl_late_receiver"}, {name: "nccl_startup_wait"},
					}}}},
					{name: shareUnplaced}, {name: shareNetwork}, {name: shareProxy},
				}},
		}},
		{name: shareIdle},
	}},
	{name: "visits"}, {name: "max_time"},
	{name: "bytes_sent"}, {name: "bytes_received"}, {name: "bytes_put"},
	{name: "algbw"}, {name: "busbw"}, {name: "nccl_bytes"}, {name: "nccl_bus_bytes"}, {name: "nccl_busy_time"},
	{name: "imbalance", hidden: true}, {name: "imbalance_above", hidden: true},
	{name: "imbalance_above_single", hidden: true},
	{name: "imbalance_below", hidden: true}, {name: "imbalance_below_bypass", hidden: true},
	{name: "imbalance_below_singularity", hidden: true},
}

// remapping returns the arrangement of the metrics in the format of report tools.
func remapping(metrics []cube.Metric) ([]byte, error) {
	known := make(map[string]*cube.Metric, len(metrics))
	for i := range metrics {
		known[metrics[i].UniqueName] = &metrics[i]
	}
	d := new(cube.Definitions)
	arrange(d, arrangement, cube.None, known)
	return cube.Remapping(d.Metrics)
}

func arrange(d *cube.Definitions, list []arranged, above cube.MetricID, known map[string]*cube.Metric) {
	for i := range list {
		a := &list[i]
		m := cube.Metric{UniqueName: a.name, DisplayName: a.display, Description: a.description, Type: cube.Double,
			Unit: "sec", Kind: cube.Exclusive, Hidden: a.hidden}
		switch k := known[a.name]; {
		case k != nil:
			m = *k
		case !a.hidden:
			m.Kind, m.Expression = cube.PostDerived, sumOf(a.below)
		}
		m.Parent = above
		arrange(d, a.below, d.AddMetric(m), known)
	}
}

// sumOf returns the expression of a metric that is the sum of those below it.
func sumOf(list []arranged) string {
	terms := make([]string, len(list))
	for i := range list {
		terms[i] = "metric::" + list[i].name + "()"
	}
	return strings.Join(terms, " + ")
}
