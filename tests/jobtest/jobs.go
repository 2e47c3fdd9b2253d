// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// WithNetwork is a job with transfers in a ring; rank 1 sends some for rank 0 (PXN).
func WithNetwork(t testing.TB) string {
	t.Helper()
	var origin uint16
	return Typical(t, func(r int, p *shardtest.Process) {
		p.Network(0)
		for i := range uint64(3) {
			p.Put(0, (r+1)%3, T0+(310+20*i)*Microsecond, T0+(320+20*i)*Microsecond, 1000+uint64(r))
		}
		p.Put(0, (r+2)%3, T0+390*Microsecond, T0+395*Microsecond, 7)
		switch r {
		case 0:
			origin = p.Shard.Tag
		case 1:
			f := p.Foreign(description.ForeignComm{Tag: origin, Rank: 0, PID: 100})
			p.Put(-1-f, 2, T0+400*Microsecond, T0+401*Microsecond, 500)
		}
	})
}

// WithKernels is a job of two ranks; rank 0 has kernels of its own, and NCCL's, on two streams.
func WithKernels(t testing.TB) string {
	t.Helper()
	at := func(us uint64) otf2.Timestamp { return otf2.Timestamp(T0 + us*1000) }
	return Make(t, 2, 2, func(r int, p *shardtest.Process) {
		world := p.World()
		second := p.Comm(description.Comm{ID: 2, Name: "second", NRanks: 2, Rank: r, InitTime: T0})
		p.AllReduce(world, uint64(at(100)), uint64(at(200)), 10)
		p.AllReduce(world, uint64(at(300)), uint64(at(400)), 10)
		p.AllReduce(second, uint64(at(350)), uint64(at(450)), 10)
		p.Collective(world, shardtest.Op{Function: "AllReduce", Begin: uint64(at(700)), End: uint64(at(800)),
			Count: 10, Source: "enqueue"})
		if r == 0 {
			rows := [2]*kernelRow{newKernelRow(t, p, "CUDA[0:0]"), newKernelRow(t, p, "CUDA[0:1]")}
			kernel := func(stream int, name string, begin, end uint64) {
				rows[stream].Kernel(name, uint64(at(begin)), uint64(at(end)))
			}
			kernel(0, "gemm", 50, 150)                         // 50 beside the first
			kernel(1, "softmax", 120, 170)                     // 20 more
			kernel(1, "ncclDevKernel_AllReduce_Sum", 300, 400) // NCCL's own
			kernel(0, "gemm", 390, 420)                        // 10 beside both, 20 beside the second
			kernel(0, "CUDA graph", 430, 440)                  // of which nothing is known
			kernel(0, "gemm", 500, 600)                        // alone
		}
		p.Destroy(world, uint64(at(1000)))
		p.Destroy(second, uint64(at(1000)))
	})
}

// WithWaits leaves a job of three ranks on two hosts with waits of every kind, whose lengths stand beside them.
func WithWaits(t testing.TB) string {
	t.Helper()
	at := func(us uint64) uint64 { return T0 + us*1000 }
	return Make(t, 3, 2, func(r int, p *shardtest.Process) {
		world := p.World()
		p.Network(world)
		rooted := func(function string, root uint32, begins [3]uint64, end uint64) {
			p.Collective(world, shardtest.Op{Function: function, Begin: at(begins[r]), End: at(end), Root: root,
				Count: 100})
		}
		p.AllReduce(world, at(100+7*uint64(r)), at(150), 100) // starting up: 14 + 7
		p.AllReduce(world, at(200+10*uint64(r)), at(260), 100)
		rooted("Broadcast", 1, [3]uint64{300, 330, 320}, 360) // 30, –, 10
		rooted("Broadcast", 0, [3]uint64{400, 410, 405}, 460) // the root is first, and they are held up: 10, –, 5
		rooted("Reduce", 0, [3]uint64{500, 520, 510}, 560)    // 20 on the root, – and 10
		rooted("Reduce", 1, [3]uint64{570, 590, 580}, 595)    // the root is last: 20, –, 10
		switch r {
		case 0:
			p.Send(world, 1, at(640), at(660), 64)
			p.Send(world, 2, at(700), at(740), 64) // late receiver, 15
			p.Send(world, 2, at(800), at(805), 64) // late receiver, as long as it ran: 5
		case 1:
			p.Recv(world, 0, at(600), at(660), 64) // late sender, 40
		case 2:
			p.Recv(world, 0, at(715), at(740), 64)
			p.Recv(world, 0, at(820), at(830), 64)
		}
		// A shift around the ring, in a group: rank 1 is last, 0 waits 30 for it, 2 waits 20.
		w, next, previous := p.Writer(p.Shard.Comms[world].Location), uint32(r+1)%3, uint32(r+2)%3
		begin, end := otf2.Timestamp(at([]uint64{900, 930, 910}[r])), otf2.Timestamp(at(960))
		var a otf2.AttributeList
		a.String(regions.AttrTimingSource, p.String("gpu"))
		a.Uint32(regions.AttrOperations, 2)
		group := p.Region(regions.LaunchName, regions.GroupPointToPoint, otf2.RegionRolePoint2Point)
		phase := func(w *otf2.EventWriter, name string, peer uint32, begin, end uint64) {
			var a otf2.AttributeList
			a.Uint32(regions.AttrPeer, peer)
			region := p.Region(name, regions.GroupNetwork, otf2.RegionRoleDataTransfer)
			testkit.Must(t, w.Enter(otf2.Timestamp(begin), &a, region))
			testkit.Must(t, w.Leave(otf2.Timestamp(end), nil, region))
		}
		testkit.Must(t, w.Enter(begin, &a, group))
		testkit.Must(t, w.MpiIsend(begin, nil, next, 0, 0, 64, 1001))
		testkit.Must(t, w.MpiIrecvRequest(begin, nil, 1002))
		testkit.Must(t, w.MpiIsendComplete(end, nil, 1001))
		testkit.Must(t, w.MpiIrecv(end, nil, previous, 0, 0, 64, 1002))
		testkit.Must(t, w.Leave(end, nil, group))
		// Phases of transfers, each rank's longer than those of the one before it.
		for i, l := range p.Shard.Locations {
			w, k := p.Writer(i), uint64(r+1)
			switch l.Kind {
			case description.KindNetSend:
				phase(w, "Send GPU wait", next, at(900), at(900+k))
				phase(w, "Send peer wait", next, at(910), at(910+2*k))
				phase(w, "Send network", next, at(920), at(920+3*k))
				phase(w, "Send peer wait", previous, at(930), at(930+k))
			case description.KindNetRecv:
				phase(w, "Recv network", previous, at(900), at(900+4*k))
				phase(w, "Recv flush", previous, at(920), at(920+5*k))
				phase(w, "Recv GPU wait", previous, at(940), at(940+6*k))
			}
		}
		p.Destroy(world, at(1000))
	})
}
