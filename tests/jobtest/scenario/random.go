// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
)

// RandomOptions bound what Random makes. The zero value leaves everything to the seed, without hazards.
type RandomOptions struct {
	Release   string // "": any
	Processes int    // 0: 1 to 3
	Calls     int    // about how many callbacks in all processes at most; 0: 1500
	Hazards   bool   // misused handles, foreign values, missing stops, and so on
}

// Random makes a job of a few processes and communicators with operations of all kinds that the
// release has. The same seed and options make the same scenario.
func Random(seed uint64, opt RandomOptions) *Scenario {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 0x0f2)), opt: opt}
	all := []string{"2.23.4", "2.24.3", "2.25.1", "2.26.6", "2.27.7", "2.28.9", "2.29.7", "2.30.7", "2.31.2"}
	release := all[g.rng.IntN(len(all))]
	g.opt.Calls = cmp.Or(opt.Calls, 1500)
	g.Scenario = New(fmt.Sprintf("random-%d", seed), cmp.Or(opt.Release, release))
	g.What = fmt.Sprintf("random job of seed %d", seed)
	g.processesAndComms()
	for g.calls() < g.opt.Calls*3/4 {
		comm := pick(g, g.comms)
		g.Advance(float64(g.rng.IntN(300)))
		pick(g, g.kinds())(comm)
		if opt.Hazards && g.rng.IntN(3) == 0 {
			g.hazard()
		}
	}
	g.leave()
	return g.Scenario
}

type generator struct {
	*Scenario
	rng   *rand.Rand
	opt   RandomOptions
	comms [][]*Rank // by communicator: its ranks
	done  []*Done   // of the ranks of the latest operation
	who   []*Rank   // to whom these belong
}

func pick[T any](g *generator, from []T) T { return from[g.rng.IntN(len(from))] }

func (g *generator) calls() int {
	n := 0
	for _, p := range g.processes {
		n += len(p.calls)
	}
	return n
}

func (g *generator) processesAndComms() {
	n := cmp.Or(g.opt.Processes, 1+g.rng.IntN(3))
	perProcess := 1 + g.rng.IntN(2)
	var threads []*Thread // one for each rank of the job
	for range n {
		p := g.Process()
		p.skewGPU(float64(g.rng.IntN(2000) - 1000))
		sameThread := g.rng.IntN(2) == 0
		for k := range perProcess {
			if k > 0 && sameThread {
				threads = append(threads, threads[len(threads)-1])
				continue
			}
			threads = append(threads, p.Thread(fmt.Sprintf("rank%d", k)))
		}
	}
	for c := range 1 + g.rng.IntN(3) {
		members := threads
		if c > 0 && len(threads) > 1 && g.rng.IntN(2) == 0 {
			members = threads[:1+g.rng.IntN(len(threads))]
		}
		comm := Comm{ID: g.rng.Uint64() | 1, NRanks: len(members), NNodes: 1 + g.rng.IntN(len(members)),
			Name: pick(g, []string{"", "", "world", "dp \"0\""})}
		var ranks []*Rank
		for i, t := range members {
			comm.Rank = i
			ranks = append(ranks, t.Join(comm))
		}
		g.comms = append(g.comms, ranks)
	}
}

// op is a collective with random members, smaller in large communicators.
func (g *generator) op(comm []*Rank) Op {
	op := Op{
		Func:     pick(g, []string{"AllReduce", "AllReduce", "AllGather", "ReduceScatter", "Reduce", "Broadcast"}),
		Count:    1 << g.rng.IntN(22),
		Datatype: pick(g, []string{"ncclFloat32", "ncclFloat16", "ncclInt8", "ncclFloat64"}),
		Algo:     pick(g, []string{"RING", "TREE", "NVLS", "PAT"}),
		Proto:    pick(g, []string{"SIMPLE", "LL", "LL128"}),
		Channels: 1 + g.rng.IntN(2),
		Steps:    g.rng.IntN(4),
		Kernel:   float64(20 + g.rng.IntN(400)),
		NoKernel: g.rng.IntN(8) == 0,
		UserTag:  g.rng.Uint64N(3),
		Net:      pick(g, []int64{0, 0, NetSocket, NetIB, 0x50003}),
	}
	op.StepBytes = op.Count
	if len(comm) > 2 {
		op.Channels, op.Steps = 1, min(op.Steps, 2)
	}
	return op
}

func (g *generator) all(comm []*Rank, ops func(rank int) []Op) {
	var late []float64
	for range comm {
		late = append(late, float64(g.rng.IntN(200)))
	}
	g.done, g.who = g.All(comm, ops, late...), comm
}

// kinds are the operations that the release has.
func (g *generator) kinds() []func(comm []*Rank) {
	kinds := []func([]*Rank){g.collective, g.collective, g.group, g.pair, g.exchange}
	if g.minor >= 28 {
		kinds = append(kinds, g.graph)
	}
	if g.minor >= 29 {
		kinds = append(kinds, g.special)
	}
	return kinds
}

func (g *generator) collective(comm []*Rank) {
	op := g.op(comm)
	op.Root = g.rng.IntN(len(comm))
	if op.Func != "Reduce" && op.Func != "Broadcast" {
		op.Root = 0
	}
	g.all(comm, Same(op))
}

func (g *generator) group(comm []*Rank) {
	ops := []Op{g.op(comm), g.op(comm)}
	if g.rng.IntN(2) == 0 {
		ops = append(ops, g.op(comm))
	}
	for i := range ops {
		ops[i].Stream = descriptor.Pointer(0x55ff00005eb0 + uint64(g.rng.IntN(2))<<8)
	}
	g.all(comm, Same(ops...))
}

// exchange is an all-to-all.
func (g *generator) exchange(comm []*Rank) {
	like := g.op(comm)
	like.Channels, like.Steps = 1, min(like.Steps, 1)
	if len(comm) > 3 {
		like.Steps = 0
	}
	g.all(comm, AllToAll(len(comm), like))
}

// pair sends from one rank to another, perhaps through a third.
func (g *generator) pair(comm []*Rank) {
	from, to := g.rng.IntN(len(comm)), g.rng.IntN(len(comm))
	op := g.op(comm)
	var via *Rank
	if v := pick(g, comm); g.rng.IntN(3) == 0 && v.p != comm[from].p {
		via = v
	}
	var active []*Rank
	var ops [][]Op
	for i, r := range comm {
		var own []Op
		if i == from {
			send := op
			send.Func, send.Peer, send.Via = "Send", to, via
			own = append(own, send)
		}
		if i == to {
			recv := op
			recv.Func, recv.Peer = "Recv", from
			own = append(own, recv)
		}
		if own != nil {
			active, ops = append(active, r), append(ops, own)
		}
	}
	g.all(active, func(i int) []Op { return ops[i] })
}

// special is a copy-engine or a symmetric collective.
func (g *generator) special(comm []*Rank) {
	op := g.op(comm)
	op.Func, op.Steps = "AllReduce", 0
	if g.rng.IntN(2) == 0 {
		op.CE = true
	} else {
		op.Symmetric = pick(g, []string{"AllReduce_AGxLL_R", "AllReduce_RSxLD_AGxST"})
	}
	g.all(comm, Same(op))
}

func (g *generator) graph(comm []*Rank) {
	var graphs []*Graph
	op := g.op(comm)
	for _, r := range comm {
		graphs = append(graphs, r.Capture(op))
	}
	for range 1 + g.rng.IntN(2) {
		g.done, g.who = nil, comm
		for _, graph := range graphs {
			g.done = append(g.done, graph.Replay())
		}
		g.Advance(op.Kernel + 100)
	}
}

// events are all of a rank's part of the latest operation.
func (d *Done) events() []*Event {
	var all []*Event
	for _, list := range [][]*Event{{d.GroupApi, d.Launch, d.Group}, d.Apis, d.Tasks, d.ProxyOps, d.Steps, d.Kernels,
		d.Ce} {
		for _, e := range list {
			if e != nil {
				all = append(all, e)
			}
		}
	}
	return all
}

// hazard does something that no plugin expects but NCCL does, or might do. Source: docs/nccl-profiler-api.md
// §3.4, §5.3, §6.
func (g *generator) hazard() {
	i := g.rng.IntN(len(g.who))
	r := g.who[i]
	var own []*Event // PXN events live in another process
	for _, e := range g.done[i].events() {
		if e.p == r.p {
			own = append(own, e)
		}
	}
	if len(own) == 0 {
		return
	}
	e := pick(g, own)
	t := pick(g, []*Thread{r.App, r.Progress, r.p.ShortThread("short")})
	raw := Raw(g.rng.Uint64() >> g.rng.IntN(64))
	state := descriptor.State(g.rng.IntN(34) - 1)
	pick(g, []func(){
		func() { t.Stop(e) },
		func() { t.State(e, state, PTimer(uint64(raw))) },
		func() { t.State(e, state, nil) },
		func() { t.Stop(raw) },
		func() { t.State(raw, state, PTimer(uint64(raw))) },
		func() { t.Stop(Raw(0)) },
		// foreign process
		func() { t.Stop(t.Start(raw, descriptor.ProxyOp{PID: 1, IsSend: true}, Under(raw))) },
		// never stopped
		func() { t.Start(r.Context, descriptor.ProxyStep{Step: 3}, Under(raw)) },
		// parent of any type
		func() { t.Stop(t.Start(r.Context, descriptor.KernelCh{ChannelID: 63, PTimer: uint64(raw)}, Under(e))) },
		func() { t.Stop(t.Start(r.Context, descriptor.Other{}, WithType(uint64(raw)|1<<40), Under(e))) }, // no type
		// *eHandle garbage
		func() { t.Stop(t.Start(r.Context, descriptor.ProxyCtrl{}, Before(raw))) },
		func() { t.Start(r.Context, descriptor.Coll{Func: "AllReduce", Datatype: "ncclFloat32"}) }, // no parent, no stop
		// a context as handle
		func() { t.Stop(r.p.contextOf(g)) },
		func() { t.State(e, descriptor.StateNetPluginUpdate, &replay.Args{Data: new(descriptor.Pointer)}) }, // no data
		func() { // a receive that is started again and again
			op := t.Start(r.Context, descriptor.ProxyOp{NSteps: 1}, Under(e))
			for range 3 {
				t.Start(r.Context, descriptor.ProxyStep{}, Under(op))
			}
			t.Stop(op)
		},
	})()
}

// contextOf is the value of some context of the process, as far as the plugin gave one.
func (p *Process) contextOf(g *generator) Ref {
	for _, ranks := range g.comms {
		for _, r := range ranks {
			if r.p == p {
				return r.Context.Publish()
			}
		}
	}
	return Raw(0)
}

// leave finalizes the communicators, with hazards perhaps not all, and not last.
func (g *generator) leave() {
	for i, ranks := range g.comms {
		if g.opt.Hazards && g.rng.IntN(5) == 0 {
			continue
		}
		Leave(ranks)
		// The shared progress threads of communicators that live on use the context of one that does not.
		if g.opt.Hazards && i < len(g.comms)-1 {
			r := pick(g, ranks)
			r.Progress.Stop(r.Progress.Start(r.Context, descriptor.ProxyCtrl{}))
		}
	}
}
