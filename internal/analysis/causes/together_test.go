// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Where two ranks are late together, each of them was late each time, whoever came last.
func TestLateTogether(t *testing.T) {
	r := newJob(6).play("ar(0,1,2,3,4,5) 8*[ 0:50 1:150 2:50 3:50 4:140 5:50 ar(0,1,2,3,4,5) " +
		"0:50 1:140 2:50 3:50 4:150 5:50 ar(0,1,2,3,4,5) ]").engine.Result()
	for _, rank := range []int{1, 4} {
		late := &r.Ranks[rank]
		n := len(late.Occurrences)
		testkit.Check(t, n == 16 && late.All, "rank %d was late %d times, want 16 of 16", rank, n)
		times := uint32(0)
		for i := range r.Comms {
			for _, n := range r.Comms[i].Led[rank] {
				times += n
			}
		}
		testkit.Check(t, times == 16, "rank %d: %d operations, want 16", rank, times)
	}
	for _, rank := range []int{0, 2, 3, 5} {
		n := len(r.Ranks[rank].Occurrences)
		testkit.Check(t, n <= 0, "rank %d was late %d times", rank, n)
	}
}
