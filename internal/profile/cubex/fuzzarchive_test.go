// SPDX-License-Identifier: Apache-2.0

package cubex

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2test"
)

// FuzzArchiveProfile: whatever stands in an archive, it has a profile that tools can read, or an error.
func FuzzArchiveProfile(f *testing.F) {
	otf2test.Fuzz(f, []string{makeJob(f, 1)}, func(t *testing.T, anchor string) {
		a, _ := otf2.Open(anchor, nil)
		if a == nil {
			return
		}
		defer a.Close()
		p, _, err := FromArchive(a)
		if err != nil || len(a.Defs.LocationGroups) == 0 { // without locations there are no values, and writing says so
			return
		}
		p.Summary()
		testkit.Must(t, p.definitions().Check())
	})
}
