// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"math/rand/v2"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
)

// builder writes the programs of a job's ranks.
type builder struct {
	*job
	random *rand.Rand

	host, kernel     int64   // ns: what the host prepares and the GPU computes in each part of a round
	unsteady, spikes float64 // deviation of these; how often the operating system keeps a host from running
	size             uint64  // elements of a collective
	syncs            syncing
	separate         bool            // operations have streams of their own, beside what is computed
	sparing          bool            // some communicators are first used in the middle of the run
	experts          bool            // of a model: its replicas exchange them
	used             map[string]bool // communicators, and pairs of ranks that sent messages
	sent             map[int][]int   // messages, by rank, that it has not received yet
	round, part      int
	// operations take longer by chance, as others use the network
	congested bool
	// what befalls all ranks, ns of a part of a round; nil: nothing
	disturb func(b *builder, rank int) (host, gpu int64)
}

// syncing is when hosts wait for their GPUs.
type syncing uint8

const (
	syncsCalls  syncing = iota // after every operation
	syncsRounds                // once a round
	syncsSeldom                // every tenth round: hosts run far ahead of their GPUs
)

// shape is a way in which jobs communicate.
type shape struct {
	name  string
	parts int // of a round: where causes strike
	ranks func(random *rand.Rand) int
	begin func(b *builder) // makes the communicators
	round func(b *builder)
	steps bool // its operations can be recorded with transfers
}

func few(random *rand.Rand) int { return 2 + random.IntN(11) }

var shapes = []shape{
	{name: "world", parts: 3, ranks: few, begin: world, round: buckets, steps: true},
	{name: "sharded", parts: 3, ranks: few, begin: world, round: sharded, steps: true},
	{name: "pair", parts: 2, ranks: few, begin: pair, round: turns, steps: true},
	{name: "experts", parts: 2, ranks: func(r *rand.Rand) int { return 3 + r.IntN(4) }, begin: world, round: experts},
	{name: "grid", parts: 2, ranks: func(r *rand.Rand) int { return (2 + r.IntN(3)) * 4 }, begin: grid, round: crossing,
		steps: true},
	{name: "mesh", parts: 4, ranks: func(r *rand.Rand) int { return 8 << r.IntN(2) }, begin: mesh, round: training},
	{name: "pipeline", parts: 1, ranks: func(r *rand.Rand) int { return 3 + r.IntN(5) }, begin: world, round: pipeline},
	{name: "chain", parts: 3, ranks: func(r *rand.Rand) int { return 3 + r.IntN(6) }, begin: world, round: chain},
	{name: "ring", parts: 2, ranks: func(r *rand.Rand) int { return 3 + r.IntN(6) }, begin: world, round: ring},
}

// large are shapes of large jobs.
var large = []shape{
	{name: "large mesh", parts: 4, ranks: func(r *rand.Rand) int { return 64 << r.IntN(4) }, begin: mesh,
		round: training},
	{name: "large world", parts: 3, ranks: func(r *rand.Rand) int { return 64 << r.IntN(2) }, begin: world,
		round: buckets},
	{name: "large grid", parts: 2, ranks: func(r *rand.Rand) int { return 64 << r.IntN(2) }, begin: grid,
		round: crossing},
}

// group adds a communicator.
func (b *builder) group(name string, members ...int) int {
	b.groups = append(b.groups, group{name, members})
	return len(b.groups) - 1
}

func (b *builder) do(rank int, a action) {
	a.round = b.round
	b.programs[rank] = append(b.programs[rank], a)
}

// work lets a rank's host and GPU do what comes before an operation, and what causes add to it.
func (b *builder) work(rank int, of float64) {
	host := action{does: hostWorks, took: noisy(b.random, int64(of*float64(b.host)), b.unsteady)}
	if b.random.Float64() < b.spikes {
		host.took += int64(float64(b.host+b.kernel) * b.random.ExpFloat64() / 4)
	}
	gpu := action{does: gpuWorks, took: noisy(b.random, int64(of*float64(b.kernel)), b.unsteady/2)}
	for i := range b.causes {
		c := &b.causes[i]
		if !c.strikes(rank, b.round, b.part) {
			continue
		}
		switch c.kind {
		case verdict.HostLate:
			host.extra = append(host.extra, extra{i, noisy(b.random, c.takes(b.round), 0.05)})
		case verdict.GPULate:
			if !c.slices {
				gpu.extra = append(gpu.extra, extra{i, noisy(b.random, c.takes(b.round), 0.05)})
			}
		}
	}
	if b.disturb != nil {
		moreHost, moreGPU := b.disturb(b, rank)
		host.took, gpu.took = host.took+moreHost, gpu.took+moreGPU
	}
	b.do(rank, host)
	b.do(rank, gpu)
}

// operate adds an operation of members and lets each call it. elements are per rank.
func (b *builder) operate(group int, function string, elements uint64, root int, members ...int) {
	o := operation{group: group, function: function, count: elements, root: root, members: members}
	bytes := float64(4 * elements)
	if function == "AllGather" || function == "ReduceScatter" {
		bytes *= float64(len(members))
	}
	o.took = noisy(b.random, 20_000+int64(bytes/20*float64(len(members)-1)/float64(len(members))), 0.03) // at 20 GB/s
	if b.steps && len(members) > 1 && function != shiftName && function != exchangeName && function != "Reduce" {
		o.hops = len(members) - 1
		if function == "AllReduce" {
			o.hops *= 2
		}
		for i := range b.causes {
			c := &b.causes[i]
			if (c.slices || c.kind == verdict.SlowTransfer) && c.strikes(c.rank, b.round, b.part) {
				o.slow = append(o.slow, slowness{i, c.delay / int64(o.hops)})
			}
		}
	}
	if b.congested {
		o.took += int64(b.random.ExpFloat64() * float64(o.took+b.kernel/10))
	}
	b.start(&o, fmt.Sprint(group), 40_000_000)
	b.operations = append(b.operations, o)
	for _, m := range members {
		b.do(m, action{does: calls, took: noisy(b.random, callTook, 0.2), op: len(b.operations) - 1,
			stream: b.streamOf(group)})
		if b.syncs == syncsCalls {
			b.do(m, action{does: syncs})
		}
	}
}

// start makes the first operation of a communicator, or of two ranks of it, take longer: they connect.
func (b *builder) start(o *operation, key string, most int64) {
	if o.first = !b.used[key]; o.first {
		b.used[key] = true
		o.took += most/8 + b.random.Int64N(most)
	}
}

// collective is an operation of all of a communicator.
func (b *builder) collective(group int, function string, elements uint64) {
	b.operate(group, function, elements, 0, b.groups[group].members...)
}

// streamOf is the stream that a communicator's operations run on.
func (b *builder) streamOf(group int) int {
	if b.separate {
		return 1 + group
	}
	return 0
}

// await lets what a rank computes next wait for a communicator's operations.
func (b *builder) await(rank, group int) {
	if b.separate {
		b.do(rank, action{does: awaits, stream: b.streamOf(group)})
	}
}

// all lets all ranks work, each for itself.
func (b *builder) all(of float64) {
	for r := range b.ranks {
		b.work(r, of)
	}
}

func everybody(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func world(b *builder) { b.group("world", everybody(b.ranks)...) }

// pair makes two communicators of all.
func pair(b *builder) {
	world(b)
	b.group("second", everybody(b.ranks)...)
}

// turns uses the two communicators in turn; in some jobs the second only from the middle of the run on.
func turns(b *builder) {
	parts := 2
	if b.sparing && b.round < b.rounds/2 {
		parts = 1
	}
	for b.part = range parts {
		b.all(1)
		b.collective(b.part, one(b.random, "AllReduce", "AllGather"), b.size/4+1)
	}
	for r := range b.ranks {
		b.await(r, 0)
		b.await(r, 1)
	}
}

// buckets are gradients that are summed up in parts while the rest is computed, as DDP does.
func buckets(b *builder) {
	for b.part = range 3 {
		b.all(1)
		b.collective(0, "AllReduce", b.size)
	}
	for r := range b.ranks {
		b.await(r, 0)
	}
}

// sharded is as FSDP does: parameters are gathered before they are used, gradients scattered.
func sharded(b *builder) {
	for b.part = range 2 {
		b.all(0.5)
		b.collective(0, "AllGather", b.size/uint64(b.ranks)+1)
		for r := range b.ranks {
			b.await(r, 0)
		}
	}
	b.part = 2
	b.all(2)
	b.collective(0, "ReduceScatter", b.size/uint64(b.ranks)+1)
	for r := range b.ranks {
		b.await(r, 0)
	}
}

// grid makes rows of four and columns.
func grid(b *builder) {
	world(b)
	rows := b.ranks / 4
	for y := range rows {
		b.group(fmt.Sprint("row ", y), 4*y, 4*y+1, 4*y+2, 4*y+3)
	}
	for x := range 4 {
		var members []int
		for y := range rows {
			members = append(members, 4*y+x)
		}
		b.group(fmt.Sprint("column ", x), members...)
	}
}

// crossing uses first all rows, then all columns; now and then the world.
func crossing(b *builder) {
	rows := b.ranks / 4
	b.part = 0
	b.all(1)
	for y := range rows {
		b.collective(1+y, "AllReduce", b.size)
	}
	for r := range b.ranks {
		b.await(r, 1+r/4)
	}
	b.part = 1
	b.all(0.3)
	for x := range 4 {
		b.collective(1+rows+x, "AllReduce", b.size/2)
	}
	for r := range b.ranks {
		b.await(r, 1+rows+r%4)
	}
	if b.round%10 == 0 {
		b.collective(0, "AllReduce", 1)
	}
}

// mesh makes tensor parallel groups of two or eight, two pipeline stages, and data parallel groups of the rest. The
// group of each: 1 … for tensors, then for data, then one for the messages between the stages.
func mesh(b *builder) {
	world(b)
	m := b.dimensions()
	for d := range m.dp {
		for s := range m.pp {
			var members []int
			for t := range m.tp {
				members = append(members, m.rank(t, d, s))
			}
			b.group(fmt.Sprintf("tp %d %d", d, s), members...)
		}
	}
	for s := range m.pp {
		for t := range m.tp {
			var members []int
			for d := range m.dp {
				members = append(members, m.rank(t, d, s))
			}
			b.group(fmt.Sprintf("dp %d %d", s, t), members...)
		}
	}
	for d := range m.dp {
		for t := range m.tp {
			var members []int
			for s := range m.pp {
				members = append(members, m.rank(t, d, s))
			}
			b.group(fmt.Sprintf("pp %d %d", d, t), members...)
		}
	}
}

type dimensions struct{ tp, dp, pp int }

func (b *builder) dimensions() dimensions {
	tp := 2
	if b.ranks >= 64 {
		tp = 8
	}
	return dimensions{tp, b.ranks / tp / 2, 2}
}

func (m dimensions) rank(t, d, s int) int { return (s*m.dp+d)*m.tp + t }
func (m dimensions) tensors(d, s int) int { return 1 + d*m.pp + s }
func (m dimensions) data(s, t int) int    { return 1 + m.dp*m.pp + s*m.tp + t }
func (m dimensions) stages(d, t int) int  { return 1 + m.dp*m.pp + m.pp*m.tp + d*m.tp + t }

// training is a step of a model that is cut in three ways: two micro-batches through two stages, each with sums over
// tensors, then the gradients.
func training(b *builder) {
	m := b.dimensions()
	for batch := range 2 {
		for s := range m.pp {
			for d := range m.dp {
				for t := range m.tp {
					r := m.rank(t, d, s)
					if s > 0 {
						b.receive(m.stages(d, t), r)
					}
				}
				b.part = batch
				for layer := range 2 {
					for t := range m.tp {
						if layer == 1 {
							b.part = -1
						}
						b.work(m.rank(t, d, s), 0.5)
					}
					b.collective(m.tensors(d, s), "AllReduce", b.size/4)
					for t := range m.tp {
						b.await(m.rank(t, d, s), m.tensors(d, s))
					}
				}
				for t := range m.tp {
					if s+1 < m.pp {
						b.send(m.stages(d, t), m.rank(t, d, s), m.rank(t, d, s+1), b.size/2)
					}
				}
			}
		}
	}
	b.part = 2
	b.all(1)
	for s := range m.pp {
		for t := range m.tp {
			b.collective(m.data(s, t), "ReduceScatter", b.size/uint64(m.dp)+1)
			b.collective(m.data(s, t), "AllGather", b.size/uint64(m.dp)+1)
		}
	}
	for r := range b.ranks {
		b.await(r, m.data(r/m.tp/m.dp, r%m.tp))
	}
	b.part = 3
	b.all(0.2)
	b.collective(0, "AllReduce", 1) // the gradients' norm
	for r := range b.ranks {
		b.await(r, 0)
	}
}

// send adds a message; its receiver calls it where its program says receive.
func (b *builder) send(group, from, to int, elements uint64) {
	o := operation{group: group, function: messageName, count: elements, members: []int{from, to},
		eager: 4*elements <= 64<<10}
	o.took = noisy(b.random, 15_000+int64(4*elements/10), 0.03)
	b.start(&o, fmt.Sprint(group, from, to), 4_000_000)
	b.operations = append(b.operations, o)
	b.do(from, action{does: calls, took: noisy(b.random, callTook, 0.2), op: len(b.operations) - 1,
		stream: b.streamOf(group)})
	b.sent[to] = append(b.sent[to], len(b.operations)-1)
}

// receive lets a rank take the next message that was sent to it.
func (b *builder) receive(group, rank int) {
	op := b.sent[rank][0]
	b.sent[rank] = b.sent[rank][1:]
	b.do(rank, action{does: calls, took: noisy(b.random, callTook, 0.2), op: op, stream: b.streamOf(group)})
	b.await(rank, group)
	if b.syncs == syncsCalls {
		b.do(rank, action{does: syncs})
	}
}

// pipeline hands four micro-batches from stage to stage.
func pipeline(b *builder) {
	b.part = 0
	for range 4 {
		for r := range b.ranks {
			if r > 0 {
				b.receive(0, r)
			}
			b.work(r, 1)
			if r+1 < b.ranks {
				b.send(0, r, r+1, b.size/4)
			}
		}
	}
}

// experts exchanges parts of all with all, twice a round, with a sum at the end.
func experts(b *builder) {
	for b.part = range 2 {
		b.all(1)
		b.operate(0, exchangeName, b.size/uint64(b.ranks)+1, 0, b.groups[0].members...)
		for r := range b.ranks {
			b.await(r, 0)
		}
	}
	b.part = -1
	b.all(0.2)
	b.collective(0, "AllReduce", b.size)
}

// chain reduces to one root after the other, then gathers and sums up.
func chain(b *builder) {
	for b.part = range 3 {
		b.all(1)
		b.operate(0, "Reduce", b.size, (b.round+b.part)%b.ranks, b.groups[0].members...)
		b.all(0.2)
		b.collective(0, []string{"AllGather", "AllReduce"}[b.part%2], b.size/uint64(b.ranks)+1)
		for r := range b.ranks {
			b.await(r, 0)
		}
	}
}

// ring hands blocks around while the next is computed; sums up at the end.
func ring(b *builder) {
	b.part = 0
	for range 3 {
		b.all(0.5)
		b.operate(0, shiftName, b.size/2, 0, b.groups[0].members...)
		for r := range b.ranks {
			b.await(r, 0)
		}
		b.part = -1
	}
	b.part = 1
	b.all(1)
	b.collective(0, "AllReduce", b.size)
}
