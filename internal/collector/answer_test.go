// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shmtest"
)

// What may be followed by something older waits for the window. When the last communicator is gone nothing is: an
// answer has all of it at once.
func TestNothingWaitsForTheWindowBehindTheLastCommunicator(t *testing.T) {
	job := testkit.Value(shmtest.New(shmtest.Options{Clock: shm.ClockMonotonic}))(t)
	defer job.Close()
	begun := job.Header().Created
	a := newApplication(job, 0, func() uint64 { return begun.Ticks + 1000 })
	a.allReduce(0)
	fd := testkit.Value(unix.Dup(job.FD()))(t)
	memory := testkit.Value(shm.Map(fd))(t)
	defer memory.Close()
	n := memory.LiveComms()
	testkit.Require(t, n == 1, "%d communicators are alive", n)
	job.FinishComm(int(a.comm), begun.Ticks+1000)
	n = memory.LiveComms()
	testkit.Require(t, n == 0, "%d communicators are alive behind the last", n)
	r := testkit.Value(newRecording(memory, config.RecordedSettings(map[string]string{"EVENTS": "all"}),
		config.Launcher{Rank: -1, Size: -1}, t.TempDir(), uuid.NewString()))(t)
	testkit.Value(memory.Refresh())(t)
	now := begun
	for _, clock := range []*uint64{&now.Ticks, &now.Raw, &now.Mono, &now.Real} {
		*clock += 1000 + r.drain.window/2
	}
	testkit.Equal(t, r.drainRound(now), 0, "records within the window were taken")
	testkit.Equal(t, r.drainBefore(now, 0), 2+2*perCall, "records were taken")
	testkit.Must(t, r.finish(true))
}
