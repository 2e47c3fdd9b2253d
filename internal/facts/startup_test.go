// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

func TestStartUpIsTheFirstCollectiveIfRecordingHasItsBeginning(t *testing.T) {
	s := make(StartUps)
	for i, c := range []struct {
		comm    otf2.CommRef
		ordinal uint64
		want    bool
	}{{1, 0, true}, {1, 0, false}, {1, 1, false}, {2, 7, false}, {2, 0, false}, {3, 0, true}} {
		testkit.Equal(t, s.AddCollective(c.comm, c.ordinal), c.want,
			"collective %d, number %d of communicator %d", i, c.ordinal, c.comm)
	}
}
