// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"fmt"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// An operation that is known to run is under way however long it takes: the job may hang in it.
func TestPendingOperationsOfAnyAge(t *testing.T) {
	for _, c := range []struct {
		name   string
		record uint32
		begin  func(s *scene)
		state  string
	}{
		{"its kernel runs", 1 << shm.EventKernelCh,
			func(s *scene) { s.start(1, 221, shm.EventKernelCh, "k", "b", shm.Record{PTimer: gpu(220)}) },
			" begun"},
		{"its network traffic has begun", 1<<shm.EventProxyOp | 1<<shm.EventProxyStep, (*scene).beginTraffic, ""},
		{"only its network traffic has begun", 1<<shm.EventKernelCh | 1<<shm.EventProxyOp | 1<<shm.EventProxyStep,
			(*scene).beginTraffic, ""},
	} {
		for _, seconds := range []uint64{9, 13, 40, 4000} {
			t.Run(fmt.Sprintf("%s for %d s", c.name, seconds), func(t *testing.T) {
				s := newSceneWith(t, 4, 6, &Options{RecordMask: c.record})
				s.allReduce(200, "b")
				c.begin(s)
				s.expectUnderWay("AllReduce 0 running since 201" + c.state)
				s.passTo(1_000_000 * seconds)
				s.expectUnderWay("AllReduce 0 running since 201" + c.state)
			})
		}
	}
}

// beginTraffic begins the network traffic of operation b.
func (s *scene) beginTraffic() {
	s.proxyOp(222, "op of b", "b", true, 2)
	s.step(223, "step of b", "op of b", 0)
}

// An operation whose traffic is not seen to end, as when events are lost, is written once later ones have ended.
func TestTrafficWithoutItsEndDelaysNothingForEver(t *testing.T) {
	s := newSceneWith(t, 4, 6, &Options{RecordMask: 1<<shm.EventProxyOp | 1<<shm.EventProxyStep})
	s.allReduce(200, "b")
	s.beginTraffic()
	s.allReduce(20_000_000, "c")
	s.proxyOp(20_000_020, "op of c", "c", true, 2)
	s.step(20_000_021, "step of c", "op of c", 0)
	s.expectUnderWay("AllReduce 0 running since 201; AllReduce 1 running since 20000001")
	s.stop(1, 20_000_030, shm.EventProxyStep, "step of c")
	s.stop(1, 20_000_031, shm.EventProxyOp, "op of c")
	s.passTo(25_000_000)
	s.expectUnderWay("")
	expectCount(t, "operations wait", len(s.m.ranks.all[0].queue.plans), 0)
}
