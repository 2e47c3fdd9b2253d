// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
	"github.com/nccl-otf2/nccl-otf2/tests/scoutrules"
)

// regionsOf lists the names of a rank's regions of MPI with their begins and ends, from t0.
func regionsOf(t testing.TB, anchor string, rank int) (list []string) {
	t.Helper()
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	defer a.Close()
	type entry struct {
		begin otf2.Timestamp
		text  string
	}
	var stack []otf2.Timestamp
	var all []entry
	for ev, err := range a.EventsOf(otf2.LocationRef(rank)) {
		testkit.Must(t, err)
		switch ev.Kind {
		case otf2.EventEnter:
			stack = append(stack, ev.Time)
		case otf2.EventLeave:
			begin := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			d := a.Defs.Region(otf2.RegionRef(ev.Args[0]))
			if a.Defs.String(d.SourceFile) != sourceMPI || a.Defs.String(d.Name) == nameInit ||
				a.Defs.String(d.Name) == nameFinalize {
				continue
			}
			all = append(all, entry{begin, fmt.Sprintf("%d-%d %s", begin-t0, ev.Time-t0, a.Defs.String(d.Name))})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.begin, b.begin) })
	for _, e := range all {
		list = append(list, e.text)
	}
	return list
}

func TestOperationsInTheView(t *testing.T) {
	send := func(peer int) item { return item{fn: "Send", peer: peer, sent: 8} }
	receive := func(peer int) item { return item{fn: "Recv", peer: peer, sent: 8} }
	allreduce := item{fn: "AllReduce", sent: 8, received: 8}
	gpu := regions.TimingGPU
	var said strings.Builder
	for _, c := range []struct {
		name string
		draw func(t *testing.T, m *made)
	}{
		{"a launch of three collectives", func(t *testing.T, m *made) {
			for r, c := range m.comm("", 0, 1) {
				c.plan(t, uint64(100+r), 200, gpu, "", item{fn: "AllGather", sent: 8, received: 8}, allreduce,
					item{fn: "ReduceScatter", sent: 8, received: 8})
				c.one(t, 300, 400, "AllReduce", 0)
			}
		}},
		{"one process per rank: overlapping communicators", func(t *testing.T, m *made) {
			a, b := m.comm("a", 0, 1), m.comm("b", 0, 1)
			for r := range 2 {
				a[r].one(t, 100, 300, "AllReduce", 0)
				b[r].one(t, 200+uint64(r), 250, "Broadcast", 1)
			}
		}},
		{"overlapping communicators", func(t *testing.T, m *made) {
			a, b := m.comm("a", 0, 1), m.comm("b", 0, 1)
			for r := range 2 {
				a[r].one(t, uint64(100+150*r), 300, "AllReduce", 0)
				b[r].one(t, 200, 250, "Broadcast", 1)
			}
		}},
		{"one process per rank: waiting that is lost", func(t *testing.T, m *made) {
			a, b := m.comm("a", 0, 1), m.comm("b", 0, 2)
			for r := range 2 {
				a[r].one(t, uint64(100+160*r), 300, "AllReduce", 0)
				b[r].one(t, 200, 250, "Broadcast", 1)
			}
		}},
		{"overlapping communicators whose members begin in other orders", func(t *testing.T, m *made) {
			a, b := m.comm("a", 0, 1), m.comm("b", 0, 1)
			a[0].one(t, 100, 300, "AllReduce", 0)
			a[1].one(t, 130, 300, "AllReduce", 0)
			b[0].one(t, 110, 300, "Broadcast", 1)
			b[1].one(t, 120, 300, "Broadcast", 1)
		}},
		{"one process per rank: overlapping communicators whose members begin in other orders",
			func(t *testing.T, m *made) {
				a, b := m.comm("a", 0, 1), m.comm("b", 0, 1)
				a[0].one(t, 100, 300, "AllReduce", 0)
				a[1].one(t, 130, 300, "AllReduce", 0)
				b[0].one(t, 110, 300, "Broadcast", 1)
				b[1].one(t, 120, 300, "Broadcast", 1)
			}},
		{"an order that contradicts itself", func(t *testing.T, m *made) {
			a, b := m.comm("a", 0, 1), m.comm("b", 0, 1)
			a[0].one(t, 100, 200, "AllReduce", 0)
			b[0].one(t, 300, 400, "AllGather", 0)
			b[1].one(t, 100, 200, "AllGather", 0)
			a[1].one(t, 350, 450, "AllReduce", 0)
		}},
		{"one process per rank: an order that contradicts itself", func(t *testing.T, m *made) {
			a, b := m.comm("a", 0, 1), m.comm("b", 0, 1)
			a[0].one(t, 100, 200, "AllReduce", 0)
			b[0].one(t, 300, 400, "AllGather", 0)
			b[1].one(t, 100, 200, "AllGather", 0)
			a[1].one(t, 350, 450, "AllReduce", 0)
		}},
		{"messages", func(t *testing.T, m *made) {
			for r, c := range m.comm("", 0, 1) {
				c.plan(t, 100, 200, gpu, "AlltoAll", send(0), receive(0), send(1), receive(1))
				if r == 0 {
					c.plan(t, 300, 400, gpu, "", send(1))
				} else {
					c.plan(t, 310, 410, gpu, "", receive(0))
				}
			}
		}},
		{"a launch that waits for a sender, and longer for a receiver", func(t *testing.T, m *made) {
			c := m.comm("", 0, 1, 2)
			c[0].plan(t, 100, 400, gpu, "", receive(1), send(2))
			c[1].plan(t, 120, 400, gpu, "", send(0))
			c[2].plan(t, 150, 400, gpu, "", receive(0))
		}},
		{"messages launched with a collective", func(t *testing.T, m *made) {
			for r, c := range m.comm("", 0, 1) {
				c.plan(t, 100, 200, gpu, "", send(1-r), allreduce, receive(1-r))
			}
		}},
		{"times of the network on all members, or on two of three", func(t *testing.T, m *made) {
			c := m.comm("", 0, 1, 2)
			for r, source := range []string{regions.TimingNetwork, regions.TimingNetwork, regions.TimingEnqueue} {
				c[r].plan(t, 50, 60, "enqueue", "", allreduce)
				c[r].plan(t, uint64(100+10*r), 200, source, "", allreduce)
				c[r].plan(t, 300, 400, "enqueue", "", allreduce)
			}
			c[0].plan(t, 500, 520, regions.TimingNetwork, "", send(1))
			c[1].plan(t, 510, 520, regions.TimingNetwork, "", receive(0))
			c[1].plan(t, 600, 620, regions.TimingNetwork, "", send(2))
			c[2].plan(t, 600, 620, gpu, "", receive(1))
		}},
		{"a member without times that has no place among the others", func(t *testing.T, m *made) {
			c := m.comm("", 0, 1, 2)
			for r := range 2 {
				c[r].plan(t, uint64(100+10*r), 200, gpu, "", allreduce)
				c[r].one(t, 300, 400, "Broadcast", 2)
			}
			c[2].plan(t, 60, 70, "enqueue", "", allreduce)
			c[2].one(t, 80, 90, "Broadcast", 2)
		}},
		{"what a member lacks", func(t *testing.T, m *made) {
			c := m.comm("", 0, 1)
			for r := range 2 {
				c[r].one(t, 100, 200, "AllReduce", 0)
			}
			c[0].one(t, 300, 400, "AllReduce", 0)
			c[0].one(t, 500, 600, "AllReduce", 0)
			c[1].plan(t, 500, 600, gpu, "", item{fn: "AllReduce", sent: 8, received: 8, skip: 1})
			c[1].plan(t, 700, 800, gpu, "", send(0))
		}},
		{"other order and other root", func(t *testing.T, m *made) {
			c := m.comm("", 0, 1)
			for r, first := range []string{"AllReduce", "AllGather"} {
				c[r].one(t, 100, 200, first, 0)
				c[r].one(t, 300, 400, []string{"AllGather", "AllReduce"}[r], 0)
				c[r].one(t, 500, 600, "Broadcast", r)
				c[r].one(t, 700, 800, "Reduce", 1)
			}
		}},
		{"sizes that are not known", func(t *testing.T, m *made) {
			for _, c := range m.comm("", 0, 1) {
				c.plan(t, 100, 200, gpu, "", item{fn: "AllReduce"})
			}
		}},
	} {
		m := makeJob(t, 3)
		c.draw(t, m)
		var but []check.Rule
		if strings.Contains(c.name, "order") {
			but = append(but, scoutrules.RuleScoutClock)
		}
		res := viewOf(t, m.unify(), &Options{OneProcess: strings.HasPrefix(c.name, "one process")}, but...)
		fmt.Fprintf(&said, "%s:\n", c.name)
		for r := range res.Ranks {
			fmt.Fprintf(&said, "  %q\n", regionsOf(t, res.Archive, int(r)))
		}
		res.Archive = ""
		fmt.Fprintf(&said, "  %+v\n\n", *res)
	}
	golden.Text(t, "testdata/operations.txt", said.String())
}

// Times can contradict each other such that a send without the notice of its receiver still has to wait, in its group,
// for what another send's notice holds up: rank 0's send and receive (0-50) wait for rank 1's receives, those for rank
// 0's next send, and rank 2's send to rank 0 for its send to rank 1.
func TestSendsThatWaitForSeveralNotices(t *testing.T) {
	send := func(peer int) item { return item{fn: "Send", peer: peer, sent: 8} }
	receive := func(peer int) item { return item{fn: "Recv", peer: peer, sent: 8} }
	m := makeJob(t, 3)
	a, b := m.comm("a", 0, 1, 2), m.comm("b", 0, 1)
	for _, p := range []struct {
		on         *member
		begin, end uint64
		items      []item
	}{
		{a[0], 0, 50, []item{send(1), receive(2)}}, {b[0], 60, 70, []item{send(1)}},
		{b[1], 10, 20, []item{receive(0)}}, {a[1], 30, 40, []item{receive(0), receive(2)}},
		{a[2], 1, 50, []item{send(1)}}, {a[2], 51, 55, []item{send(0)}},
	} {
		p.on.plan(t, p.begin*us, p.end*us, regions.TimingGPU, "", p.items...)
	}
	res := viewOf(t, m.unify(), &Options{OneProcess: true}, scoutrules.RuleScoutClock)
	testkit.Check(t, res.Messages == 4 && res.Untimed.Receivers == 2, "%d messages, %+v", res.Messages, res.Untimed)
}

// Ranks that left nothing do nothing; the others' operations are shown without them.
func TestRanksWithoutDataDoNothing(t *testing.T) {
	dir := t.TempDir()
	for r := range 3 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On("node0", 100+r).Launched("slurm", r, 4)
		p.GPU(r, "", "")
		c := p.Comm(description.Comm{ID: 1, NRanks: 4, Rank: r, InitTime: t0})
		p.AllReduce(c, t0+100, t0+200, 8)
		p.Collective(c, shardtest.Op{Function: "Broadcast", Begin: t0 + 300, End: t0 + 400, Root: 3, Received: 8})
		p.Finish()
	}
	res := viewOf(t, jobtest.Unify(t, dir), nil)
	testkit.Check(t, res.Ranks == 4 && res.Collectives == 1 && res.MembersWithoutData == 1 &&
		res.Dropped[ReasonRoot] == 1, "%+v", res)
	list := regionsOf(t, res.Archive, 3)
	testkit.Check(t, len(list) == 0, "%q", list)
}

// A view is made anew in place of an older one, and never in place of what it is made of.
func TestWhereViewsGo(t *testing.T) {
	m := makeJob(t, 2)
	for _, c := range m.comm("", 0, 1) {
		c.one(t, 100, 200, "AllReduce", 0)
	}
	anchor := m.unify()
	_, err := Scalasca(anchor, filepath.Dir(anchor), nil)
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "would replace the archive"), "%v", err)
	viewOf(t, anchor, nil)
	res := viewOf(t, anchor, nil)
	list, err := os.ReadDir(filepath.Dir(res.Archive))
	testkit.Check(t, err == nil && len(list) == 3, "%v, %v", list, err)
	_, err = Scalasca(res.Archive, filepath.Join(t.TempDir(), "of a view"), nil)
	testkit.Check(t, err != nil &&
		strings.Contains(err.Error(), "views are made of archives that `nccl-otf2 unify` made"), "%v", err)
}
