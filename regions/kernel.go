// SPDX-License-Identifier: Apache-2.0

package regions

import "ncclotf2/plugin/shm"

// kernel is an open KernelCh event: one channel's share of an operation on the GPU.
type kernel struct {
	op      *operation
	channel uint8
	begin   uint64 // the GPU's stamp
	end     uint64
	stamped bool // end is known
}

func (m *Model) startKernel(_ *thread, t uint64, r *shm.Record) {
	comm := m.comm(r.Aux)
	op := m.operations[r.Arg]
	if op == nil {
		m.oddity(OddLateChild)
		// The pair is still good for the clock.
		if comm != nil {
			comm.gpu.addStamp(r.PTimer, t)
		}
		m.kernels[r.Handle] = &kernel{channel: r.Channel, begin: r.PTimer}
		return
	}
	op.plan.comm.gpu.addStamp(r.PTimer, t)
	op.plan.comm.kernelsSeen = true
	op.plan.kernelsOpen++
	op.plan.lastReport = max(op.plan.lastReport, t)
	m.kernels[r.Handle] = &kernel{op: op, channel: r.Channel, begin: r.PTimer}
}

func (m *Model) stateKernel(_ *thread, t uint64, r *shm.Record) {
	k := m.kernels[r.Handle]
	if k == nil {
		m.oddity(OddStrayState)
		return
	}
	if r.Flags&shm.FlagHasArg == 0 || k.stamped {
		return
	}
	k.end, k.stamped = r.Arg, true
	if k.op != nil {
		k.op.plan.comm.gpu.addStamp(r.Arg, t)
	}
}

func (m *Model) stopKernel(_ *thread, t uint64, r *shm.Record) {
	k := m.kernels[r.Handle]
	if k == nil {
		m.oddity(OddStrayStop)
		return
	}
	delete(m.kernels, r.Handle)
	if k.op == nil {
		return
	}
	p := k.op.plan
	p.kernelsOpen--
	p.lastReport = max(p.lastReport, t)
	k.op.kernelsDone++
	if !k.stamped {
		p.unstamped++
		return
	}
	p.spans = append(p.spans, channelSpan{k.channel, k.begin, k.end})
	m.progress(p, t)
}

// addStamp is add for stamps that may be missing: NCCL hands out 0 when it never read one.
func (k *gpuClock) addStamp(g, c uint64) {
	if g != 0 {
		k.add(g, c)
	}
}
