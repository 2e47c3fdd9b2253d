// SPDX-License-Identifier: Apache-2.0

package regions

import "github.com/nccl-otf2/nccl-otf2/plugin/shm"

// NetPlugin: what the network plugin reports of a transfer. NCCL built without NET_PROFILER=1 reports none
// (docs/nccl-profiler-api.md §8).

// Kinds of network plugins, bits 16 … 31 of a NetPlugin's id (docs/nccl-profiler-api.md §8).
const (
	pluginIB     = 1
	pluginSocket = 2
)

// startNet counts an event of the network plugin. Such events are not drawn: they lie within the transfer, which is.
// The transfer's RmaPut gets their queue pair; with sockets and helper threads the parent may be wrong (§8), so nothing
// is used from those.
func (net *network) startNet(_ *thread, _ uint64, r *shm.Record) {
	if _, full := net.transfers.Put(r.Handle, struct{}{}); full {
		net.countOddity(oddForgottenEvent)
	}
	s := net.steps[r.Arg]
	kind := r.NetID >> 16 & 0xffff
	known := r.Flags&shm.FlagKnownNet != 0
	switch {
	case kind == pluginIB && known:
		net.counts[netIB]++
		// NCCL sets neither opcode nor length for receives.
		if s != nil && s.op != nil && s.op.send {
			net.counts[netIBBytes] += r.Length
			s.qp, s.hasQP = r.QP, true
		}
	case kind == pluginSocket && known:
		net.counts[netSocket]++
		net.counts[netSocketBytes] += r.Length
	default:
		net.counts[netOther]++
		net.countOddity(oddUnknownNet)
	}
}

func (net *network) stopNet(_ *thread, _ uint64, r *shm.Record) {
	if !net.transfers.Has(r.Handle) {
		net.countOddity(oddNetStop)
	}
	net.transfers.Remove(r.Handle)
}
