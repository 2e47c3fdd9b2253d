// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// Jobs with what befalls those of real life: their numbers begin at firstOdd, each circumstance in turn.

// firstOdd is the number of the first of them.
const firstOdd = 2_000_000

// everyPart is the part of a cause that strikes in all parts of a round.
const everyPart = -2

var odd = []plan{
	{"gpu throttled", 1, anyShape, false, func(m *maker) []cause { return []cause{m.throttled(verdict.GPULate)} }},
	{"host slow at all it does", 1, anyShape, false,
		func(m *maker) []cause { return []cause{m.throttled(verdict.HostLate)} }},
	{"checkpoint every tenth round", 1, anyShape, false, func(m *maker) []cause { return []cause{m.seldom(10, 1)} }},
	{"one collects garbage", 1, anyShape, false, func(m *maker) []cause { return []cause{m.garbage()} }},
	{"two at once", 1, anyShape, false, func(m *maker) []cause { return m.both(false) }},
	{"two in other parts", 1, twoParts, false, func(m *maker) []cause { return m.both(true) }},
	{"handed over", 1, anyShape, false, func(m *maker) []cause { return m.handedOver() }},
	{"handed on again and again", 1, anyShape, false, func(m *maker) []cause { return m.handedOn() }},
	{"late after work of all others", 1, anyShape, false, func(m *maker) []cause { return m.othersPrepare() }},
	{"gets slower", 1, anyShape, false, func(m *maker) []cause { return []cause{m.growing()} }},
	{"slow interface of a host", 1, withSteps, true, func(m *maker) []cause { return m.network() }},
	{"stage late, forth and back", 1, back, false, func(m *maker) []cause {
		return []cause{m.lateness(one(m.random, verdict.HostLate, verdict.GPULate), -1)}
	}},
	{"nobody, forth and back", 1, back, false, nothingWrong},
	{"nobody, warming up", 1, anyShape, false, func(m *maker) []cause { m.disturb = warmUp; return nil }},
	{"nobody, experts are chosen unevenly", 1, anyShape, false,
		func(m *maker) []cause { m.disturb = uneven; return nil }},
	{"nobody, all collect garbage", 1, anyShape, false, func(m *maker) []cause { m.disturb = garbage; return nil }},
	{"nobody, each late in turn", 1, anyShape, false, func(m *maker) []cause { m.disturb = inTurn; return nil }},
	{"nobody, optimizer on hosts", 1, anyShape, false, func(m *maker) []cause { m.disturb = optimizer; return nil }},
	{"nobody, network of others", 1, anyShape, false, func(m *maker) []cause { m.congested = true; return nil }},
}

func nothingWrong(*maker) []cause { return nil }
func twoParts(s *shape) bool      { return s.parts > 1 }
func back(s *shape) bool          { return s.name == forthAndBack.name }

// throttled is a rank that takes longer for all that it does, from some round on.
func (m *maker) throttled(kind verdict.Kind) cause {
	c := m.lateness(kind, 0)
	c.part, c.every, c.from, c.to = everyPart, 1, one(m.random, 0, m.rounds/3), m.rounds
	of := logarithmic(m.random, 0.05, 0.5)
	c.delay = int64(of * float64(m.kernel))
	if kind == verdict.HostLate {
		c.delay = int64(of * float64(m.host+m.kernel))
	}
	return c
}

// seldom is rank 0's host that takes longer each so many rounds, by so many rounds' time.
func (m *maker) seldom(every int, of float64) cause {
	m.rounds = max(m.rounds, 7*every)
	c := m.lateness(verdict.HostLate, 0)
	c.rank, c.every, c.from, c.to = 0, every, every-1, m.rounds
	c.delay = int64(of * logarithmic(m.random, 0.5, 3) * float64(m.span()))
	return c
}

// garbage is a host that is kept in one of ten rounds, by chance.
func (m *maker) garbage() cause {
	m.rounds = max(m.rounds, 60)
	c := m.seldom(1, 0.5)
	c.rank, c.from, c.in = m.random.IntN(m.ranks), 0, new(rounds)
	for round := range m.rounds {
		if m.random.IntN(8) == 0 {
			c.in[round] = true
		}
	}
	return c
}

// both are two ranks that are late in the same rounds, in the same part or in others.
func (m *maker) both(otherParts bool) []cause {
	a := m.lateness(one(m.random, verdict.HostLate, verdict.GPULate), -1)
	a.part = m.random.IntN(m.shape.parts)
	a.delay = max(a.delay, m.span()/10)
	b := a
	b.rank = (a.rank + 1 + m.random.IntN(m.ranks-1)) % m.ranks
	b.delay = int64(float64(a.delay) * (0.5 + m.random.Float64()))
	if otherParts {
		b.part = (a.part + 1) % m.shape.parts
	}
	return []cause{a, b}
}

// handedOver is a rank that is late in the first half of the run and another one in the second.
func (m *maker) handedOver() []cause {
	all := m.both(false)
	for i := range all {
		all[i].every, all[i].from, all[i].to, all[i].delay = 1, i*m.rounds/2, (i+1)*m.rounds/2, all[0].delay
	}
	return all
}

// handedOn is lateness that goes from one of three ranks to the next without a pause.
func (m *maker) handedOn() (all []cause) {
	m.rounds = max(m.rounds, 45)
	first := m.lateness(one(m.random, verdict.HostLate, verdict.GPULate), -1)
	first.delay = max(first.delay, m.span()/10)
	stretches := min(3, m.ranks)
	for i := range stretches {
		c := first
		c.rank = (first.rank + i) % m.ranks
		c.every, c.from, c.to = 1, i*m.rounds/stretches, (i+1)*m.rounds/stretches
		all = append(all, c)
	}
	return all
}

// othersPrepare is a rank that is late from some round on, after all others have worked once for long.
func (m *maker) othersPrepare() []cause {
	c := m.lateness(one(m.random, verdict.HostLate, verdict.GPULate), -1)
	c.every, c.from, c.to = 1, m.rounds/3, m.rounds
	c.delay = max(c.delay, m.span()/10)
	long := int64(float64(c.delay) * float64(m.rounds) * (0.5 + m.random.Float64()))
	m.disturb = func(b *builder, rank int) (host, gpu int64) {
		if rank == c.rank || b.round != m.rounds/4 || b.part != 0 {
			return 0, 0
		}
		return long, 0
	}
	return []cause{c}
}

// growing is a host that takes longer from round to round.
func (m *maker) growing() cause {
	c := m.lateness(verdict.HostLate, -1)
	c.every, c.from, c.to, c.grows = 1, 0, m.rounds, true
	return c
}

// network is a host whose interface is slow: what goes out by it, and what comes in.
func (m *maker) network() (all []cause) {
	members := m.groups[0].members
	for at, r := range members {
		next := members[(at+1)%len(members)]
		if r/m.perHost != next/m.perHost && (r/m.perHost == 0 || next/m.perHost == 0) {
			c := m.link()
			c.rank, c.peer, c.part, c.every, c.from, c.to = r, next, everyPart, 1, 0, m.rounds
			c.delay = m.span() / 10
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return []cause{m.link()}
	}
	return all
}

// warmUp makes work take longer in the first rounds, on each rank by chance.
func warmUp(b *builder, _ int) (host, gpu int64) {
	if b.round >= 3 {
		return 0, 0
	}
	return int64(b.random.ExpFloat64() * 3 * float64(b.host+b.kernel)), int64(b.random.ExpFloat64() * float64(b.kernel))
}

// uneven lets GPUs have as much to do as was chosen for them.
func uneven(b *builder, _ int) (host, gpu int64) {
	return 0, int64(b.random.ExpFloat64() * 0.3 * float64(b.kernel))
}

// garbage keeps each host in one of twelve rounds, by chance.
func garbage(b *builder, _ int) (host, gpu int64) {
	if b.random.IntN(12*3) > 0 {
		return 0, 0
	}
	return int64((0.5 + b.random.Float64()) * float64(b.host+b.kernel)), 0
}

// inTurn makes one rank late after the other.
func inTurn(b *builder, rank int) (host, gpu int64) {
	if b.round%b.ranks != rank {
		return 0, 0
	}
	return (b.host + b.kernel) / 3, 0
}

// optimizer lets all hosts work at the end of the first part of a round.
func optimizer(b *builder, _ int) (host, gpu int64) {
	if b.part != 0 {
		return 0, 0
	}
	return int64((1 + 0.1*b.random.NormFloat64()) * float64(b.kernel)), 0
}

// shapesOf are those that can have what a plan says.
func shapesOf(p *plan, from []shape) (can []*shape) {
	for i := range from {
		if p.shapes(&from[i]) && (!p.steps || from[i].steps) {
			can = append(can, &from[i])
		}
	}
	for _, s := range [...]*shape{&forthAndBack, &model} {
		if len(can) == 0 && p.shapes(s) {
			can = append(can, s)
		}
	}
	return slices.Clip(can)
}
