// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// plan is what a job is to have wrong.
type plan struct {
	name   string
	weight int
	shapes func(s *shape) bool // that can have it
	steps  bool                // recorded with transfers
	causes func(m *maker) []cause
}

func anyShape(*shape) bool    { return true }
func withSteps(s *shape) bool { return s.steps }
func withoutSend(s *shape) bool {
	return s.name != "pipeline" && s.name != "mesh" && s.name != "large mesh"
}

var plans = []plan{
	{"nobody", 8, anyShape, false, func(*maker) []cause { return nil }},
	{"host late", 8, anyShape, false, func(m *maker) []cause { return []cause{m.lateness(verdict.HostLate, -1)} }},
	{"gpu late", 5, anyShape, false, func(m *maker) []cause { return []cause{m.lateness(verdict.GPULate, -1)} }},
	{"two", 3, anyShape, false, two},
	{"slow link", 4, withSteps, true, func(m *maker) []cause { return []cause{m.link()} }},
	{"slow link, transfers not recorded", 1, withSteps, true,
		func(m *maker) []cause { m.transferred = false; return []cause{m.link()} }},
	{"host late, with transfers", 2, withSteps, true,
		func(m *maker) []cause { return []cause{m.lateness(verdict.HostLate, -1)} }},
	{"gpu late, with transfers", 1, withSteps, true,
		func(m *maker) []cause { return []cause{m.lateness(verdict.GPULate, -1)} }},
	{"slow gpu", 3, withSteps, true, func(m *maker) []cause { return []cause{m.slices()} }},
	{"nobody, with transfers", 2, withSteps, true, func(*maker) []cause { return nil }},
	{"missing", 2, withoutSend, false, func(m *maker) []cause { return []cause{m.once(verdict.Missing)} }},
	{"order", 2, func(s *shape) bool { return s.name == "pair" }, false,
		func(m *maker) []cause { return []cause{m.once(verdict.Order)} }},
	{"mismatch", 2, withoutSend, false, func(m *maker) []cause { return []cause{m.once(verdict.Mismatch)} }},
}

// maker draws what a job is like.
type maker struct {
	*builder
	shape *shape
	plan  *plan
}

// random is the generator of a job's draws of one sort: what is drawn of one does not change the others.
func (j *job) random(seed uint64, sort uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed<<32|uint64(j.number), sort))
}

// one draws one of a number of values.
func one[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// logarithmic draws between two values, each size equally often.
func logarithmic(random *rand.Rand, from, to float64) float64 {
	return from * math.Exp(random.Float64()*math.Log(to/from))
}

// planOf is the plan of a job by its number, and whether the job is large.
func planOf(number int) (p *plan, big bool) {
	if number >= firstOdd {
		return &odd[(number-firstOdd)%len(odd)], false
	}
	if number >= firstNobody {
		return &plans[0], number%100 == 99
	}
	sum := 0
	for i := range plans {
		sum += plans[i].weight
	}
	at := number * 17 % sum // each in turn, mixed; 17 and the sum have no common divisor
	for i := range plans {
		if at -= plans[i].weight; at < 0 {
			return &plans[i], number%40 == 39
		}
	}
	panic("unreachable")
}

// makeJob draws a job. The same seed and number make the same job; the plan decides what is wrong with it.
func makeJob(seed uint64, number int, p *plan, big bool) *job {
	j := &job{number: number}
	random := j.random(seed, 1)
	var can []*shape
	if big {
		can = shapesOf(p, large)
	}
	if len(can) == 0 {
		can = shapesOf(p, shapes)
	}
	m := &maker{shape: one(random, can...), plan: p}
	j.shape, j.ranks, j.steps, j.transferred = m.shape.name, m.shape.ranks(random), p.steps, p.steps
	if p.steps && m.shape.name != "grid" {
		j.ranks = min(j.ranks, 8) // a ring has twice as many transfers
	}
	if p.steps || p.name == "mismatch" || p.name == "order" || p.name == "two" {
		j.ranks = max(j.ranks, 3) // of two, nobody can tell which is wrong, and two do not stand out
	}
	j.perHost = one(random, 4, 8, 8)
	j.rounds = 20 + random.IntN(60)
	if big {
		j.rounds = 12
	}
	m.builder = &builder{
		job: j, random: random, used: make(map[string]bool), sent: make(map[int][]int),
		host:     int64(logarithmic(random, 100e3, 3e6)),
		kernel:   int64(logarithmic(random, 500e3, 20e6)),
		unsteady: logarithmic(random, 0.003, 0.06),
		spikes:   one(random, 0, 0.002, 0.01),
		size:     uint64(logarithmic(random, 1e3, 2e7)),
		syncs:    one(random, syncsCalls, syncsRounds, syncsRounds, syncsSeldom),
		separate: random.IntN(2) == 0,
		sparing:  p.name != "order" && random.IntN(2) == 0,
	}
	if strings.HasPrefix(p.name, "host late") || p.name == "two" { // hosts that run far ahead hide their lateness
		m.syncs = one(random, syncsCalls, syncsRounds)
	}
	if p.name == "order" {
		m.separate = false
	}
	m.shape.begin(m.builder)
	j.programs = make([][]action, j.ranks)
	j.causes = append(p.causes(m), cause{noise: true})
	m.startUp()
	for m.round = range j.rounds {
		m.shape.round(m.builder)
		if m.syncs == syncsRounds || m.syncs == syncsSeldom && m.round%10 == 9 {
			for r := range j.ranks {
				m.do(r, action{does: syncs})
			}
		}
	}
	for i := range j.causes {
		m.ends(&j.causes[i])
	}
	return j
}

// startUp lets processes begin at other times, and in some jobs use their communicators once before the first round.
func (m *maker) startUp() {
	at := len(m.causes) - 1
	for r := range m.ranks {
		m.do(r, action{does: hostWorks, took: int64(r) * 1000, extra: []extra{{at, m.random.Int64N(400_000_000)}}})
	}
	if m.random.IntN(2) == 0 {
		for g := range m.groups {
			m.part = -1
			m.collective(g, "AllReduce", 256)
			for _, r := range m.groups[g].members {
				m.do(r, action{does: syncs})
			}
		}
	}
}

// span is what a round takes, about.
func (m *maker) span() int64 {
	return int64(m.shape.parts) * (m.host + m.kernel + int64(4*m.size/20))
}

// when draws in which rounds a cause strikes.
func (m *maker) when(c *cause) {
	c.every, c.from, c.to = 1, 0, m.rounds
	switch m.random.IntN(4) {
	case 0:
		c.every = 2 + m.random.IntN(4)
	case 1:
		c.from = m.rounds/4 + m.random.IntN(m.rounds/2)
	case 2:
		c.from = m.random.IntN(m.rounds / 2)
		c.to = c.from + m.rounds/3
	}
}

// lateness is a rank whose host or GPU takes longer; with a delay given, of that many ns.
func (m *maker) lateness(kind verdict.Kind, delay int64) cause {
	c := cause{kind: kind, rank: m.random.IntN(m.ranks), peer: -1, part: m.random.IntN(m.shape.parts), delay: delay}
	m.when(&c)
	if delay < 0 {
		c.delay = m.delay(&c)
	}
	return c
}

// delay draws how long a cause takes each time: all in all 2 to 40 % of the run.
func (m *maker) delay(c *cause) int64 {
	times := max(1, (c.to-c.from)/c.every)
	of := logarithmic(m.random, 0.02, 0.4)
	return max(int64(of*float64(m.span())*float64(m.rounds)/float64(times)), 300_000)
}

// two are a rank that holds the others up and another one that does so half as long.
func two(m *maker) []cause {
	a := m.lateness(one(m.random, verdict.HostLate, verdict.GPULate), -1)
	a.every, a.from, a.to = 2, 0, m.rounds
	a.delay = max(m.delay(&a), m.span()/5)
	b := a
	b.delay, b.from = a.delay/2, 1
	for b.rank == a.rank {
		b.rank = m.random.IntN(m.ranks)
	}
	return []cause{a, b}
}

// link is a slow way from a rank to the next of one of its rings.
func (m *maker) link() cause {
	c := cause{kind: verdict.SlowTransfer}
	g := m.random.IntN(len(m.groups))
	for len(m.groups) > 1 && g == 0 { // the world of a grid is seldom used
		g = m.random.IntN(len(m.groups))
	}
	members := m.groups[g].members
	at := m.random.IntN(len(members))
	c.rank, c.peer = members[at], members[(at+1)%len(members)]
	c.part = m.partOf(g)
	m.when(&c)
	c.delay = m.delay(&c)
	return c
}

// partOf is the part of a round in which a communicator is used.
func (m *maker) partOf(group int) int {
	switch {
	case len(m.groups) == 1:
		return m.random.IntN(m.shape.parts)
	case m.shape.name == "pair":
		return group
	case group <= m.ranks/4: // rows
		return 0
	}
	return 1
}

// slices is a GPU that moves what it sends slowly.
func (m *maker) slices() cause {
	c := m.link()
	c.kind, c.peer, c.slices = verdict.GPULate, -1, true
	return c
}

// once is what happens once, in the second half of the run.
func (m *maker) once(kind verdict.Kind) cause {
	from := m.rounds/2 + m.random.IntN(m.rounds/2-1)
	return cause{kind: kind, rank: m.random.IntN(m.ranks), peer: -1, every: 1, from: from, to: from + 1, part: 0}
}

// ends puts a cause that happens once into the programs: a call that is missing with all that would follow, two calls
// in the other order, another count.
func (m *maker) ends(c *cause) {
	if c.noise || c.delays() {
		return
	}
	program := m.programs[c.rank]
	var own []int // its calls of collectives from then on
	for i := range program {
		if program[i].does == calls && program[i].round >= c.from &&
			isCollective(m.operations[program[i].op].function) {
			own = append(own, i)
		}
	}
	i := own[0]
	switch c.kind {
	case verdict.Missing:
		m.programs[c.rank] = program[:i]
	case verdict.Order:
		next := own[1]
		program[i].op, program[next].op = program[next].op, program[i].op
	case verdict.Mismatch:
		o := &m.operations[program[i].op]
		o.other = map[int]uint64{c.rank: o.count/2 + 1}
	}
}

func isCollective(function string) bool {
	return function != messageName && function != shiftName && function != exchangeName
}

// truthOf works out what each cause cost: how much waiting there would not have been without it, and how much shorter
// the job would have been.
func truthOf(j *job) (tr truth, with *played) {
	start := len(j.causes) - 1
	with = j.play(func(int) bool { return false })
	steady := j.play(func(c int) bool { return c == start })
	for i := range j.causes {
		c := &j.causes[i]
		switch {
		case c.noise:
		case !c.delays():
			tr.culprits = append(tr.culprits, c.culprit(math.NaN()))
		default:
			other := j.play(func(k int) bool { return k == start || k == i })
			share := float64(steady.waited-other.waited) / float64(max(1, steady.waited))
			costs := float64(steady.length-other.length) / float64(with.length)
			named := c.culprit(share)
			unseen := c.kind == verdict.SlowTransfer && !j.transferred
			if unseen { // nothing tells which of them
				named.rank, named.peer = -1, -1
			}
			// Ranks that begin far apart can have so much time in hand that nobody waits for it in the run as it was.
			felt := float64(with.waited-j.play(func(k int) bool { return k == i }).waited) / float64(
				max(1, steady.waited))
			if share >= leastShare && felt >= leastShare && costs >= leastCost && j.times(i) >= leastTimes && !unseen {
				tr.culprits = append(tr.culprits, named)
			} else {
				tr.may = append(tr.may, named)
			}
		}
	}
	return tr, with
}

// What must be found: causes that cost a part of the run and more than a small part of all waiting.
const (
	leastShare = 0.10
	leastCost  = 0.01
	leastTimes = 5 // fewer may be chance, among few ranks
)
