// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/profile"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Metrics that divide the time: the own time of each node is in one of them.
const (
	shareApplication = "application_time"
	shareKernels     = "application_gpu_time"
	shareEnqueue     = "nccl_enqueue_time"
	shareOperation   = "nccl_operation_time"
	shareUnplaced    = "nccl_unplaced_time"
	shareNetwork     = "nccl_network_time"
	shareProxy       = "nccl_proxy_time"
	shareIdle        = "nccl_idle_time"
)

// shareOf returns the name of the metric with the own time of a node.
func shareOf(n *node) string {
	switch n.tree {
	case profile.Host:
		if n.Kind == profile.Call || n.Kind == profile.Size {
			return shareEnqueue
		}
		return shareApplication
	case profile.Kernels:
		if n.Kind == profile.Kernel {
			return shareKernels
		}
		return shareOperation
	case profile.ByEnqueue:
		return shareUnplaced
	case profile.Network:
		switch {
		case n.Kind != profile.Proxy:
			return shareNetwork
		case n.Name == regions.NameProxySleep || n.Name == regions.NameProxyIdle:
			return shareIdle
		}
		return shareProxy
	}
	return shareOperation
}

func shareMetric(unique, display, description string) metric {
	return metric{seconds: func(n *node, c *profile.Cell) uint64 {
		if shareOf(n) != unique {
			return 0
		}
		return c.Time
	}, Metric: cube.Metric{UniqueName: unique, DisplayName: display, Type: cube.Double, Unit: "sec",
		Kind: cube.Exclusive, Description: description}}
}
