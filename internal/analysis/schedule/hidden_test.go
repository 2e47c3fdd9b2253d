// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/causes"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/lateness"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// A GPU computes for the second and third operation of an iteration while the one before waits for the late rank. It
// works as long as the late one there, although less of it is seen.
func TestHiddenWork(t *testing.T) {
	const (
		iterations = 30
		work       = 10_000
	)
	record := func(late bool) (r *Recorder, ends otf2.Timestamp) {
		r = NewRecorder(2)
		t.Cleanup(r.Close)
		op := &causes.Operation{Members: 2, Function: "AllReduce"}
		ended, begun := otf2.Timestamp(1000), [2]otf2.Timestamp{}
		for n := 1; n <= 3*iterations; n++ {
			members, came := make([]causes.Member, 2), make([]lateness.Arrival, 2)
			last := &lateness.Result{Kind: lateness.WaitCollective}
			for i := range members {
				begin := max(ended, begun[i]+work)
				if n%3 == 1 { // begins an iteration: what the GPU computes needs the operation before
					begin = ended + work
					if late && i == 1 {
						begin += 7000 + otf2.Timestamp(n*n*7919%2311)
					}
				}
				begun[i] = begin
				came[i] = lateness.Arrival{Rank: i, Begin: begin}
				if begin > came[last.Last].Begin {
					last.Last = i
				}
				members[i] = causes.Member{There: begin, Work: uint64(begin - ended), Local: causes.Local{Rank: int32(i),
					Seq: uint32(n), Before: uint32(n - 1), Ended: ended, Ready: ended - 1, Called: true}}
			}
			ended = came[last.Last].Begin + transfer
			for i := range members {
				came[i].End, came[i].Wait = ended, uint64(came[last.Last].Begin-came[i].Begin)
				members[i].Arrival = came[i]
			}
			r.Collective(op, members, came, last, n == 1)
		}
		return r, ended
	}
	slow, end := record(true)
	_, fast := record(false)
	gains, notKnown := slow.Replay([]Scenario{{Ranks: []int{1}}})
	testkit.Require(t, notKnown == "", "not known: %s", notKnown)
	got, truth := gains[0].Earlier, int64(end-fast)
	testkit.Check(t, max(got-truth, truth-got) < truth/10, "%d ns earlier, in truth %d", got, truth)
}
