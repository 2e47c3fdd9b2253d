// SPDX-License-Identifier: Apache-2.0

package answers

import "fmt"

// forthAndBack is a pipeline in which activations go forth and gradients back, one after the other as far as it can be
// (1F1B).
var forthAndBack = shape{name: "1f1b", parts: 2, ranks: few, begin: twoWays, round: oneForthOneBack}

func twoWays(b *builder) {
	b.ranks = min(max(b.ranks, 3), 8)
	b.programs = nil
	b.separate = true
	b.cut = dimensions{tp: 1, dp: 1, pp: b.ranks}
	b.groupChains()
}

// model is a model that is cut over tensors, replicas and stages; in some jobs the replicas exchange experts. Its stages
// work as forthAndBack's do.
var model = shape{name: "model", parts: 2, ranks: few, begin: cutModel, round: oneForthOneBack}

func cutModel(b *builder) {
	b.cut = dimensions{tp: 1 + b.random.IntN(2), dp: one(b.random, 1, 2, 4), pp: 2 + b.random.IntN(3)}
	b.experts = b.cut.dp > 1 && b.random.IntN(3) == 0
	b.ranks = b.cut.tp * b.cut.dp * b.cut.pp
	b.programs = nil
	b.separate = true
	b.groupChains()
	for s := range b.cut.pp {
		for d := range b.cut.dp {
			b.group(fmt.Sprintf("tp %d %d", s, d), b.cut.members(b.cut.tp, func(t int) int { return b.cut.rank(t, d, s) })...)
		}
	}
	for s := range b.cut.pp {
		for t := range b.cut.tp {
			b.group(fmt.Sprintf("dp %d %d", s, t), b.cut.members(b.cut.dp, func(d int) int { return b.cut.rank(t, d, s) })...)
		}
	}
	b.group("world", everybody(b.ranks)...)
}

// groupChains makes the communicators for messages from stage to stage, two of each chain.
func (b *builder) groupChains() {
	for d := range b.cut.dp {
		for t := range b.cut.tp {
			chain := b.cut.members(b.cut.pp, func(s int) int { return b.cut.rank(t, d, s) })
			b.group(fmt.Sprintf("forth %d %d", d, t), chain...)
			b.group(fmt.Sprintf("back %d %d", d, t), chain...)
		}
	}
}

func (dimensions) members(n int, rank func(i int) int) (all []int) {
	for i := range n {
		all = append(all, rank(i))
	}
	return all
}

// modelRound is a round of a model while it is written, rank by rank.
type modelRound struct {
	*builder
	operations map[string]int // by what they are, for their other members
}

// join lets a rank call an operation of a communicator, which the first that does so makes.
func (b *modelRound) join(rank, group int, function string, nth int, elements uint64, members ...int) {
	if len(members) < 2 {
		return
	}
	key := fmt.Sprint(group, function, nth, members)
	op, made := b.operations[key]
	if !made {
		o := operation{group: group, function: function, count: elements, members: members,
			eager: function == messageName && 4*elements <= 64<<10}
		o.took = noisy(b.random, 15_000+int64(4*elements/10), 0.03)
		b.start(&o, fmt.Sprint(group, members), 4_000_000)
		op = len(b.builder.operations)
		b.operations[key] = op
		b.builder.operations = append(b.builder.operations, o)
	}
	b.do(rank, action{does: calls, took: noisy(b.random, callTook, 0.2), op: op, stream: b.streamOf(group)})
	if function != messageName || rank == members[1] {
		b.await(rank, group)
	}
}

// oneForthOneBack takes eight micro-batches through the stages, and sums up what the replicas learned.
func oneForthOneBack(b *builder) {
	const batches = 8
	round := &modelRound{b, make(map[string]int)}
	for r := range b.ranks {
		m := round.memberOf(r)
		ahead := min(batches, b.cut.pp-1-m.s)
		for batch := range ahead {
			m.forth(batch)
		}
		for batch := range batches {
			if ahead+batch < batches {
				m.forth(ahead + batch)
			}
			m.back(batch)
		}
		m.learn()
	}
}

// modelRank is a rank of a model: the ranks of the stages before and after it, and its communicators.
type modelRank struct {
	*modelRound
	rank, s, before, after int
	chain, tensors, data   int
}

func (b *modelRound) memberOf(rank int) *modelRank {
	c := b.cut
	t, d, s := rank%c.tp, rank/c.tp%c.dp, rank/c.tp/c.dp
	chains := 2 * c.dp * c.tp
	return &modelRank{b, rank, s, rank - c.tp*c.dp, rank + c.tp*c.dp, 2 * (d*c.tp + t), chains + s*c.dp + d,
		chains + c.pp*c.dp + s*c.tp + t}
}

func (m *modelRank) forth(batch int) {
	m.part = 0
	if m.s > 0 {
		m.join(m.rank, m.chain, messageName, batch, m.size/4, m.before, m.rank)
	}
	m.work(m.rank, 0.3)
	m.layer(2 * batch)
	if m.s+1 < m.cut.pp {
		m.join(m.rank, m.chain, messageName, batch, m.size/4, m.rank, m.after)
	}
}

func (m *modelRank) back(batch int) {
	m.part = 1
	if m.s+1 < m.cut.pp {
		m.join(m.rank, m.chain+1, messageName, batch, m.size/4, m.after, m.rank)
	}
	m.work(m.rank, 0.6)
	m.layer(2*batch + 1)
	if m.s > 0 {
		m.join(m.rank, m.chain+1, messageName, batch, m.size/4, m.rank, m.before)
	}
}

// layer sums up over tensors, and exchanges experts with the replicas.
func (m *modelRank) layer(nth int) {
	if len(m.groups) <= m.data { // only stages
		return
	}
	m.join(m.rank, m.tensors, "AllReduce", nth, m.size/8, m.groups[m.tensors].members...)
	if m.experts {
		m.join(m.rank, m.data, exchangeName, nth, m.size/16, m.groups[m.data].members...)
	}
}

// learn sums up gradients over the replicas, then their norm over all.
func (m *modelRank) learn() {
	if len(m.groups) <= m.data {
		return
	}
	m.part = -1
	m.join(m.rank, m.data, "ReduceScatter", 0, m.size/uint64(m.cut.dp)+1, m.groups[m.data].members...)
	m.work(m.rank, 0.1)
	m.join(m.rank, m.data, "AllGather", 0, m.size/uint64(m.cut.dp)+1, m.groups[m.data].members...)
	m.join(m.rank, len(m.groups)-1, "AllReduce", 0, 1, m.groups[len(m.groups)-1].members...)
}
