// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// LiveJob is a job of some ranks that is being recorded.
type LiveJob struct {
	t         testing.TB
	Dir       string
	Processes []*shardtest.Process
	Comms     []int
}

func NewLiveJob(t testing.TB, ranks, hosts int) *LiveJob {
	j := &LiveJob{t: t, Dir: t.TempDir()}
	for r := range ranks {
		p := shardtest.NewRank(t, j.Dir, r, ranks, ranks/hosts)
		j.Comms = append(j.Comms, p.World())
		j.Processes = append(j.Processes, p)
	}
	return j
}

// LiveAt is a time of the job, ms after its begin.
func LiveAt(ms float64) uint64 { return T0 + uint64(ms*1e6) }

// AllReduce adds one in which rank r comes late[r] ms after begin, and all end at end.
func (j *LiveJob) AllReduce(begin, end float64, late ...float64) {
	for r, p := range j.Processes {
		b := begin
		if r < len(late) {
			b += late[r]
		}
		p.AllReduce(j.Comms[r], LiveAt(b), LiveAt(end), 1<<20)
	}
}

func (j *LiveJob) Flush() {
	for _, p := range j.Processes {
		p.Flush()
	}
}
