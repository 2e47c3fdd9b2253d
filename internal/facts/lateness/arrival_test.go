// SPDX-License-Identifier: Apache-2.0

package lateness

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// A member that had ended long before another began, for which it had to wait, is of a clock that does not compare.
func TestTimesThatContradictEachOther(t *testing.T) {
	for _, tc := range []struct {
		name    string
		kind    WaitKind
		begin   otf2.Timestamp // of the second member, the root; the first one runs from 100 to 110
		certain bool
		waits   uint64
		ok      bool
	}{
		{"before it ended", WaitCollective, 105, true, 5, true},
		{"a little later", WaitCollective, 115, true, 10, true},
		{"long after", WaitCollective, 1000, true, 0, false},
		{"long after a part of it ended", WaitCollective, 1000, false, 10, true},
		{"the root long after", WaitLateBroadcast, 1000, true, 0, false},
		{"a root that nobody waits for", WaitEarlyReduce, 1000, true, 0, true},
	} {
		members := []Arrival{
			{Rank: 0, Begin: 100, End: 110, Source: facts.SourceGPU, Certain: tc.certain},
			{Rank: 1, Begin: tc.begin, End: tc.begin + 10, Source: facts.SourceGPU, Certain: tc.certain, Root: true},
		}
		_, ok := Compare(tc.kind, members, false)
		testkit.Check(t, ok == tc.ok && members[0].Wait == tc.waits && members[1].Wait == 0,
			"%s: compared %v, waits %d and %d", tc.name, ok, members[0].Wait, members[1].Wait)
	}
}
