// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
	"github.com/nccl-otf2/nccl-otf2/tests/scoutrules"
)

const (
	t0 = shardtest.Epoch + 1_000_000
	us = 1_000
	ms = 1_000_000
)

// made is a job in the making: one process per rank.
type made struct {
	t     testing.TB
	dir   string
	procs []*shardtest.Process
	comms [][]*member // by communicator and rank
}

// member is a communicator rank. Its plans follow each other.
type member struct {
	p      *shardtest.Process
	comm   int // in the process
	ranks  int
	counts map[string]uint64
	next   uint64 // request
	parent uint64 // event of its last call
}

// item is an operation of a plan.
type item struct {
	fn             string
	peer           int // root, or the other end
	sent, received uint64
	skip           uint64 // operations left out before it, that others have
	parent         uint64 // event of the call that asked for it; 0: not known
}

func makeJob(t testing.TB, ranks int) *made {
	t.Helper()
	dir := testkit.Value(os.MkdirTemp(t.TempDir(), "job"))(t)
	m := &made{t: t, dir: dir}
	for r := range ranks {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On(fmt.Sprint("node", r/2), 100+r).Launched("slurm", r, ranks)
		p.GPU(r%2, "", "")
		m.procs = append(m.procs, p)
	}
	return m
}

// comm adds a communicator of ranks.
func (m *made) comm(name string, ranks ...int) []*member {
	var c []*member
	id := uint64(len(m.comms) + 1)
	for rank, r := range ranks {
		p := m.procs[r]
		c = append(c, &member{
			p: p, ranks: len(ranks), counts: make(map[string]uint64),
			comm: p.Comm(description.Comm{ID: id, Name: name, NRanks: len(ranks), Rank: rank, InitTime: t0}),
		})
	}
	m.comms = append(m.comms, c)
	return c
}

// plan draws what one launch does on a rank; times are from t0. Without name it has that of its only operation, or
// that of a group.
func (r *member) plan(t testing.TB, begin, end uint64, source, name string, items ...item) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		testkit.Must(t, err)
	}
	if name == "" {
		name = fmt.Sprintf("Group (%d ops)", len(items))
		if len(items) == 1 {
			name = items[0].fn
		}
	}
	w, comm := r.p.Writer(r.p.Shard.Comms[r.comm].Location), otf2.CommRef(r.comm)
	from, to := otf2.Timestamp(t0+begin), otf2.Timestamp(t0+end)
	region := r.p.Region(name, regions.GroupCollectives, otf2.RegionRoleCollOther)
	var a otf2.AttributeList
	a.String(regions.AttrTimingSource, r.p.String(source))
	must(w.Enter(from, &a, region))
	first := r.next
	for _, it := range items {
		key := it.fn
		if functionNamed(it.fn) >= fnMessages {
			key = fmt.Sprint(it.fn, it.peer)
		}
		r.counts[key] += it.skip
		a.Reset()
		a.Uint64(regions.AttrOrdinal, r.counts[key])
		r.counts[key]++
		if it.parent != 0 {
			a.Uint64(regions.AttrParentID, it.parent)
		}
		r.p.Shard.Counts.Timing[source]++
		switch request := r.next; functionNamed(it.fn) {
		case fnSend:
			must(w.MpiIsend(from, &a, uint32(it.peer), comm, 0, it.sent, request))
		case fnRecv:
			must(w.MpiIrecvRequest(from, &a, request))
		default:
			must(w.NonBlockingCollectiveRequest(from, &a, request))
		}
		r.next++
	}
	for i, it := range items {
		f, request := functionNamed(it.fn), first+uint64(i)
		switch f {
		case fnSend:
			must(w.MpiIsendComplete(to, nil, request))
		case fnRecv:
			must(w.MpiIrecv(to, nil, uint32(it.peer), comm, 0, it.sent, request))
		default:
			root := otf2.CollectiveRootNone
			if functions[f].Rooted() {
				root = uint32(it.peer)
			}
			must(w.NonBlockingCollectiveComplete(to, nil, functions[f].Op, comm, root, it.sent, it.received, request))
		}
	}
	must(w.Leave(to, nil, region))
}

// one draws a collective with GPU times.
func (r *member) one(t testing.TB, begin, end uint64, fn string, root int) {
	t.Helper()
	r.plan(t, begin, end, regions.TimingGPU, "", item{fn: fn, peer: root, sent: 64, received: 64})
}

// unify ends the job and returns its archive.
func (m *made) unify() string {
	m.t.Helper()
	for _, p := range m.procs {
		p.Finish()
	}
	return jobtest.Unify(m.t, m.dir)
}

// viewOf makes the view of an archive, which must be sound. but are rules that it may break, as the times do.
func viewOf(t testing.TB, anchor string, opts *Options, but ...check.Rule) *Result {
	t.Helper()
	res := testkit.Value(Scalasca(anchor, filepath.Join(filepath.Dir(anchor), "scalasca"), opts))(t)
	for name, check := range map[string]func(string, *check.Options) (*check.Result, error){
		"check": check.Archive, "scout": scoutrules.Check,
	} {
		found := testkit.Value(check(res.Archive, nil))(t)
		for _, f := range found.Findings {
			testkit.Check(t, slices.Contains(but, f.Rule), "%s: %v", name, f)
		}
	}
	return res
}
