// SPDX-License-Identifier: Apache-2.0

package regions

import "slices"

// Whether NCCL's stamp of a kernel's end is the kernel's end.
//
// Thread 0 of each block writes the stamp when its own part of the work is done, and waits for no other thread (NCCL's
// src/device/common.h; docs/nccl-profiler-api.md §7.7). By the ring algorithm all threads take part in every step, so
// it is the kernel's end. By other algorithms, and for messages, warps have different parts: what thread 0 does can be
// over long before the rest.

// earlyAlgorithms are those by which thread 0 does not have the last part, by function.
var earlyAlgorithms = map[string][]string{
	"AllReduce": {"TREE", "COLLNET_CHAIN", "NVLS", "NVLS_TREE"},
	// sending up, or scattering; what comes back, other warps receive
	"ReduceScatter": {"NVLS", "COLLNET_DIRECT"},
	// scattering, though what was reduced has to come yet
	"AllGather": {"COLLNET_DIRECT"}, // sending to the network
}

// endsEarly reports whether the end of a plan's kernel may be later than its stamps say.
func (p *plan) endsEarly() bool {
	messages := 0
	for _, op := range p.ops {
		switch {
		case op.p2p:
			messages++ // thread 0 has the first one, of a send and a receive the send
		case slices.Contains(earlyAlgorithms[op.name], op.algo) && p.comm.NRanks != 1:
			return true
		}
	}
	return messages > 1
}
