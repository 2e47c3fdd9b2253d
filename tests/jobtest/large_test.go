// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The archive is sound, and the analysis finds in it what it was made of.
func TestLargeArchive(t *testing.T) {
	s := NewLarge(20_000, 8)
	path := testkit.Value(s.Write(t.TempDir()))(t)
	found := Lines(Check(t, path))
	testkit.Require(t, found == "", "%v", found)
	r := Operations(t, path)
	testkit.Require(t, len(r.Problems) == 0, "%v", r.Problems)
	testkit.Check(t, r.Summary.Events == s.Events() && r.Summary.Operations == s.Operations &&
		r.WaitStates.Collectives == s.Operations-1, "%+v of %+v", r.Summary, s)
	// The last rank is 7 µs behind the first: the others wait 7 + 6 + … + 1 µs for it.
	got, want := r.WaitStates.Total.Waited, (s.Operations-1)*28_000
	testkit.Check(t, got == want, "waited %d, want %d", got, want)
}
