// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// What a made-up job leaves are raw files, as the plugin's own thread writes them where there is no collector: NCCL's
// callbacks, on clocks of hosts and GPUs that differ.

// Origins of clocks: what hosts' monotonic and real-time clocks show about when jobs begin, ns.
const (
	monotonic = 5_000_000_000_000
	since1970 = 1_795_000_000_000_000_000
)

// closing is how long after its last operation a job's communicators are finalized, ns.
const closing = 20_000_000

// hanging is for how long a job has hung when it is asked or ends, ns.
const hanging = 30_000_000_000

// clock shows ns at a time of the job.
type clock struct {
	origin int64
	drift  float64
}

func (c clock) shows(at int64) uint64 {
	return uint64(c.origin + at + int64(c.drift*float64(at)))
}

// clocks of a job's hosts and GPUs.
type clocks struct {
	hosts []clock
	real  []int64 // by how much a host's real-time clock is off, ns
	gpus  []clock
}

// clocks draws them: hosts by NTP within milliseconds, crystals that differ by some ppm, GPUs at any time.
func (j *job) clocks(random *rand.Rand) (c clocks) {
	for range (j.ranks + j.perHost - 1) / j.perHost {
		c.hosts = append(c.hosts, clock{monotonic + random.Int64N(1_000_000_000_000), 10e-6 * random.NormFloat64()})
		c.real = append(c.real, int64(2e6*random.NormFloat64()))
	}
	for range j.ranks {
		c.gpus = append(c.gpus, clock{since1970 - random.Int64N(80_000_000_000_000_000), 10e-6 * random.NormFloat64()})
	}
	return c
}

// process writes what one rank's process records.
type process struct {
	*job
	p       *played
	rank    int
	living  *os.Process // nil: it is over
	random  *rand.Rand
	host    clock
	gpu     clock
	memory  *shmtest.Job
	number  uint64
	seq     map[sequence]uint64
	indices map[int]int // of communicators, by group
	app     []shm.Record
	proxy   []shm.Record
}

type sequence struct {
	group    int
	function string
}

// record writes a job's raw files into an experiment directory; living are processes that live for its ranks, on this
// machine: nil if the job is over.
func (j *job) record(p *played, dir string, seed uint64, living []*os.Process) error {
	random := j.random(seed, 2)
	all := j.clocks(random)
	shards := filepath.Join(dir, "shards")
	if err := os.MkdirAll(shards, 0o700); err != nil {
		return err
	}
	end := p.length + 2*closing
	if p.hangs {
		end += hanging
	}
	if living != nil { // it has come to this moment
		now := shm.ReadClock(shm.ClockMonotonic)
		all.hosts[0], all.real[0] = clock{origin: int64(now.Ticks) - end}, int64(now.Real)-since1970-end
	}
	for r := range j.ranks {
		w := &process{job: j, p: p, rank: r, random: random, host: all.hosts[r/j.perHost], gpu: all.gpus[r],
			seq: make(map[sequence]uint64), indices: make(map[int]int)}
		if living != nil {
			w.living = living[r]
		}
		content, name, err := w.spool(all.real[r/j.perHost], end)
		if err == nil {
			err = os.WriteFile(filepath.Join(shards, name), content, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spool is the process's raw file.
func (w *process) spool(real, end int64) (content []byte, name string, err error) {
	tuple := func(at int64) shm.ClockTuple {
		m := w.host.shows(at)
		return shm.ClockTuple{Ticks: m, Raw: m, Mono: m, Real: uint64(since1970 + at + real)}
	}
	begin := w.p.timing.at[w.p.ranks[w.rank].first]
	w.calls()
	const most = 128 // bytes of a record
	chunks := (len(w.app)+len(w.proxy))*most/(shm.ChunkSize-shm.ChunkHead-most) + 4
	host := fmt.Sprint("node", w.rank/w.perHost)
	boot, pid, start := "boot of "+host, 1000+w.rank, uint64(1+w.rank)
	if w.living != nil {
		boot, pid = experiment.BootID(), w.living.Pid
		if start, err = shm.ProcessStart(pid); err != nil {
			return nil, "", err
		}
	}
	w.memory, err = shmtest.New(shmtest.Options{
		Chunks: chunks, Clock: shm.ClockMonotonic, PID: pid, PIDStart: start, Tag: uint16(1 + w.rank), Host: host,
		APIVersion: 6, Created: tuple(begin),
	})
	if err != nil {
		return nil, "", err
	}
	defer w.memory.Close()
	h := w.memory.Header()
	clear(h.BootID[:])
	copy(h.BootID[:], boot)
	h.Library, h.LibraryVersion = shm.LibraryNCCL, 22907
	preset := "gpu"
	if w.transferred {
		preset = "net"
	}
	h.EventMask = api.Preset(preset) & shm.KnownTypes(6)
	h.RecordMask = h.EventMask
	w.communicators(begin)
	for i, records := range [][]shm.Record{w.app, w.proxy} {
		slices.SortStableFunc(records, func(a, b shm.Record) int { return cmp.Compare(a.Ticks, b.Ticks) })
		tid := 1000*(w.rank+1) + i
		t := w.memory.Thread(w.host.shows(begin), tid, []string{"python", "NCCL Progress 0"}[i])
		t.KeepForSpool()
		for k := range records {
			if !t.Write(&records[k]) {
				return nil, "", fmt.Errorf("rank %d: %d chunks are too few", w.rank, chunks)
			}
		}
	}
	var out bytes.Buffer
	err = w.memory.Spool(&out, tuple(end))
	if err == nil && !w.p.hangs {
		err = shmtest.SpoolEnd(&out)
	}
	return out.Bytes(), w.memory.PathName(), err
}

// communicators adds those of the process, in the order of the job's.
func (w *process) communicators(begin int64) {
	var uuid [16]byte
	binary.NativeEndian.PutUint64(uuid[:], uint64(w.rank)+1)
	for g := range w.groups {
		i, ok := w.indices[g]
		if !ok {
			continue
		}
		c := &w.groups[g]
		got := w.memory.Comm(shm.Comm{
			APIVersion: 6, ID: 0xabc000 + uint64(g), NRanks: len(c.members), Rank: slices.Index(c.members, w.rank),
			NNodes: 1, Device: w.rank % w.perHost,
			InitTicks: w.host.shows(begin + int64(i)*1000), InitTID: 1000 * (w.rank + 1), Name: c.name,
		}, &uuid)
		if got != i {
			panic("communicators are numbered in their order")
		}
	}
}

// calls makes the records.
func (w *process) calls() {
	begin := w.p.timing.at[w.p.ranks[w.rank].first]
	for g := range w.groups {
		if slices.Contains(w.groups[g].members, w.rank) {
			w.indices[g] = len(w.indices)
			w.app = append(w.app, shm.Record{Ticks: w.host.shows(begin + int64(w.indices[g])*1000),
				Kind: shm.RecordInit, Aux: uint32(w.indices[g])})
		}
	}
	for _, c := range w.p.ranks[w.rank].calls {
		w.call(&c)
	}
	if w.p.hangs {
		return
	}
	at := w.p.length + closing
	for g := range w.groups {
		if i, ok := w.indices[g]; ok {
			w.app = append(w.app, shm.Record{Ticks: w.host.shows(at + int64(i)*1000), Kind: shm.RecordFinalize,
				Aux: uint32(i)})
		}
	}
}

// handle makes an event's.
func (w *process) handle(t shm.EventType) uint64 {
	w.number++
	return uint64(1+w.rank)<<shm.TagShift | uint64(t)<<shm.TypeShift | w.number
}

// part is what a rank does in an operation: one of its collectives, or a message or two.
type part struct {
	function string // as NCCL names it
	peer     int    // rank in the communicator, of messages
	handle   uint64
}

// parts of a member's call.
func (w *process) parts(o *operation) []part {
	g := &w.groups[o.group]
	own := slices.Index(g.members, w.rank)
	n := len(g.members)
	switch {
	case o.function == shiftName:
		return []part{{function: "Send", peer: (own + 1) % n}, {function: "Recv", peer: (own + n - 1) % n}}
	case o.function == exchangeName:
		var all []part
		for d := 1; d < n; d++ {
			all = append(all, part{function: "Send", peer: (own + d) % n},
				part{function: "Recv", peer: (own + n - d) % n})
		}
		return all
	case o.function == messageName && o.members[0] == w.rank:
		return []part{{function: "Send", peer: slices.Index(g.members, o.members[1])}}
	case o.function == messageName:
		return []part{{function: "Recv", peer: slices.Index(g.members, o.members[0])}}
	}
	return []part{{function: o.function, peer: -1}}
}

// call makes the records of a member's call and of what follows it on the GPU.
func (w *process) call(c *callTimes) {
	at := w.p.timing.at
	if at[c.began] == never || at[c.returned] == never {
		return
	}
	o := &w.operations[c.op]
	comm := uint32(w.indices[o.group])
	span := at[c.returned] - at[c.began]
	app := func(percent int64, r shm.Record) uint64 {
		r.Ticks = w.host.shows(at[c.began] + span*percent/100)
		if r.Kind == shm.RecordStart {
			r.Aux, r.Handle = comm, w.handle(r.Type)
		} else {
			r.Type = shm.TypeOf(r.Handle)
		}
		w.app = append(w.app, r)
		return r.Handle
	}
	stop := func(percent int64, handle uint64) { app(percent, shm.Record{Kind: shm.RecordStop, Handle: handle}) }
	parts := w.parts(o)
	depth := int32(1)
	if len(parts) > 1 {
		depth = 2
	}
	count := o.count
	if other, ok := o.other[w.rank]; ok {
		count = other
	}
	stream := uint64(0x7000_0000_0000 + 0x1000*c.stream)
	group := app(0, shm.Record{Kind: shm.RecordStart, Type: shm.EventGroupApi, GroupDepth: depth})
	app(5, shm.Record{Kind: shm.RecordState, Handle: group, Aux: stateGroupStartApiStop})
	var asked []uint64
	for i := range parts {
		typ := shm.EventCollApi
		if parts[i].peer >= 0 {
			typ = shm.EventP2pApi
		}
		e := app(8, shm.Record{Kind: shm.RecordStart, Type: typ, Arg: group, Func: parts[i].function, Count: count,
			Datatype: "ncclFloat32", Root: int32(o.root), Stream: stream})
		stop(14, e)
		asked = append(asked, e)
	}
	app(16, shm.Record{Kind: shm.RecordState, Handle: group, Aux: stateGroupEndApiStart})
	launch := app(50, shm.Record{Kind: shm.RecordStart, Type: shm.EventKernelLaunch, Arg: group, Stream: stream})
	stop(60, launch)
	plan := app(65, shm.Record{Kind: shm.RecordStart, Type: shm.EventGroup})
	for i := range parts {
		parts[i].handle = app(70, w.task(o, &parts[i], count, asked[i], plan))
	}
	for i := range parts {
		stop(85, parts[i].handle)
	}
	stop(88, plan)
	stop(95, group)
	if at[c.start] != never {
		w.kernels(c, o, parts)
	}
}

// task is the record of a Coll or P2p.
func (w *process) task(o *operation, p *part, count, call, plan uint64) shm.Record {
	own := int32(slices.Index(w.groups[o.group].members, w.rank))
	if p.peer >= 0 {
		return shm.Record{Kind: shm.RecordStart, Type: shm.EventP2p, Arg: call, ParentGroup: plan, Func: p.function,
			Count: count, Datatype: "ncclFloat32", Peer: int32(p.peer), NChannels: 1, Rank: own,
			SendBuff: 0x7f20_0000_0000}
	}
	key := sequence{o.group, o.function}
	r := shm.Record{
		Kind: shm.RecordStart, Type: shm.EventColl, Arg: call, ParentGroup: plan, Func: o.function, Count: count,
		Datatype: "ncclFloat32", Root: int32(o.root), Rank: own,
		Seq: w.seq[key], Algo: "RING", Proto: "SIMPLE", NChannels: 1, NWarps: 16, SendBuff: 0x7f20_0000_0000,
		RecvBuff: 0x7f21_0000_0000,
	}
	w.seq[key]++
	if o.function == "AllGather" { // NCCL counts its bytes
		r.Count, r.Datatype = 4*count, "ncclInt8"
	}
	return r
}

// States of NCCL's profiler API by name.
var (
	stateGroupStartApiStop = state("GroupStartApiStop")
	stateGroupEndApiStart  = state("GroupEndApiStart")
	stateKernelChStop      = state("KernelChStop")
	stateInProgress        = state("ProxyOpInProgress")
	stateSendGPUWait       = state("ProxyStepSendGPUWait")
	stateSendPeerWait      = state("ProxyStepSendPeerWait")
	stateSendWait          = state("ProxyStepSendWait")
	stateRecvWait          = state("ProxyStepRecvWait")
	stateRecvFlushWait     = state("ProxyStepRecvFlushWait")
	stateRecvGPUWait       = state("ProxyStepRecvGPUWait")
)

func state(name string) uint32 {
	for s := range uint32(shm.StateCount) {
		if api.StateName(s) == name {
			return s
		}
	}
	panic("there is no state " + name)
}

// late is how long after the fact NCCL's progress thread reports something.
func (w *process) late() int64 {
	d := 700 + int64(4000*w.random.ExpFloat64())
	if w.random.Float64() < 0.01 {
		d += int64(100_000 * w.random.ExpFloat64())
	}
	return d
}

// event adds a record of the progress thread.
func (w *process) event(at int64, r shm.Record) uint64 {
	r.Ticks = w.host.shows(at)
	if r.Kind != shm.RecordStart {
		r.Type = shm.TypeOf(r.Handle)
	} else if r.Handle == 0 {
		r.Handle = w.handle(r.Type)
	}
	w.proxy = append(w.proxy, r)
	return r.Handle
}

// kernels makes the records of an operation's kernel, and of its transfers.
func (w *process) kernels(c *callTimes, o *operation, parts []part) {
	at := w.p.timing.at
	comm := uint32(w.indices[o.group])
	stamp := func(t int64) uint64 { return w.gpu.shows(t) &^ 31 }
	began := max(at[c.start], at[c.returned]) + w.late()
	ended := never
	if at[c.end] != never {
		ended = max(began+100, at[c.end]+w.late())
	}
	for i := range parts {
		k := w.event(began, shm.Record{Kind: shm.RecordStart, Type: shm.EventKernelCh, Aux: comm, Arg: parts[i].handle,
			PTimer: stamp(at[c.start])})
		if ended != never {
			w.event(ended, shm.Record{Kind: shm.RecordState, Handle: k, Aux: stateKernelChStop, Flags: shm.FlagHasArg,
				Arg: stamp(at[c.end])})
			w.event(ended+20, shm.Record{Kind: shm.RecordStop, Handle: k})
		}
	}
	if hops := w.p.hops[c.op]; hops != nil && w.transferred {
		w.transfers(c, o, parts[0].handle, hops)
	}
}

// buffers is how many transfers of a connection NCCL has begun at once, at most (NCCL_STEPS): a later one begins when
// an earlier one is over.
const buffers = 8

// transfers makes the records of what a member's proxy sends and receives.
func (w *process) transfers(c *callTimes, o *operation, parent uint64, hops []hop) {
	at := w.p.timing.at
	comm := uint32(w.indices[o.group])
	n := len(o.members)
	own := slices.Index(o.members, w.rank)
	bytes := int32(max(4, 4*o.count/uint64(n)))
	begin := at[c.returned] + 2000
	for _, send := range []bool{false, true} {
		from, peer, flags := (own+n-1)%n, (own+n-1)%n, shm.RecordFlags(0)
		if send {
			from, peer, flags = own, (own+1)%n, shm.FlagSend
		}
		op := w.event(begin, shm.Record{
			Kind: shm.RecordStart, Type: shm.EventProxyOp, Aux: comm, Arg: parent, Rank: int32(own), Peer: int32(peer),
			NSteps: int32(o.hops), ChunkSize: bytes,
			PID: int32(1000 + w.rank), Flags: flags,
		})
		w.event(begin+500, shm.Record{Kind: shm.RecordState, Handle: op, Aux: stateInProgress})
		last := begin + 1000
		ends := make([]int64, o.hops)
		for h := range o.hops {
			x := &hops[from*o.hops+h]
			start := max(begin+1000+int64(h)*100, at[c.start]) + 500
			if h >= buffers {
				start = max(start, ends[h-buffers])
			}
			e := w.event(start, shm.Record{Kind: shm.RecordStart, Type: shm.EventProxyStep, Aux: comm, Arg: op,
				Step: int32(h), Rank: int32(own)})
			moment := start
			enter := func(t int64, state uint32, sized bool) {
				moment = max(moment+200, t)
				r := shm.Record{Kind: shm.RecordState, Handle: e, Aux: state, Flags: shm.FlagHasArg}
				if sized {
					r.Arg = uint64(bytes)
				}
				w.event(moment, r)
			}
			if send {
				enter(start, stateSendGPUWait, false)
				enter(x.ready, stateSendPeerWait, false)
				enter(x.sent, stateSendWait, true)
				moment = max(moment+200, x.done)
			} else {
				enter(start, stateRecvWait, false)
				enter(x.done, stateRecvFlushWait, true)
				enter(x.done, stateRecvGPUWait, false)
				moment = max(moment+200, w.taken(c, o, hops, h))
			}
			ends[h] = moment + 300
			w.event(ends[h], shm.Record{Kind: shm.RecordStop, Handle: e})
			last = max(last, moment)
		}
		w.event(max(last, at[c.end])+1000, shm.Record{Kind: shm.RecordStop, Handle: op})
	}
}

// taken is when a member's GPU has taken what came with a hop: when it hands it on, or has done with the last one as it
// ends.
func (w *process) taken(c *callTimes, o *operation, hops []hop, h int) int64 {
	n := len(o.members)
	own := slices.Index(o.members, w.rank)
	done := hops[(own+n-1)%n*o.hops+h].done
	if h+1 < o.hops {
		return max(done, hops[own*o.hops+h+1].ready)
	}
	return done + w.p.timing.at[c.end] - max(done, hops[own*o.hops+h].done)
}
