// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// For transfers recorded as sums, numbers and bytes are as for individual ones. Of times, only the busy time of each
// row and peer is known, so a flow with several of them has no known time. Channels are unknown.

// summedKey identifies a sum.
type summedKey struct {
	network  otf2.CommRef
	location otf2.LocationRef
	to       int
}

// summed is what a row's records of sums say about one peer.
type summed struct {
	Traffic
	busy uint64
}

// sums takes the sums of an operation's transfers.
func (l *matrixLane) sums(s *facts.NetSums) {
	c := l.windows[s.Window]
	if !s.Send || c == nil || !c.Network || s.Peer < 0 || !l.selected.At(s.Location, s.Time) {
		return
	}
	of := keyed.Entry(l.summed, summedKey{c.Ref, s.Location, s.Peer})
	of.Transfers += s.Transfers
	of.Bytes += s.Bytes
	of.busy += s.Busy
}

// addSums adds the records of sums of a lane.
func (m *matrix) addSums(all map[summedKey]*summed) {
	for key, s := range all {
		if s.Transfers == 0 {
			continue // the operation is not selected
		}
		m.summed += s.Transfers
		n := m.networks[key.network]
		from, known := m.ranks[key.location]
		if !known {
			from = -1
		}
		n.Total.addTraffic(s.Traffic)
		n.Ranks = max(n.Ranks, key.to+1, from+1)
		if known {
			n.cell(from, key.to).addTraffic(s.Traffic)
		} else {
			n.UnknownSender.addTraffic(s.Traffic)
		}
		at, to := m.place(n, from), m.place(n, key.to)
		keyed.Entry(m.channels, channelKey{n.Comm, -1}).addSums(s)
		keyed.Entry(m.flows, [2]int{at, to}).addSums(s)
		keyed.Entry(m.hosts, [2]string{m.host(at), m.host(to)}).addSums(s)
	}
}

// addSums adds transfers recorded as sums.
func (f *flow) addSums(s *summed) {
	f.Traffic.addTraffic(s.Traffic)
	f.parts++
	f.summed += s.busy
}

func (t *Traffic) addTraffic(o Traffic) {
	t.Transfers += o.Transfers
	t.Bytes += o.Bytes
}
