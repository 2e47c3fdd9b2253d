// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
)

// work makes what happens after the launch, on the progress thread (and from 2.31 on the profiler's):
// proxies and kernels from a little after begin to end (0: as long as the longest op).
// The scenario's clock stays.
func (r *Rank) work(d *Done, begin, end uint64) {
	s := r.p.s
	back, step := s.now, s.step
	defer func() { s.now, s.step = back, step }()
	first := back + s.step // after Coll and P2p, whose handles it needs
	if end == 0 {
		for i := range d.ops {
			end = max(end, begin+uint64(d.ops[i].Kernel*1000))
		}
	}
	end = max(end, first+uint64(50)*s.step)
	s.step = 0

	ops := 0
	for i := range d.ops {
		if d.Tasks[i] != nil && r.networked(&d.ops[i]) {
			ops += r.network(d, i, first, end)
		}
	}
	if ops > 0 {
		r.appendOps(first, ops)
	}
	for i := range d.ops {
		if d.Tasks[i] != nil {
			r.kernels(d, i, begin, first, end)
		}
	}
	d.End = float64(end-startRaw) / 1000
}

// networked: sends and receives to oneself have no proxies.
func (r *Rank) networked(op *Op) bool {
	return op.Steps > 0 && !(op.isP2P() && op.Peer == r.Rank)
}

// appendOps is the progress thread's waking up and taking over of operations. It starts ProxyOps within.
func (r *Rank) appendOps(at uint64, ops int) {
	s, p := r.p.s, r.Progress
	for i, st := range []struct {
		state descriptor.State
		again bool
	}{{descriptor.StateProxyCtrlSleep, false}, {descriptor.StateProxyCtrlAppend, true}} {
		s.now = at + uint64(i)*200
		// NCCL passes an uninitialized slot.
		e := p.Start(r.Context, descriptor.ProxyCtrl{}, Before(Raw(0x7fc900000003)))
		s.now += 50
		p.State(e, st.state, Appended(0))
		if st.again {
			s.now = at + 900
			p.State(e, descriptor.StateProxyCtrlAppendEnd, Appended(int64(ops)))
		} else {
			s.now += 50
			p.State(e, descriptor.StateProxyCtrlWakeup, Appended(0))
		}
		s.now += 50
		p.Stop(e)
	}
}

// network makes the ProxyOps and ProxySteps of one operation, and says how many ops there are.
func (r *Rank) network(d *Done, i int, begin, end uint64) int {
	op := &d.ops[i]
	n := 0
	for channel := range op.Channels {
		for _, send := range []bool{false, true} {
			if op.isP2P() && send != (op.Func == "Send") {
				continue
			}
			r.proxyOp(d, i, channel, send, begin+500+uint64(n)*20, end)
			n++
		}
	}
	return n
}

// direction has the states of a ProxyOp and its steps.
type direction struct {
	op    []descriptor.State // up to 2.26, in order: the last is at the op's end
	steps []descriptor.State // after the start, in order
	sized descriptor.State   // of the steps: the one whose transSize is the step's own
}

var directions = map[bool]direction{
	true: {
		[]descriptor.State{descriptor.StateProxyOpSendPosted, descriptor.StateProxyOpSendRemFifoWait,
			descriptor.StateProxyOpSendTransmitted, descriptor.StateProxyOpSendDone},
		[]descriptor.State{descriptor.StateProxyStepSendGPUWait, descriptor.StateProxyStepSendPeerWait,
			descriptor.StateProxyStepSendWait},
		descriptor.StateProxyStepSendWait,
	},
	false: {
		[]descriptor.State{descriptor.StateProxyOpRecvPosted, descriptor.StateProxyOpRecvReceived,
			descriptor.StateProxyOpRecvTransmitted, descriptor.StateProxyOpRecvDone},
		[]descriptor.State{descriptor.StateProxyStepRecvWait, descriptor.StateProxyStepRecvFlushWait,
			descriptor.StateProxyStepRecvGPUWait},
		descriptor.StateProxyStepRecvFlushWait,
	},
}

// proxyOp makes one ProxyOp with its steps, from begin to end; at most eight steps are open at once.
func (r *Rank) proxyOp(d *Done, i, channel int, send bool, begin, end uint64) {
	s, op := r.p.s, &d.ops[i]
	p := r.Progress
	context, parent := Ref(r.Context), Ref(d.Tasks[i])
	options := []Option{Under(parent)}
	if op.Via != nil && send {
		p, context = op.Via.Progress, r.Context.Publish()
		options = []Option{Under(d.Tasks[i].Publish()), pidOf(r.Context.Publish()), WithRank(r.Rank)}
	}
	peer := op.Peer
	if !op.isP2P() {
		peer = (r.Rank + 1) % r.NRanks
		if !send {
			peer = (r.Rank + r.NRanks - 1) % r.NRanks
		}
	}
	way := directions[send]
	old := s.minor <= 26
	s.now = begin
	e := p.Start(context, descriptor.ProxyOp{ChannelID: channel, Peer: peer, NSteps: op.Steps, ChunkSize: int(op.StepBytes),
		IsSend: descriptor.Flag(send)}, options...)
	d.ProxyOps = append(d.ProxyOps, e)
	s.now = begin + 1000
	if old {
		p.State(e, way.op[0], OpSteps(0, 0))
	} else {
		p.State(e, descriptor.StateProxyOpInProgress, new(replay.Args))
	}
	span := (end - begin - 2000) / uint64(op.Steps+1)
	for step := range op.Steps {
		at := begin + 2000 + uint64(step)*span
		s.now = at
		stepOptions := []Option{Under(e)}
		if op.Via != nil && send {
			stepOptions = append(stepOptions, WithRank(r.Rank))
		}
		st := p.Start(context, descriptor.ProxyStep{Step: step}, stepOptions...)
		d.Steps = append(d.Steps, st)
		for k, state := range way.steps {
			if old && state == descriptor.StateProxyStepSendPeerWait {
				continue
			}
			s.now = at + uint64(k+1)*span/5
			size := uint64(0)
			if state == way.sized {
				size = op.StepBytes
			}
			if old {
				p.State(st, state, nil)
			} else {
				p.State(st, state, TransSize(size))
			}
			if state == way.sized && op.Net != 0 && s.minor >= 26 {
				r.netPlugin(p, context, op, st, send, channel, span/10)
			}
		}
		if old && step < op.Steps {
			s.now = at + 4*span/5
			p.State(e, way.op[1], OpSteps(uint64(step+1)*op.StepBytes, step+1))
			p.State(e, way.op[2], OpSteps(uint64(step+1)*op.StepBytes, step+1))
		}
		if op.Open && step == op.Steps-1 {
			return
		}
		s.now = at + span*9/10
		p.Stop(st)
	}
	s.now = end - 500
	if old {
		p.State(e, way.op[3], OpSteps(uint64(op.Steps)*op.StepBytes, op.Steps))
	}
	s.now = end + 3000
	p.Stop(e)
}

// netPlugin makes one event of a network plugin below a step.
func (r *Rank) netPlugin(p *Thread, context Ref, op *Op, step *Event, send bool, channel int, span uint64) {
	s := r.p.s
	descr := descriptor.NetPlugin{ID: op.Net}
	direction := 1
	if send {
		direction = 0
	}
	switch op.Net {
	case NetSocket:
		descr.Data, descr.Sock = 0x7fc9bd79df00,
			&descriptor.Sock{Type: 1, FD: 34 + channel, Op: direction, Length: op.StepBytes}
	case NetIB:
		descr.Data, descr.IB = 0x7fc9bd79df00, &descriptor.IB{Type: 1, Device: 0, WrID: uint64(step.number),
			Opcode: 4 * (1 - direction), QPNum: 100 + channel, Length: op.StepBytes}
	default:
		descr.Data = 0x7fc9bd79df00 // the host has a page there that cannot be read
	}
	e := p.Start(context, descr, Under(step))
	if descr.Sock == nil && descr.IB == nil && s.minor >= 27 {
		s.now += span / 2
		data := descr.Data
		p.State(e, descriptor.StateNetPluginUpdate, &replay.Args{Data: &data})
	}
	s.now += span / 2
	p.Stop(e)
}

// phases of symmetric kernels. Source: docs/nccl-profiler-api.md §3.2.
var phases = []string{"initial_sync", "compute", "final_sync"}

// kernels makes the KernelCh of one operation, from 2.26 on, and the KernelPhase of symmetric ones.
func (r *Rank) kernels(d *Done, i int, begin, first, end uint64) {
	s, op := r.p.s, &d.ops[i]
	if s.minor < 26 || op.NoKernel || op.isP2P() && op.Peer == r.Rank || d.symmetricBefore(i) {
		return
	}
	t := r.Progress
	if s.minor >= 31 {
		t = r.Profiler
	}
	gpu := func(at uint64) uint64 { return (at + r.p.gpu) &^ 31 }
	for channel := range op.Channels {
		from, to := begin+2000+uint64(channel)*64, end+uint64(channel)*64
		descr := descriptor.KernelCh{ChannelID: channel}
		if s.minor >= 27 {
			descr.PTimer = gpu(from)
		}
		s.now = first + 1200 + uint64(channel)*30
		e := t.Start(r.Context, descr, Under(d.Tasks[i]))
		d.Kernels = append(d.Kernels, e)
		if op.Open {
			continue
		}
		s.now = to + 1500
		if op.Symmetric != "" {
			for k, name := range phases {
				part := (to - from) / uint64(len(phases))
				ph := t.Start(r.Context, descriptor.KernelPhase{ChannelID: channel, PhaseID: k, PhaseName: name,
					PTimer: gpu(from + uint64(k)*part)}, Under(e))
				t.State(ph, descriptor.StateKernelPhaseStop, PTimer(gpu(from+uint64(k+1)*part)))
				t.Stop(ph)
			}
		}
		if s.minor >= 27 {
			t.State(e, descriptor.StateKernelChStop, PTimer(gpu(to)))
		}
		s.now += 10
		t.Stop(e)
	}
}
