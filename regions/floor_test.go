// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Where no launch and no call is known, as before API v5, no kernel has begun before the first record.
func TestKernelsBeginWithTheRecording(t *testing.T) {
	s := newSceneWith(t, 4, 4, &Options{RecordMask: 1<<shm.EventGroup | 1<<shm.EventColl | 1<<shm.EventKernelCh})
	s.plan(1, 100, "g", "AllReduce", "a")
	p := s.m.ranks.live[0].queue.plans[0]
	if got, _ := s.m.ops.timing.earliestBegin(p); got < micros(0) || got > p.enqueue.start {
		t.Errorf("launched at %d, the plan was enqueued at %d", got, p.enqueue.start)
	}
}
