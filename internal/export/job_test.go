// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

const (
	t0 = shardtest.Epoch + 1_000_000
	us = 1000
)

// odd is a name that every form has to escape.
const odd = "tp \"<b>\\é\n"

// job leaves a job of three processes on two hosts with what exports look at: collectives of one and of several a
// launch, messages, waits, transfers (one by another process: PXN), metrics. It opens its archive.
func job(t testing.TB) *otf2.Archive { return jobtest.Open(t, makeJob(t)) }

func makeJob(t testing.TB) (anchor string) {
	t.Helper()
	var origin uint16
	return jobtest.Make(t, 3, 2, func(r int, p *shardtest.Process) {
		world := p.Comm(description.Comm{ID: 0xfedcba9876543210, Name: odd, NRanks: 3, Rank: r, NNodes: 2, InitTime: t0})
		late := uint64(r) * 10 * us // rank 2 is last
		for i := range uint64(3) {
			p.Call("ncclAllReduce", t0+(100+i*50)*us, t0+(105+i*50)*us)
			p.AllReduce(world, t0+(110+i*50)*us+late, t0+(145+i*50)*us, 1<<20)
		}
		p.Broadcast(world, 1, t0+310*us, t0+330*us, 200, "enqueue")
		p.GatherAndScatter(world, t0+400*us+late, t0+440*us, 100)
		traced(t, p, world)
		switch r {
		case 0:
			p.Send(world, 1, t0+500*us, t0+510*us, 4096)
		case 1:
			p.Recv(world, 0, t0+495*us, t0+512*us, 4096)
			p.Send(world, 2, t0+540*us, t0+550*us, 100)
		case 2:
			p.Recv(world, 1, t0+545*us, t0+551*us, 100)
		}
		p.Network(world)
		for i := range uint64(3) {
			p.Put(world, (r+1)%3, t0+(560+20*i)*us, t0+(565+20*i)*us, 1000+uint64(r))
			p.Arrival(world, t0+(566+20*i)*us, t0+(575+20*i)*us)
		}
		if r == 0 {
			origin = p.Shard.Tag
		} else if r == 1 {
			f := p.Foreign(description.ForeignComm{Tag: origin, Rank: 0, PID: 100})
			p.Put(-1-f, 2, t0+640*us, t0+641*us, 500)
		}
		row, power := p.GPUMetrics(0, shardtest.Power)
		p.Measure(row, power, t0+50*us, 300_000)
		p.Destroy(world, t0+700*us)
	})
}

// traced draws a ReduceScatter with its call, both with their ids, and the launch inside the call.
func traced(t testing.TB, p *shardtest.Process, comm int) {
	t.Helper()
	base := uint64(p.Shard.Tag) << 48
	group, call, op := base|1, base|2, base|3
	c := &p.Shard.Comms[comm]
	row, thread := p.Writer(c.Location), p.Writer(0)
	a := new(otf2.AttributeList)
	describe := func(ids ...uint64) {
		a.Uint64(regions.AttrCount, 500)
		a.String(regions.AttrDatatype, p.String("ncclInt32"))
		a.Uint64(regions.AttrEventID, ids[0])
		a.Uint64(regions.AttrParentID, ids[1])
	}
	must := func(err error) {
		t.Helper()
		testkit.Must(t, err)
	}
	at := func(us_ uint64) otf2.Timestamp { return otf2.Timestamp(t0 + us_*us) }
	outer := p.Region("ncclReduceScatter", regions.GroupAPI, otf2.RegionRoleCollAll2All)
	launch := p.Region("ncclKernelLaunch", regions.GroupEnqueue, otf2.RegionRoleFunction)
	a.Reset()
	describe(call, group)
	a.Uint64(regions.AttrStream, 0xabc)
	must(thread.Enter(at(450), a, outer))
	a.Reset()
	a.Uint64(regions.AttrStream, 0xabc)
	a.Uint64(regions.AttrEventID, base|4)
	a.Uint64(regions.AttrParentID, group)
	must(thread.Enter(at(452), a, launch))
	must(thread.Leave(at(454), nil, launch))
	must(thread.Leave(at(456), nil, outer))

	inner := p.Region("ReduceScatter", regions.GroupCollectives, otf2.RegionRoleCollAll2All)
	a.Reset()
	describe(op, call)
	a.Uint64(regions.AttrOrdinal, 1)
	a.Uint64(regions.AttrSeq, 7)
	a.Uint64(regions.AttrSendBuff, 0x1000)
	a.Uint64(regions.AttrRecvBuff, 0x2000)
	a.String(regions.AttrTimingSource, p.String("gpu"))
	a.Uint64(regions.AttrUncertainty, 300)
	must(row.Enter(at(455), a, inner))
	must(row.MpiCollectiveBegin(at(455), nil))
	must(row.MpiCollectiveEnd(at(470), nil, otf2.CollectiveOpReduceScatterBlock, otf2.CommRef(comm),
		otf2.CollectiveRootNone, 6000, 6000))
	must(row.Leave(at(470), nil, inner))
}
