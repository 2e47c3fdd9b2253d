// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// The GPU had room at 124 and filled buffers at 130 and 142; data came at 171 and it had taken them at 175. The link
// was busy from 140 to 160.
func TestOperationsTellWhatTheNetworkCarried(t *testing.T) {
	s := newScene(t, 4)
	s.transfers()
	s.golden()
}

// send is a transfer that the GPU fills at one time and the network carries until another; room is there from the
// first.
func (s *scene) send(op string, step int32, room, filled, sent uint64) {
	name := fmt.Sprintf("%s %d", op, step)
	s.step(room, name, op, step)
	s.stepState(room, name, sendGPUWait)
	s.stepState(filled, name, sendPeerWait)
	s.stepState(filled, name, sendWait, 100)
	s.stop(1, sent, shm.EventProxyStep, name)
}

// receive is a transfer that comes at one time and that the GPU has taken at another.
func (s *scene) receive(op string, step int32, posted, came, taken uint64) {
	name := fmt.Sprintf("%s %d", op, step)
	s.step(posted, name, op, step)
	s.stepState(posted, name, recvWait)
	s.stepState(came, name, recvFlushWait, 100)
	s.stepState(came, name, recvGPUWait)
	s.stop(1, taken, shm.EventProxyStep, name)
}

// The end of several messages is stamped when the first is done: the network may give the GPU data after it.
func TestGPUAtWorkAfterItsEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		end  uint64
		want string
	}{
		{"after the stamp", 130, "END_IS_EARLY=1 GPU_LAST=60520"},
		{"before the stamp", 180, "END_IS_EARLY=1"},
	} {
		s := newScene(t, 4)
		s.allReduce(100, "a")
		s.m.ranks.all[0].queue.plans[0].ops[0].tuning.algo = "TREE"
		s.proxyOp(120, "from", "a", false, 2)
		s.receive("from", 0, 121, 171, 175)
		s.stop(1, 176, shm.EventProxyOp, "from")
		s.kernel(110, c.end, "a")
		s.give(0, 9_000_000, shm.Record{Kind: shm.RecordFinalize})
		lines := strings.Join(s.lines(description.KindRank, AttrEndsEarly, AttrGPULast), "\n")
		testkit.Check(t, strings.Contains(lines, " Enter AllReduce "+c.want+"\n"), "%s:\n%s", c.name, lines)
	}
}

// A GPU that waits for another rank's data is not what holds the transfers up, however long there was room for what it
// will send, and data of others to take.
func TestWaitingForDataIsNotTheGPUs(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.proxyOp(120, "to", "a", true, 2)
	s.proxyOp(120, "left", "a", false, 1)
	s.proxyOp(120, "right", "a", false, 3)
	s.step(121, "room", "to", 0)
	s.stepState(121, "room", sendGPUWait)
	s.step(121, "early", "left", 0)
	s.stepState(121, "early", recvWait)
	s.step(121, "late", "right", 0)
	s.stepState(121, "late", recvWait)
	s.stepState(130, "early", recvFlushWait, 100)
	s.stepState(130, "early", recvGPUWait)
	s.stepState(500, "late", recvFlushWait, 100)
	s.stepState(500, "late", recvGPUWait)
	s.stepState(503, "room", sendPeerWait)
	s.stepState(503, "room", sendWait, 100)
	s.stop(1, 504, shm.EventProxyStep, "early")
	s.stop(1, 504, shm.EventProxyStep, "late")
	s.stop(1, 520, shm.EventProxyStep, "room")
	for _, op := range []string{"to", "left", "right"} {
		s.stop(1, 521, shm.EventProxyOp, op)
	}
	s.kernel(110, 530, "a")
	s.golden()
}

// What waited for the kernel to begin did not wait for how the GPU works. The kernel's begin is known to half a
// microsecond.
func TestLateKernelDoesNotHoldTransfers(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.proxyOp(120, "to", "a", true, 2)
	s.send("to", 0, 121, 905, 910)
	s.stop(1, 911, shm.EventProxyOp, "to")
	s.kernel(900, 915, "a")
	s.golden()
}

// Channels run side by side; the link that was busy longest is stated.
func TestTheWorstLinkAndChannelAreStated(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.proxyOp(120, "quick", "a", true, 2)
	s.proxyOp(120, "slow", "a", true, 3)
	s.start(1, 120, shm.EventProxyOp, "other channel", "a", shm.Record{Peer: 1, Channel: 9, PID: 7, Rank: 1})
	s.receive("other channel", 0, 121, 140, 240)
	s.send("quick", 0, 121, 125, 130)
	s.send("slow", 0, 131, 140, 300)
	for _, op := range []string{"quick", "slow", "other channel"} {
		s.stop(1, 310, shm.EventProxyOp, op)
	}
	s.kernel(110, 320, "a")
	s.golden()
}

// Operations without transfers over the network state nothing about it.
func TestNothingCarriedIsNotStatedAsZero(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.kernel(110, 320, "a")
	s.golden()
}
