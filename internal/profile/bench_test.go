// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// BenchmarkWriter takes the events of a call, its operation and some transfers as a collector would write them.
func BenchmarkWriter(b *testing.B) {
	d := &description.Process{Comms: []description.Comm{{ID: 7, NRanks: 4, Rank: 1}},
		Strings: []string{"gpu", "RING", "LL", "ncclFloat32"},
		Regions: []description.Region{{Name: "ncclAllReduce", Group: regions.GroupAPI},
			{Name: "AllReduce", Group: regions.GroupCollectives}, {Name: "Send GPU wait", Group: regions.GroupNetwork}}}
	p := NewProcess(d)
	thread := p.EventWriter(description.Location{Number: 0, Kind: description.KindThread, Comm: -1})
	rank := p.EventWriter(description.Location{Number: 1, Kind: description.KindRank})
	net := p.EventWriter(description.Location{Number: 2, Kind: description.KindNetSend})
	const transfers = 8
	const events = 2 + 4 + 4*transfers
	a := new(otf2.AttributeList)
	b.ReportAllocs()
	at := otf2.Timestamp(1)
	ordinal := uint64(0)
	for range b.N/events + 1 {
		a.Reset()
		a.Uint64(regions.AttrOrdinal, ordinal)
		a.String(regions.AttrAlgo, 1)
		a.String(regions.AttrProto, 2)
		a.String(regions.AttrDatatype, 3)
		a.Uint64(regions.AttrCount, 1<<16)
		ordinal++
		_ = thread.Enter(at, a, 0)
		_ = thread.Leave(at+100, nil, 0)
		a.String(regions.AttrTimingSource, 0)
		_ = rank.Enter(at, a, 1)
		_ = rank.MpiCollectiveBegin(at, nil)
		_ = rank.MpiCollectiveEnd(at+500, nil, otf2.CollectiveOpAllreduce, 0, otf2.CollectiveRootNone, 1<<20, 1<<20)
		_ = rank.Leave(at+500, nil, 1)
		for i := range otf2.Timestamp(transfers) {
			_ = net.Enter(at+10*i, nil, 2)
			_ = net.RmaPut(at+10*i+1, nil, 0, 2, 4096, 1)
			_ = net.RmaOpCompleteNonBlocking(at+10*i+2, nil, 0, 1)
			_ = net.Leave(at+10*i+3, nil, 2)
		}
		at += 1000
	}
}
