// SPDX-License-Identifier: Apache-2.0

package export

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2test"
)

// FuzzExports: whatever stands in an archive, each export is an error, or comes to an end.
func FuzzExports(f *testing.F) {
	otf2test.Fuzz(f, []string{makeJob(f)}, exports)
}

func exports(t *testing.T, anchor string) {
	dir := t.TempDir()
	for _, write := range []func(a *otf2.Archive) (*Result, error){
		func(a *otf2.Archive) (*Result, error) { return JSONL(a, filepath.Join(dir, "jsonl"), nil) },
		func(a *otf2.Archive) (*Result, error) { return Perfetto(a, "-", io.Discard, nil) },
		func(a *otf2.Archive) (*Result, error) { return Parquet(a, filepath.Join(dir, "parquet"), "none", nil) },
		func(a *otf2.Archive) (*Result, error) { return Prometheus(a, "-", io.Discard, nil) },
	} {
		a, err := otf2.Open(anchor, nil)
		if a == nil {
			testkit.Require(t, err != nil, "neither archive nor error")
			return
		}
		made, err := write(a)
		testkit.Check(t, made != nil || err != nil, "neither result nor error")
		a.Close()
	}
}

// What happens at a location that is not defined is named, and left out.
func TestUndefinedLocations(t *testing.T) {
	otf2test.EachWithoutLocation(t, makeJob(t), exports)
}
