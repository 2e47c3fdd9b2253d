// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
)

// Rank is one communicator rank with the threads that work for it. Its methods make the calls of
// whole operations, in the order and from the threads of the scenario's release (docs/nccl-profiler-api.md §3).
type Rank struct {
	*Context
	App      *Thread // calls NCCL
	Progress *Thread // network proxy; up to 2.30 also KernelCh
	Profiler *Thread // KernelCh from 2.31 on
	Driver   *Thread // graph replays

	last    *Event            // the latest CollApi: what NCCL's slot still holds
	seq     map[string]uint64 // collectives so far, by function
	ceSeq   uint64
	buffers uint64
}

// Join initializes a communicator rank on a thread and makes the threads that NCCL makes for it.
func (t *Thread) Join(comm Comm) *Rank {
	p := t.p
	r := &Rank{Context: t.Init(comm), App: t, seq: map[string]uint64{}, buffers: 0x7f2000000000}
	r.Progress = p.Thread(fmt.Sprintf("NCCL Progress%2d", p.contexts-1))
	r.Driver = p.Thread("cuda-EvtHandlr")
	r.Profiler = p.Thread("python")
	return r
}

// Job makes n processes, each with one rank of a new communicator, on the main thread of each. The
// comm's Rank and NRanks are set here.
func (s *Scenario) Job(n int, comm Comm) []*Rank {
	begin := s.now
	var ranks []*Rank
	for rank := range n {
		s.now = begin + uint64(rank)*s.step
		comm.Rank, comm.NRanks = rank, n
		ranks = append(ranks, s.Process().Thread("python").Join(comm))
	}
	s.now = begin + uint64(n+1)*s.step
	return ranks
}

// Leave finalizes the rank's communicator, after all that the process has done so far.
func (r *Rank) Leave() {
	for _, c := range r.p.calls {
		r.p.s.now = max(r.p.s.now, c.t+r.p.s.step)
	}
	r.App.finalize(r.Context)
}

// Leave finalizes all.
func Leave(ranks []*Rank) {
	for _, r := range ranks {
		r.Leave()
	}
}

// Op is one operation. The zero value of a member is the usual one.
type Op struct {
	Func      string // "AllReduce", …; "Send", "Recv"
	Count     uint64 // 0: 1024
	Datatype  string // "": ncclFloat32
	Root      int
	Peer      int // of Send and Recv
	Stream    descriptor.Pointer
	Algo      string // "": RING
	Proto     string // "": SIMPLE
	Channels  int    // 0: 1
	UserTag   uint64 // 2.31 and later
	Symmetric string // kernel variant, "AllReduce_AGxLL_R": a symmetric kernel
	CE        bool   // by copy engine (2.29 and later)

	// Steps is the number of network transfers in each direction of each channel; 0: no network.
	Steps     int
	StepBytes uint64 // 0: 4096
	Net       int64  // NetPlugin events of this network plugin below the steps; 0: none
	// Via is the rank whose process carries out the sends (PXN); nil: the rank's own.
	Via *Rank

	Kernel   float64 // µs that the kernel runs; 0: 50
	NoKernel bool    // no KernelCh
	// Open leaves what the progress thread started without stops, as an aborted communicator does.
	Open bool
}

// Network plugin ids of NCCL's own transports, for Op.Net.
const (
	NetIB     = 0x10001
	NetSocket = 0x20001
)

func (op *Op) isP2P() bool { return op.Func == "Send" || op.Func == "Recv" }

func (op Op) filled() Op {
	op.Count = cmp.Or(op.Count, 1024)
	op.Datatype = cmp.Or(op.Datatype, "ncclFloat32")
	op.Algo = cmp.Or(op.Algo, "RING")
	op.Proto = cmp.Or(op.Proto, "SIMPLE")
	op.Channels = cmp.Or(op.Channels, 1)
	op.StepBytes = cmp.Or(op.StepBytes, 4096)
	op.Kernel = cmp.Or(op.Kernel, 50)
	op.Stream = cmp.Or(op.Stream, 0x55ff00005eb0)
	return op
}

// sizes of NCCL's datatypes, bytes.
var sizes = map[string]uint64{
	"ncclInt8": 1, "ncclUint8": 1, "ncclFloat8e4m3": 1, "ncclFloat8e5m2": 1, "ncclFloat16": 2, "ncclBfloat16": 2,
	"ncclInt32": 4, "ncclUint32": 4, "ncclFloat32": 4, "ncclInt64": 8, "ncclUint64": 8, "ncclFloat64": 8,
}

// bytes of the operation's count.
func (op *Op) bytes() uint64 { return op.Count * sizes[op.Datatype] }

// visible says whether the release has more than the API events of an operation. Plain broadcasts
// (from 2.29 on) and symmetric kernels (before 2.31) have not. Source: docs/nccl-profiler-api.md, rules 15, 16.
func (s *Scenario) visible(op *Op) bool {
	switch {
	case op.CE:
		return false
	case op.Symmetric != "":
		return s.minor >= 31
	case op.Func == "Broadcast":
		return s.minor < 29
	}
	return true
}

// Done are the events of one group of operations.
type Done struct {
	GroupApi *Event   // from 2.28 on, as Apis and Launch
	Apis     []*Event // CollApi and P2pApi, in the order of the calls
	Launch   *Event
	Group    *Event
	Tasks    []*Event // Coll and P2p, one for each op; nil for those without
	ProxyOps []*Event
	Steps    []*Event
	Kernels  []*Event
	Ce       []*Event
	End      float64 // µs: when the last of its kernels ended

	ops []Op
}

// Call makes one operation outside any group. The scenario's clock is at the end of the call
// afterwards, not of the kernel.
func (r *Rank) Call(op Op) *Done { return r.operate([]Op{op}, 1, 0) }

// Group makes operations in one group.
func (r *Rank) Group(ops ...Op) *Done { return r.operate(ops, 2, 0) }

// Series makes one plain call that NCCL carries out as several operations, as AlltoAll.
func (r *Rank) Series(ops ...Op) *Done { return r.operate(ops, 1, 0) }

// All lets each rank do the operations that ops gives for it, at the same time; late are delays of
// the ranks, µs. Kernels of all end together, so those who come first wait. The clock is at the end of
// the kernels afterwards.
func (s *Scenario) All(ranks []*Rank, ops func(rank int) []Op, late ...float64) []*Done {
	begin, end := s.now, s.now
	starts := make([]uint64, len(ranks))
	busy := map[*Thread]uint64{} // ranks of one thread come one after the other
	for i, r := range ranks {
		starts[i] = max(begin, busy[r.App])
		if i < len(late) {
			starts[i] += uint64(late[i] * 1000)
		}
		called := starts[i] + uint64(20+8*len(ops(i)))*s.step
		busy[r.App] = called
		for _, op := range ops(i) {
			end = max(end, called+uint64(op.filled().Kernel*1000))
		}
	}
	var all []*Done
	after := end
	for i, r := range ranks {
		s.now = starts[i]
		depth := 1
		if len(ops(i)) > 1 {
			depth = 2
		}
		all = append(all, r.operate(ops(i), depth, end))
		after = max(after, s.now)
	}
	s.now = after + 20*s.step
	return all
}

// Same gives every rank the same operations, for All.
func Same(ops ...Op) func(int) []Op { return func(int) []Op { return ops } }

// AllToAll gives each of n ranks the sends and receives by which NCCL does an all-to-all, to itself
// too. like says how large they are.
func AllToAll(n int, like Op) func(int) []Op {
	return func(int) []Op {
		var ops []Op
		for peer := range n {
			for _, name := range []string{"Send", "Recv"} {
				op := like
				op.Func, op.Peer = name, peer
				ops = append(ops, op)
			}
		}
		return ops
	}
}

// clique makes one group of operations on several communicators, or several ranks of one, from one
// thread, that of the first: GroupApi is in its context only (docs/nccl-profiler-api.md §3.2).
func clique(ranks []*Rank, ops func(i int) []Op) []*Done {
	var all []*Done
	for i := range ranks {
		d := &Done{}
		for _, op := range ops(i) {
			d.ops = append(d.ops, op.filled())
		}
		all = append(all, d)
	}
	operate(ranks, all, 2, 0)
	return all
}

// operate makes the calls of a rank's group; end is when its kernels end, 0: after the longest of the
// ops.
func (r *Rank) operate(ops []Op, depth int, end uint64) *Done {
	d := &Done{}
	for _, op := range ops {
		d.ops = append(d.ops, op.filled())
	}
	operate([]*Rank{r}, []*Done{d}, depth, end)
	return d
}

// operate makes one group of all, from the first rank's thread.
func operate(ranks []*Rank, all []*Done, depth int, end uint64) {
	s, u := ranks[0].p.s, ranks[0].App
	api := s.callsReported()
	if api {
		group := ranks[0].openGroup(depth, false)
		for i, r := range ranks {
			r.api(u, all[i], group, false)
		}
		u.State(group, descriptor.StateGroupEndApiStart, nil)
	}
	for i, r := range ranks {
		r.copies(u, all[i])
	}
	launched := make([]uint64, len(ranks))
	for i, r := range ranks {
		if all[i].visible(s) {
			launched[i] = r.launch(u, all[i])
			all[i].Group, all[i].Tasks = r.plan(u, all[i])
		}
	}
	if api {
		u.Stop(all[0].GroupApi)
	}
	for i, r := range ranks {
		if all[i].Group != nil {
			r.work(all[i], launched[i], end)
		}
	}
}

func (d *Done) visible(s *Scenario) bool {
	for i := range d.ops {
		if s.visible(&d.ops[i]) {
			return true
		}
	}
	return false
}

// openGroup starts a GroupApi.
func (r *Rank) openGroup(depth int, captured descriptor.Flag) *Event {
	group := r.App.Start(r.Context, descriptor.GroupApi{GraphCaptured: captured, GroupDepth: depth})
	r.App.State(group, descriptor.StateGroupStartApiStop, nil)
	return group
}

// api makes the API events of a group, from 2.28 on.
func (r *Rank) api(u *Thread, d *Done, group *Event, captured descriptor.Flag) {
	s := r.p.s
	d.GroupApi = group
	for i := range d.ops {
		op := &d.ops[i]
		tag := op.UserTag
		if s.minor < 31 {
			tag = 0
		}
		var api *Event
		if op.isP2P() {
			api = u.Start(r.Context, descriptor.P2pApi{Func: op.Func, Count: op.Count, Datatype: op.Datatype,
				Stream:        op.Stream,
				GraphCaptured: captured, UserTag: tag}, Under(d.GroupApi))
		} else {
			options := []Option{Under(d.GroupApi)}
			if r.last != nil {
				options = append(options, Before(r.last)) // NCCL does not clear the slot
			}
			api = u.Start(r.Context, descriptor.CollApi{Func: op.Func, Count: op.Count, Datatype: op.Datatype,
				Root:   op.Root,
				Stream: op.Stream, GraphCaptured: captured, UserTag: tag}, options...)
			r.last = api
		}
		u.Stop(api)
		d.Apis = append(d.Apis, api)
	}
}

// copies makes the events of copy-engine collectives. Source: docs/nccl-profiler-api.md §3.2.
func (r *Rank) copies(u *Thread, d *Done) {
	s := r.p.s
	if s.minor < 29 {
		return
	}
	for i := range d.ops {
		op := &d.ops[i]
		if !op.CE {
			continue
		}
		descr := descriptor.CeColl{SeqNumber: r.ceSeq, Func: op.Func, SendBuff: r.buffer(0), RecvBuff: r.buffer(1),
			Count: op.bytes(),
			Root:  op.Root, Datatype: "ncclInt8", SyncStrategy: "UC", BatchSize: uint32(r.NRanks), NumBatches: 1,
			CeSeqNum: uint32(r.ceSeq), Stream: op.Stream}
		if s.minor >= 31 {
			descr.UserTag = op.UserTag
		}
		r.ceSeq++
		coll := u.Start(r.Context, descr, Under(d.Apis[i]))
		for _, part := range []any{
			descriptor.CeSync{NRanks: r.NRanks},
			descriptor.CeBatch{NumOps: r.NRanks, TotalBytes: op.bytes()},
			descriptor.CeSync{IsComplete: true, NRanks: r.NRanks},
		} {
			e := u.Start(r.Context, part, Under(coll))
			u.Stop(e)
			d.Ce = append(d.Ce, e)
		}
		u.Stop(coll)
		d.Ce = append(d.Ce, coll)
	}
}

func (r *Rank) buffer(n uint64) descriptor.Pointer { return descriptor.Pointer(r.buffers + n<<22) }

// launch makes the kernel's launch, and says when it was.
func (r *Rank) launch(u *Thread, d *Done) uint64 {
	s := r.p.s
	at := s.now
	if s.minor >= 28 {
		var options []Option
		if d.GroupApi != nil {
			options = append(options, Under(d.GroupApi))
		}
		d.Launch = u.Start(r.Context, descriptor.KernelLaunch{Stream: d.ops[0].Stream}, options...)
		u.Stop(d.Launch)
	}
	return at
}

// plan makes Group, Coll and P2p on a thread.
func (r *Rank) plan(u *Thread, d *Done) (group *Event, tasks []*Event) {
	s := r.p.s
	group = u.Start(r.Context, descriptor.Group{})
	tasks = make([]*Event, len(d.ops))
	for _, p2p := range []bool{false, true} { // all collectives are started before all others
		for i := range d.ops {
			if op := &d.ops[i]; op.isP2P() == p2p && s.visible(op) {
				tasks[i] = r.task(u, d, i, group)
			}
		}
	}
	for _, p2p := range []bool{false, true} {
		for i := range d.ops {
			if d.ops[i].isP2P() == p2p && tasks[i] != nil {
				u.Stop(tasks[i])
			}
		}
	}
	u.Stop(group)
	return group, tasks
}

func (r *Rank) task(u *Thread, d *Done, i int, group *Event) *Event {
	s, op := r.p.s, &d.ops[i]
	options := []Option{InGroup(group)}
	switch {
	case s.callsReported():
		options = append(options, Under(d.Apis[i]))
	case s.minor < 28:
		options = []Option{Under(group)}
	}
	tag := op.UserTag
	if s.minor < 31 {
		tag = 0
	}
	if op.isP2P() {
		return u.Start(r.Context, descriptor.P2p{Func: op.Func, Buff: r.buffer(uint64(i)), Datatype: op.Datatype,
			Count: op.Count,
			Peer:  op.Peer, NChannels: op.Channels, UserTag: tag}, options...)
	}
	c := descriptor.Coll{SeqNumber: r.seq[op.Func], Func: op.Func, SendBuff: r.buffer(0), RecvBuff: r.buffer(1),
		Count: op.Count, Root: op.Root,
		Datatype: op.Datatype, NChannels: op.Channels, NWarps: 8, Algo: op.Algo, Proto: op.Proto, UserTag: tag}
	if op.Func == "AllGather" || op.Func == "Broadcast" {
		c.Count, c.Datatype = op.bytes(), "ncclInt8"
	}
	if op.Symmetric != "" {
		c.IsSymColl, c.KernelVariant, c.Proto = true, op.Symmetric, ""
		c.Algo = op.Symmetric[len(op.Func)+1:]
		if d.symmetricBefore(i) {
			c.NChannels = 0
		}
	}
	if s.minor <= 25 {
		c.TrafficBytes = 2 * op.bytes()
	}
	r.seq[op.Func]++
	return u.Start(r.Context, c, options...)
}

// Unreported makes the rank call a collective n times without NCCL reporting it: it only counts.
func (r *Rank) Unreported(function string, n uint64) { r.seq[function] += n }

// symmetricBefore says whether a symmetric operation is in front of operation i: the first has all
// KernelCh of the plan, and alone the number of channels. Source: docs/nccl-profiler-api.md §3.6.
func (d *Done) symmetricBefore(i int) bool {
	for k := range i {
		if d.ops[k].Symmetric != "" && d.ops[i].Symmetric != "" {
			return true
		}
	}
	return false
}

// Graph is a captured group of operations.
type Graph struct {
	r       *Rank
	capture *Done
}

// Capture captures a group of operations in a CUDA graph (2.28 and later).
func (r *Rank) Capture(ops ...Op) *Graph {
	d := &Done{}
	for _, op := range ops {
		d.ops = append(d.ops, op.filled())
	}
	depth := min(len(ops), 2)
	if r.p.s.minor < 28 {
		r.p.s.fail("captures are made from 2.28 on: before, nothing tells them")
		return &Graph{r, d}
	}
	r.api(r.App, d, r.openGroup(depth, true), true)
	r.App.State(d.GroupApi, descriptor.StateGroupEndApiStart, nil)
	r.launch(r.App, d)
	r.App.Stop(d.GroupApi)
	return &Graph{r, d}
}

// Captured are the events of the capture.
func (g *Graph) Captured() *Done { return g.capture }

// Replay launches the graph once: Group, Coll and P2p come again, from the driver's thread, with the
// parents of the capture.
func (g *Graph) Replay() *Done {
	d := &Done{GroupApi: g.capture.GroupApi, Apis: g.capture.Apis, Launch: g.capture.Launch, ops: g.capture.ops}
	if d.visible(g.r.p.s) && g.r.p.s.minor >= 28 {
		at := g.r.p.s.now
		d.Group, d.Tasks = g.r.plan(g.r.Driver, d)
		g.r.work(d, at, 0)
	}
	return d
}
