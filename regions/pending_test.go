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

// underWay gives what is pending, one a line, and how many operations are held.
func (s *scene) underWay() string {
	s.m.Snapshot()
	var lines []string
	for _, p := range s.p.Pending {
		line := fmt.Sprintf("%s %d %s since %d", p.Function, p.Ordinal, p.State, (p.Since-micros(0))/1000)
		if p.Begun {
			line += " begun"
		}
		if p.Left {
			line += " left"
		}
		lines = append(lines, line)
	}
	if held := s.p.Comms[0].Held; len(held) > 0 {
		lines = append(lines, fmt.Sprint("held ", held))
	}
	return strings.Join(lines, "; ")
}

func (s *scene) expectUnderWay(want string) {
	s.t.Helper()
	got := s.underWay()
	testkit.Check(s.t, got == want, "under way: %s\nwant: %s", got, want)
}

// From the call to the end: what a reader of a hang sees of operations.
func TestPendingOperations(t *testing.T) {
	s := newScene(t, 4)
	s.start(0, 90, shm.EventGroupApi, "group of a", "", shm.Record{GroupDepth: 1})
	s.start(0, 91, shm.EventCollApi, "api of a", "group of a",
		shm.Record{Func: "AllReduce", Count: 256, Datatype: "ncclFloat32"})
	s.expectUnderWay("AllReduce 0 calling since 91")
	s.stop(0, 92, shm.EventCollApi, "api of a")
	s.plan(0, 93, "plan of a", "AllReduce", "a")
	s.stop(0, 97, shm.EventGroupApi, "group of a")
	s.expectUnderWay("AllReduce 0 enqueued since 91")
	s.start(1, 121, shm.EventKernelCh, "k", "a", shm.Record{PTimer: gpu(120)})
	s.expectUnderWay("AllReduce 0 running since 91 begun")
	s.allReduce(200, "b")
	s.expectUnderWay("AllReduce 0 running since 91 begun; AllReduce 1 enqueued since 201")
	s.endKernel(300, "k", gpu(299))
	s.expectUnderWay("AllReduce 1 enqueued since 201; held map[AllReduce:1]")
	testkit.Equal(t, s.p.Comms[0].Begun, micros(207), "begun")
	s.kernel(310, 320, "b")
	s.expectUnderWay("held map[AllReduce:2]")
	s.start(0, 400, shm.EventGroupApi, "group of c", "", shm.Record{GroupDepth: 1})
	s.api(401, "api of c", "group of c", "Broadcast", 0)
	s.stop(0, 404, shm.EventGroupApi, "group of c")
	s.expectUnderWay("Broadcast 0 called since 401; held map[AllReduce:2]")
}

// A message has no peer before its operation has begun; then it is numbered for the pair.
func TestPendingMessages(t *testing.T) {
	s := newScene(t, 4)
	s.start(0, 90, shm.EventGroupApi, "group of a", "", shm.Record{GroupDepth: 1})
	s.api(91, "api of a", "group of a", "Send", 0)
	s.expectUnderWay("Send 0 calling since 91")
	s.start(0, 93, shm.EventGroup, "plan", "", shm.Record{})
	s.start(0, 94, shm.EventP2p, "a", "api of a",
		shm.Record{ParentGroup: s.id("plan"), Func: "Send", Count: 256, Datatype: "ncclFloat32", Peer: 2, NChannels: 1})
	s.expectUnderWay("Send>2 0 enqueued since 91")
}

// What was under way when a communicator was aborted stays in sight.
func TestPendingOperationsOfAnAbortedCommunicator(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.kernel(120, 130, "a")
	s.allReduce(200, "b")
	s.start(1, 221, shm.EventKernelCh, "k", "b", shm.Record{PTimer: gpu(220)})
	s.give(0, 500, shm.Record{Kind: shm.RecordFinalize})
	s.expectUnderWay("AllReduce 1 running since 201 begun left")
	expectCount(t, "operations were written", s.p.Comms[0].Sequences["AllReduce"].Count, 2)
}

// An operation that was not seen to begin on the GPU is written after a while; it is in sight until a later one has
// ended.
func TestPendingOperationsThatWereWrittenBeforeTheirEnd(t *testing.T) {
	s := newScene(t, 4)
	s.allReduce(100, "a")
	s.kernel(120, 130, "a")
	s.allReduce(200, "b")
	s.passTo(30_000_000)
	n := len(s.m.ranks.all[0].queue.plans)
	testkit.Require(t, n == 0, "%d operations are not written", n)
	s.expectUnderWay("AllReduce 1 enqueued since 201")
	s.allReduce(30_000_100, "c")
	s.kernel(30_000_120, 30_000_130, "c")
	s.passTo(60_000_000)
	s.expectUnderWay("")
	testkit.Check(t, len(s.lines(description.KindRank)) != 0, "no events")
}
