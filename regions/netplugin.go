// SPDX-License-Identifier: Apache-2.0

package regions

import "github.com/nccl-otf2/nccl-otf2/plugin/shm"

// Kinds of network plugins, bits 16 … 31 of a NetPlugin's id (notes on the API, §8).
const (
	pluginIB     = 1
	pluginSocket = 2
)

// startNet counts an event of the network plugin. Such events are not drawn: they lie within the transfer that
// is. The queue pair goes to the transfer's RmaPut; with sockets and helper threads the parent may be wrong
// (§8), so nothing is taken from those.
func (m *Model) startNet(_ *thread, _ uint64, r *shm.Record) {
	if _, full := m.transfers.Put(r.Handle, struct{}{}); full {
		m.oddity(OddForgottenEvent)
	}
	s := m.steps[r.Arg]
	kind := r.NetID >> 16 & 0xffff
	known := r.Flags&shm.FlagKnownNet != 0
	switch {
	case kind == pluginIB && known:
		m.network[netIB]++
		// Of receives NCCL fills in neither opcode nor length.
		if s != nil && s.op != nil && s.op.send {
			m.network[netIBBytes] += r.Length
			s.qp, s.hasQP = r.QP, true
		}
	case kind == pluginSocket && known:
		m.network[netSocket]++
		m.network[netSocketBytes] += r.Length
	default:
		m.network[netOther]++
		m.oddity(OddUnknownNet)
	}
}

func (m *Model) stopNet(_ *thread, _ uint64, r *shm.Record) {
	if !m.transfers.Has(r.Handle) {
		m.oddity(OddNetStop)
	}
	m.transfers.Remove(r.Handle)
}
