// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The archive is sound, and the analysis finds in it what it was made of.
func TestSyntheticArchive(t *testing.T) {
	s := New(20_000, 8)
	path, err := s.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	checked, err := check.Archive(path, nil)
	if err != nil || len(checked.Findings) > 0 {
		t.Fatal(err, checked)
	}
	a, err := otf2.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	r, err := operations.Observe(a, new(operations.Observer))
	if err != nil || len(r.Problems) > 0 {
		t.Fatal(err, r.Problems)
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
