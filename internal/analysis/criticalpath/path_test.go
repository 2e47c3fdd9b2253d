// SPDX-License-Identifier: Apache-2.0

package criticalpath

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/schedule"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// job is a test job: what its ranks do, one step after the other. Times are in ns.
type job struct {
	ranks int
	steps []step
}

// step is a rank's work before its next operation, or an operation of some ranks.
type step struct {
	members []int // of an operation; nil: the step is work
	kind    string
	rank    int
	work    uint64
}

// Kinds of operations. They take transferTime from the last arrival on.
const (
	allReduce = "AllReduce"
	message   = "message"  // from the first member to the second
	buffered  = "buffered" // likewise, but the sender does not wait
	bounded   = "bounded"  // likewise, but it waits for room if the last two were not received
	reduce    = "Reduce"   // to the first member; the others do not wait
)

const transferTime = 10

// work is a rank's work.
func work(rank int, ns uint64) step { return step{rank: rank, work: ns} }

func op(kind string, members ...int) step { return step{kind: kind, members: members} }

func (j *job) add(times int, steps ...step) *job {
	for range times {
		j.steps = append(j.steps, steps...)
	}
	return j
}

// player plays a job.
type player struct {
	now, pending []uint64
	seq          []uint32
	ordinals     map[string]uint64
	comms        map[string]otf2.CommRef
	engine       *causes.Engine
	path         *Path
	schedule     *schedule.Recorder
	end          uint64
	perHost      int                         // ranks; 0: their hosts are not known
	received     map[string][]otf2.Timestamp // ends of receives, by pair

	deliveries []delivery
}

// delivery is what the engine receives when an operation of some ranks has been read.
type delivery struct {
	ranks []int // all of them must have been read so far
	tell  func()
}

// deliver passes all operations to the engine: in the order of their ends, or rank after rank, like readers that are
// far ahead on some ranks.
func (p *player) deliver(rankByRank bool) {
	last := func(d delivery) int { return slices.Max(d.ranks) }
	if rankByRank {
		slices.SortStableFunc(p.deliveries, func(a, b delivery) int { return cmp.Compare(last(a), last(b)) })
	}
	for _, d := range p.deliveries {
		d.tell()
	}
}

func (p *player) addDelivery(tell func(), ranks ...int) {
	p.deliveries = append(p.deliveries, delivery{ranks, tell})
}

const begin = 1000

func (j *job) play() *player { return j.playInOrder(false) }

func (j *job) playInOrder(rankByRank bool) *player {
	p := &player{
		now: make([]uint64, j.ranks), pending: make([]uint64, j.ranks), seq: make([]uint32, j.ranks),
		ordinals: make(map[string]uint64), received: make(map[string][]otf2.Timestamp),
		comms: make(map[string]otf2.CommRef), engine: causes.NewEngine(j.ranks), path: New(j.ranks),
		schedule: schedule.NewRecorder(j.ranks),
	}
	p.engine.AddFollower(p.path)
	p.engine.AddFollower(p.schedule)
	for i := range p.now {
		p.now[i] = begin
	}
	for i := range j.steps {
		s := &j.steps[i]
		switch {
		case s.members == nil:
			p.pending[s.rank] += s.work
		case s.kind == message, s.kind == buffered, s.kind == bounded:
			p.message(s)
		default:
			p.collective(s)
		}
	}
	p.deliver(rankByRank)
	return p
}

func (p *player) member(r, i int) causes.Member {
	l := causes.Local{Rank: int32(r), Before: p.seq[r], Ended: otf2.Timestamp(p.now[r]), Called: true}
	p.now[r] += p.pending[r]
	p.pending[r] = 0
	at := otf2.Timestamp(p.now[r])
	if l.Before == 0 {
		l.Ended = at
	}
	l.Ready, l.Returned = at, at
	p.seq[r]++
	l.Seq = p.seq[r]
	return causes.Member{There: at, Arrival: lateness.Arrival{Rank: i, Begin: at, Source: facts.SourceGPU}, Local: l}
}

func (p *player) collective(s *step) {
	name := fmt.Sprint(s.members)
	if _, ok := p.comms[name]; !ok {
		p.comms[name] = otf2.CommRef(len(p.comms))
	}
	o := causes.Operation{Comm: p.comms[name], Members: len(s.members), Function: s.kind, Ordinal: p.ordinals[name]}
	p.ordinals[name]++
	if s.kind == reduce {
		o.Kind = lateness.WaitEarlyReduce
	}
	var all []causes.Member
	var last otf2.Timestamp
	for i, r := range s.members {
		all = append(all, p.member(r, i))
		all[i].Root = i == 0
		last = max(last, all[i].Begin)
	}
	for i, r := range s.members {
		m := &all[i]
		if m.End = last + transferTime; s.kind == reduce && i > 0 {
			m.End = m.Begin + transferTime
		}
		p.now[r] = uint64(m.End)
		p.end = max(p.end, p.now[r])
		p.addDelivery(func() { p.engine.AddPart(&m.Local) }, r)
	}
	p.addDelivery(func() { p.engine.Collective(&o, all) }, s.members...)
}

func (p *player) message(s *step) {
	ends := [2]causes.End{{Member: p.member(s.members[0], s.members[0]), Function: "Send"},
		{Member: p.member(s.members[1], s.members[1]), Function: "Recv"}}
	pair := fmt.Sprint("messages ", s.members)
	ordinal := p.ordinals[pair]
	p.ordinals[pair]++
	sent := ends[0].Begin
	if before := p.received[pair]; s.kind == bounded && len(before) > 1 {
		sent = max(sent, before[len(before)-2])
	}
	done := max(sent, ends[1].Begin) + transferTime
	p.received[pair] = append(p.received[pair], done)
	for i, r := range s.members {
		e := &ends[i]
		e.Comm, e.Members, e.Ordinal, e.Last, e.Paired, e.End = 1<<20, len(p.now), ordinal, true, true, done
		if i == 0 && s.kind != message {
			e.End = sent + transferTime
		}
		p.now[r] = uint64(e.End)
		p.end = max(p.end, p.now[r])
		p.addDelivery(func() {
			p.engine.AddPart(&e.Local)
			p.engine.Message(e)
		}, r)
	}
	p.addDelivery(func() { p.engine.AddMessagePair(&ends[0].Local, &ends[1].Local, true) }, s.members...)
}

func (p *player) result() *Result { return p.resultOf(&verdict.Verdict{}) }

func (p *player) resultOf(v *verdict.Verdict) *Result {
	name := func(r int) (name, host string) {
		if p.perHost > 0 {
			host = fmt.Sprint("node", r/p.perHost)
		}
		return fmt.Sprint("Rank ", r), host
	}
	r := p.path.Result(&Run{
		Begin: 0, Duration: p.end + 500, Name: name,
		Comm: func(c otf2.CommRef) string { return fmt.Sprint("comm", c) },
	})
	c := p.engine.Result()
	together := Together{p.schedule.Roles(), p.schedule.Replicas()}
	NewChanges(c, v, &together, name).Play(p.schedule, r)
	v.Waited = uint64(c.Waited)
	r.NameSet(c, v, together.Roles)
	return r
}

func (r *Result) gain(rank int) uint64 {
	for _, w := range r.WhatIf {
		if w.Rank == rank && w.Change == FasterRank {
			return w.Gain
		}
	}
	return 0
}

func (r *Result) time(rank int, a Activity) uint64 {
	for _, x := range r.Ranks {
		if x.Rank == rank && x.Activity == a.String() {
			return x.Time
		}
	}
	return 0
}

func TestPathsAndGains(t *testing.T) {
	start := func(j *job, comms ...[]int) *job {
		for _, c := range comms {
			j.add(1, op(allReduce, c...))
		}
		return j
	}
	all := []int{0, 1, 2, 3}
	pipeline := func(stage int, slow uint64) *job {
		j := &job{ranks: 4}
		j.add(1, op(message, 0, 1), op(message, 1, 2), op(message, 2, 3))
		for range 20 {
			for r := range j.ranks {
				extra := uint64(0)
				if r == stage {
					extra = slow
				}
				j.add(1, work(r, 100+extra))
				if r+1 < j.ranks {
					j.add(1, op(message, r, r+1))
				}
			}
		}
		return j
	}
	for _, c := range []struct {
		name  string
		job   *job
		gains map[int]uint64
		path  map[int]uint64 // application
	}{
		{"perfectly balanced", start(&job{ranks: 4}, all).add(
			5, work(0, 50), work(1, 50), work(2, 50), work(3, 50), op(allReduce, all...)), nil, map[int]uint64{0: 250}},
		{
			"one late rank", start(&job{ranks: 4}, all).add(
				7, work(0, 50), work(1, 50), work(2, 50), work(3, 90), op(allReduce, all...)),
			map[int]uint64{3: 7 * 40}, map[int]uint64{3: 7 * 90},
		},
		{
			"two that are late together", start(&job{ranks: 4}, all).add(
				7, work(0, 50), work(1, 80), work(2, 50), work(3, 90), op(allReduce, all...)),
			map[int]uint64{3: 7 * 10}, map[int]uint64{3: 7 * 90},
		},
		{
			"two in turn, and what one costs behind the other does not go",
			start(&job{ranks: 4}, []int{0, 1}, []int{2, 3}, all).
				add(5, work(1, 60), op(allReduce, 0, 1), work(3, 40), op(allReduce, 2, 3), op(allReduce, all...)),
			map[int]uint64{1: 5 * 20}, map[int]uint64{1: 5 * 60},
		},
		{
			"handed on from a row to columns", start(
				&job{ranks: 4}, []int{0, 1}, []int{2, 3}, []int{0, 2}, []int{1, 3}).
				add(6, work(3, 70), op(allReduce, 0, 1), op(allReduce, 2, 3), op(allReduce, 0, 2), op(allReduce, 1, 3)),
			map[int]uint64{3: 6 * 70}, map[int]uint64{3: 6 * 70},
		},
		{"a pipeline of equal stages", pipeline(0, 0), nil, nil},
		{"a stage that works longer", pipeline(2, 400), map[int]uint64{2: 20 * 400}, nil},
		{"the first stage works longer", pipeline(0, 400), map[int]uint64{0: pipeline(0, 400).play().end -
			pipeline(0, 0).play().end}, nil},
		{
			"a late sender", (&job{ranks: 2}).add(1, op(message, 0, 1)).add(9, work(0, 300), op(message, 0, 1)),
			map[int]uint64{0: 9 * 300}, map[int]uint64{0: 9 * 300},
		},
		{
			"a late receiver", (&job{ranks: 2}).add(1, op(message, 0, 1)).add(9, work(1, 300), op(message, 0, 1)),
			map[int]uint64{1: 9 * 300}, map[int]uint64{1: 9 * 300},
		},
		{
			"who sends into a buffer does not wait, but the run does",
			(&job{ranks: 2}).add(1, op(buffered, 0, 1)).add(9, work(1, 300), op(buffered, 0, 1)),
			map[int]uint64{1: 9 * 300}, map[int]uint64{1: 9 * 300},
		},
	} {
		for _, rankByRank := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, read rank by rank: %t", c.name, rankByRank), func(t *testing.T) {
				p := c.job.playInOrder(rankByRank)
				r := p.result()
				for rank := range c.job.ranks {
					testkit.Equal(t, r.gain(rank), c.gains[rank], "rank %d: ns would go", rank)
					if got := r.time(rank, Application); c.path != nil && got != c.path[rank] {
						t.Errorf("rank %d: %d ns on the path, want %d", rank, got, c.path[rank])
					}
				}
				if t.Failed() {
					t.Logf("%+v", r)
				}
			})
		}
	}
}

// anyJob generates a job.
func anyJob(t *rapid.T) *job {
	j := &job{ranks: rapid.IntRange(2, 9).Draw(t, "ranks")}
	if rapid.Bool().Draw(t, "many") {
		j.ranks += mostCandidates
	}
	numbers := make([]int, j.ranks)
	for i := range numbers {
		numbers[i] = i
	}
	var comms [][]int
	for range rapid.IntRange(1, 5).Draw(t, "communicators") {
		comms = append(comms, rapid.Permutation(numbers).Draw(
			t, "members")[:rapid.IntRange(2, j.ranks).Draw(t, "size")])
	}
	for range rapid.IntRange(1, 200).Draw(t, "operations") {
		c := rapid.SampledFrom(comms).Draw(t, "communicator")
		for range rapid.IntRange(0, 3).Draw(t, "works") {
			j.steps = append(j.steps, work(rapid.SampledFrom(c).Draw(t, "rank"),
				rapid.Uint64Range(0, 5000).Draw(t, "work")))
		}
		kind := rapid.SampledFrom([]string{allReduce, allReduce, reduce, message, buffered}).Draw(t, "kind")
		if kind == message || kind == buffered {
			c = c[:2]
		}
		j.steps = append(j.steps, op(kind, c...))
	}
	return j
}

// Each nanosecond of a run is on the path once. A saving never exceeds the ranks' lateness, or the run.
func TestPathIsTheRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := anyJob(t)
		p := j.play()
		r := p.result()
		sum := r.StartUp + r.After + r.Unknown
		for _, a := range r.Activities {
			sum += a.Time
		}
		testkit.Check(t, sum == r.Length && r.Unknown == 0, "the path is %d ns long, the run %d: %+v", sum, r.Length, r)
		parts := uint64(0)
		for _, x := range r.Ranks {
			parts += x.Time
		}
		for _, x := range r.Operations {
			parts += x.Time
		}
		testkit.Check(t, parts == r.Steady, "ranks and operations are %d ns, the path %d", parts, r.Steady)
		for _, w := range r.WhatIf {
			testkit.Check(t, w.Gain <= r.Steady && r.GainsNotKnown == "" && (w.Least == nil || *w.Least <= w.Gain),
				"%+v of %d", w, r.Steady)
		}
		p.path.audit(t)
	})
}

// audit checks that nothing is kept that is no longer needed.
func (p *Path) audit(t *rapid.T) {
	free := make(map[int32]bool)
	for _, n := range p.tree.free {
		free[n] = true
	}
	users := make([]int32, len(p.tree.nodes))
	for i := range p.ranks {
		for _, x := range p.ranks[i].left {
			if x.seq != 0 {
				users[x.node]++
			}
		}
	}
	for i := range p.tree.nodes {
		if x := &p.tree.nodes[i]; !free[int32(i)] && x.parent != noNode {
			users[x.parent]++
		}
	}
	for i := range users {
		x := &p.tree.nodes[i]
		testkit.Check(t, free[int32(i)] == (users[i] == 0) &&
			(free[int32(i)] || users[i] == x.users && (users[i] != 1 || x.children != 1)),
			"node %d has %d users, %d were counted, free %v", i, x.users, users[i], free[int32(i)])
	}
}
