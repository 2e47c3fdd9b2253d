// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// proxyOp begins the network traffic of an operation with a peer.
func (s *scene) proxyOp(us uint64, name, parent string, send bool, peer int32) {
	r := shm.Record{Peer: peer, Channel: 3, PID: 7, Rank: 1}
	if send {
		r.Flags = shm.FlagSend
	}
	s.start(1, us, shm.EventProxyOp, name, parent, r)
}

func (s *scene) step(us uint64, name, op string, number int32) {
	s.start(1, us, shm.EventProxyStep, name, op, shm.Record{Step: number})
}

// States of ProxyStep and ProxyCtrl.
const (
	sendGPUWait, sendWait, recvWait, recvFlushWait, recvGPUWait, sendPeerWait = 8, 9, 10, 11, 12, 20
	ctrlIdleState, ctrlActiveState, ctrlSleepState, ctrlAppendState           = 13, 14, 15, 17
)

// state gives a state; with a value, that is its argument.
func (s *scene) state(us uint64, typ shm.EventType, name string, state uint32, value ...uint64) {
	r := shm.Record{Kind: shm.RecordState, Type: typ, Handle: s.id(name), Aux: state}
	if len(value) > 0 {
		r.Arg, r.Flags = value[0], shm.FlagHasArg
	}
	s.give(1, us, r)
}

func (s *scene) stepState(us uint64, name string, state uint32, value ...uint64) {
	s.state(us, shm.EventProxyStep, name, state, value...)
}

// transfers is an AllReduce on the network: two steps that are sent, with a peer that is waited for, and one that is
// received.
func (s *scene) transfers() {
	s.allReduce(100, "a")
	s.proxyOp(120, "op", "a", true, 2)
	s.step(121, "s0", "op", 0)
	s.stepState(122, "s0", sendGPUWait)
	s.step(123, "s1", "op", 1)
	s.stepState(124, "s1", sendGPUWait)
	s.stepState(130, "s0", sendPeerWait)
	s.stepState(131, "s0", sendPeerWait) // tried again
	s.stepState(140, "s0", sendWait, 1000)
	s.stepState(142, "s1", sendPeerWait)
	s.stepState(145, "s1", sendWait, 500)
	s.stop(1, 150, shm.EventProxyStep, "s1") // the network may finish them in any order
	s.stop(1, 160, shm.EventProxyStep, "s0")
	s.proxyOp(161, "in", "a", false, 0)
	s.step(162, "r0", "in", 0)
	s.stepState(163, "r0", recvWait, 77)
	s.stepState(170, "r0", recvFlushWait, 300)
	s.stepState(171, "r0", recvGPUWait)
	s.stop(1, 175, shm.EventProxyStep, "r0")
	s.stop(1, 176, shm.EventProxyOp, "in")
	s.stop(1, 176, shm.EventProxyOp, "op")
	s.kernel(120, 180, "a")
}

func TestPhasesFollowTheOldestStep(t *testing.T) {
	s := newScene(t, 4)
	s.transfers()
	s.golden()
}

// Receives are started once for each attempt to post them, and only the last start is ever stopped.
func TestRepeatedReceiveIsOneStep(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.proxyOp(120, "in", "a", false, 0)
	s.step(121, "try 1", "in", 0)
	s.step(122, "try 2", "in", 0)
	s.step(123, "try 3", "in", 0)
	s.stepState(124, "try 3", recvWait)
	s.stepState(130, "try 3", recvFlushWait, 0) // empty slices are common
	s.stop(1, 131, shm.EventProxyStep, "try 3")
	s.stop(1, 132, shm.EventProxyOp, "in")
	s.kernel(120, 180, "a")
	s.golden()
}

// NCCL 2.24 to 2.26 stop one step of a batch of receives only; a later step says that they are over, because no
// more than NCCL_STEPS are under way.
func TestStepsThatAreNeverStoppedDoNotStay(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.proxyOp(120, "in", "a", false, 0)
	s.step(121, "r0", "in", 0)
	s.stepState(122, "r0", recvWait)
	s.step(130, "r8", "in", 8)
	s.stepState(131, "r8", recvWait)
	s.stop(1, 140, shm.EventProxyOp, "in")
	s.kernel(120, 180, "a")
	s.golden()
}

// After an abort nothing is stopped: open transfers end with the communicator.
func TestAbortClosesTransfers(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.proxyOp(120, "op", "a", true, 2)
	s.step(121, "s0", "op", 0)
	s.stepState(122, "s0", sendGPUWait)
	s.stepState(130, "s0", sendWait, 1000)
	s.m.Snapshot()
	p := s.p.Pending
	testkit.Check(t, len(p) == 1 && p[0].LastNet == "Send network" && p[0].State == "running", "pending: %+v", p)
	s.give(0, 200, shm.Record{Kind: shm.RecordFinalize})
	s.step(210, "late", "op", 1)
	s.golden()
	expectCount(t, "events are still kept", len(s.m.net.steps)+len(s.m.net.proxies), 0)
}

// The operations of CollNet and of the memcpy proxies have ProxyOps without any state, steps or end.
func TestSilentProxyOpsHoldNothing(t *testing.T) {
	s := newSceneWith(t, 4, 0, &Options{RecordMask: 1 << shm.EventProxyOp}) // no kernels to wait for
	for i := range uint64(3) {
		name := fmt.Sprint("op ", i)
		s.allReduce(1000*i+100, name)
		s.proxyOp(1000*i+120, "proxy of "+name, name, false, 0)
	}
	s.passTo(3_000_000)
	expectCount(t, "operations wait", len(s.m.ranks.all[0].queue.plans), 0)
	got := s.lines(description.KindNetRecv)
	testkit.Check(t, got == nil, "a row for nothing: %q", got)
	for range maxProxyOps + 10 {
		s.proxyOp(3_000_001, fmt.Sprint("more ", len(s.handle)), "", false, 0)
	}
	n := len(s.m.net.proxies)
	testkit.Check(t, n <= maxProxyOps, "%d ProxyOps are kept", n)
}

// Without kernel events, the network says when an operation ran.
func TestNetworkTiming(t *testing.T) {
	s := newSceneWith(t, 4, 0, &Options{RecordMask: 1<<shm.EventProxyOp | 1<<shm.EventProxyStep})
	for i := range uint64(2) {
		us, name := 1000*i+100, fmt.Sprint("a", i)
		s.allReduce(us, name)
		s.proxyOp(us+20, "op of "+name, name, true, 2)
		s.step(us+21, "s of "+name, "op of "+name, 0)
		s.stepState(us+30, "s of "+name, sendWait, 100)
		s.stop(1, us+40, shm.EventProxyStep, "s of "+name)
		s.stop(1, us+50, shm.EventProxyOp, "op of "+name)
		if i == 1 { // another channel begins when the first has ended
			s.proxyOp(us+60, "late op", name, true, 2)
			s.state(us+61, shm.EventProxyOp, "late op", 19)
			s.stop(1, us+70, shm.EventProxyOp, "late op")
		}
	}
	s.golden()
}

// Up to NCCL 2.26 the sizes stand in ProxyOp's states; one put stands for all transfers of an operation.
func TestSizesOfOldReleases(t *testing.T) {
	s := newSceneWith(t, 0, 3, &Options{RecordMask: 0xff}) // nor do they tell the communicator's size
	s.proxyOp(120, "op", "", true, 2)
	s.state(121, shm.EventProxyOp, "op", 0, 0)
	s.step(121, "s0", "op", 0)
	s.stepState(122, "s0", sendWait)
	s.state(130, shm.EventProxyOp, "op", 2, 700)
	s.stop(1, 135, shm.EventProxyStep, "s0")
	s.state(140, shm.EventProxyOp, "op", 3, 1400)
	s.stop(1, 141, shm.EventProxyOp, "op")
	s.proxyOp(150, "unsized", "", true, 2)
	s.step(151, "s1", "unsized", 0)
	s.stepState(152, "s1", sendWait)
	s.stop(1, 153, shm.EventProxyStep, "s1")
	s.stop(1, 154, shm.EventProxyOp, "unsized")
	s.golden()
}

// With PXN another process's sends are carried out here. Its context and operation are values of its own.
func TestForeignTransfersHaveTheirOwnRow(t *testing.T) {
	s := newScene(t, 4)
	const context = 0x2222_fc00_0000_0005 // tag, TypeMask, ContextBit, index 5
	foreign := func(us uint64, typ shm.EventType, name string, parent uint64, r shm.Record) {
		r.Kind, r.Type, r.Handle, r.Arg, r.Aux, r.Context = shm.RecordStart, typ, s.id(name), parent, shm.None, context
		s.give(1, us, r)
	}
	foreign(100, shm.EventProxyOp, "op", 0x2222_1000_0000_0042,
		shm.Record{Flags: shm.FlagSend, Peer: 6, PID: 99, Rank: 3})
	foreign(101, shm.EventProxyStep, "s0", s.id("op"), shm.Record{Rank: 3})
	s.stepState(102, "s0", sendGPUWait)
	s.stepState(110, "s0", sendWait, 64)
	s.stop(1, 120, shm.EventProxyStep, "s0")
	s.stop(1, 121, shm.EventProxyOp, "op")
	// none, stale of this process, a pointer
	for _, wrong := range []uint64{0, 0x1111_f800_0000_0001, 0x7fff_dead_beef} {
		s.give(1, 130, shm.Record{Kind: shm.RecordStart, Type: shm.EventProxyOp, Handle: s.id(fmt.Sprint(wrong)),
			Aux: shm.None, Context: wrong})
	}
	s.golden()
}

func (s *scene) ctrl(from, to uint64, name string, state uint32) {
	s.start(1, from, shm.EventProxyCtrl, name, "", shm.Record{})
	s.state(from, shm.EventProxyCtrl, name, state)
	if state == ctrlAppendState {
		s.state(to, shm.EventProxyCtrl, name, stateAppendEnd, 2)
	}
	s.stop(1, to, shm.EventProxyCtrl, name)
}

// Sleeping and appending take time; idle and active are instants at each turn of the proxy's loop, and
// become one region for each run.
func TestProxyCtrl(t *testing.T) {
	s := newScene(t, 4)
	s.ctrl(10, 20, "sleep", ctrlSleepState)
	s.ctrl(21, 24, "append", ctrlAppendState)
	for i := range uint64(4) {
		s.ctrl(30+i, 30+i, fmt.Sprint("idle", i), ctrlIdleState)
	}
	s.ctrl(36, 36, "active", ctrlActiveState)
	s.proxyOp(40, "op", "", true, 2)
	s.step(41, "s0", "op", 0)
	s.stepState(42, "s0", sendGPUWait)
	for i := range uint64(4) {
		s.ctrl(43+i, 43+i, fmt.Sprint("active", i), ctrlActiveState)
	}
	s.ctrl(50, 55, "inside", ctrlAppendState)
	s.stop(1, 60, shm.EventProxyStep, "s0")
	s.start(1, 70, shm.EventProxyCtrl, "last", "", shm.Record{})
	s.state(70, shm.EventProxyCtrl, "last", ctrlSleepState)
	s.passTo(90)
	s.golden()
}

// A run of instants is not kept for ever.
func TestPollsAreWrittenInTime(t *testing.T) {
	s := newScene(t, 4)
	s.ctrl(10, 10, "idle", ctrlIdleState)
	s.ctrl(11, 11, "idle 2", ctrlIdleState)
	expectCount(t, "events at once", s.m.ranks.all[0].net.send.loc.w.Events(), 0)
	s.passTo(2_000_000)
	expectCount(t, "events after 2 s", s.m.ranks.all[0].net.send.loc.w.Events(), 2)
}

// Network plugins' events are counted; InfiniBand reports the queue pair, and stops its events twice.
func TestNetPluginIsCounted(t *testing.T) {
	s := newScene(t, 4)
	s.proxyOp(40, "op", "", true, 2)
	s.step(41, "s0", "op", 0)
	s.stepState(42, "s0", sendGPUWait)
	s.start(1, 43, shm.EventNetPlugin, "ib", "s0",
		shm.Record{NetID: 0x10001, Length: 512, QP: 17, Flags: shm.FlagKnownNet})
	s.stepState(44, "s0", sendWait, 512)
	s.stop(1, 50, shm.EventNetPlugin, "ib")
	s.stop(1, 51, shm.EventNetPlugin, "ib")
	s.stop(1, 52, shm.EventProxyStep, "s0")
	s.start(1, 60, shm.EventNetPlugin, "sock", "s0", shm.Record{NetID: 0x20001, Length: 100, Flags: shm.FlagKnownNet})
	s.stop(1, 61, shm.EventNetPlugin, "sock")
	s.start(1, 62, shm.EventNetPlugin, "other", "s0", shm.Record{NetID: 0x50001})
	s.golden()
}

func TestTransfersThatCannotBePlaced(t *testing.T) {
	s := newScene(t, 4)
	s.proxyOp(40, "op", "", true, 9) // there is no rank 9
	s.step(41, "s0", "op", 0)
	s.stepState(42, "s0", sendWait, 512)
	s.stop(1, 43, shm.EventProxyStep, "s0")
	s.step(51, "s1", "", 0) // its ProxyOp was refused
	s.stepState(52, "s1", sendWait, 512)
	s.stop(1, 53, shm.EventProxyStep, "s1")
	s.golden()
}

// Nothing that is never ended may add up.
func TestOpenStepsAreBounded(t *testing.T) {
	s := newScene(t, 4)
	for i := range maxSteps + 1000 {
		s.step(100, fmt.Sprint("step ", i), "", 0)
		if i%2 == 0 {
			s.stepState(100, fmt.Sprint("step ", i), sendGPUWait)
		}
	}
	n := len(s.m.net.steps)
	testkit.Check(t, n <= maxSteps, "%d steps are kept", n)
	s.lines(description.KindNetSend)
	testkit.Check(t, s.p.Counts.Oddities["FORGOTTEN_EVENTS"] == 1000, "oddities: %v", s.p.Counts.Oddities)
	expectCount(t, "steps are kept at the end", len(s.m.net.steps), 0)
}
