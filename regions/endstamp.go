// SPDX-License-Identifier: Apache-2.0

package regions

import "slices"

// Whether NCCL's end stamp of a kernel is the end of the whole kernel.
//
// Thread 0 of each block writes the stamp when its own part is done, without waiting for other threads (NCCL's
// src/device/common.h; docs/nccl-profiler-api.md §7.7). In the ring algorithm all threads take part in every step, so
// it is the kernel's end. In other algorithms, and for messages, warps have different parts, and thread 0 may finish
// long before the rest.

// earlyAlgorithms are, by function, the algorithms in which thread 0 does not have the last part.
var earlyAlgorithms = map[string][]string{
	"AllReduce": {"TREE", "COLLNET_CHAIN", "NVLS", "NVLS_TREE"},
	// sending up or scattering; other warps receive the result
	"ReduceScatter": {"NVLS", "COLLNET_DIRECT"},
	// scattering, before the reduced data has arrived
	"AllGather": {"COLLNET_DIRECT"}, // sending to the network
}

// endsEarly reports whether a plan's kernel may have ended later than its stamps say.
func (p *plan) endsEarly() bool {
	messages := 0
	for _, op := range p.ops {
		switch {
		case op.p2p:
			messages++ // thread 0 has the first one, and the send of a pair
		case slices.Contains(earlyAlgorithms[op.name], op.tuning.algo) && p.comm.NRanks != 1:
			return true
		}
	}
	return messages > 1
}
