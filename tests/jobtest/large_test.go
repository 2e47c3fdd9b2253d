// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The archive is sound, and the analysis finds in it what it was made of.
func TestLargeArchive(t *testing.T) {
	s := NewLarge(20_000, 8)
	path, err := s.Write(t.TempDir())
	testkit.Must(t, err)
	if found := Lines(Check(t, path)); found != "" {
		t.Fatal(found)
	}
	r := Operations(t, path)
	if len(r.Problems) > 0 {
		t.Fatal(r.Problems)
	}
	if r.Summary.Events != s.Events() || r.Summary.Operations != s.Operations ||
		r.WaitStates.Collectives != s.Operations-1 {
		t.Errorf("%+v of %+v", r.Summary, s)
	}
	// The last rank is 7 µs behind the first: the others wait 7 + 6 + … + 1 µs for it.
	if got, want := r.WaitStates.Total.Waited, (s.Operations-1)*28_000; got != want {
		t.Errorf("waited %d, want %d", got, want)
	}
}
