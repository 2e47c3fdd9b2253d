// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2test"
)

// FuzzPrint: whatever stands in an archive, all of it is printed, or an error comes.
func FuzzPrint(f *testing.F) {
	var anchors []string
	for _, name := range []string{"all-defs/alldefs", "all-events/events", "attributes/attrs", "aux-files/aux",
		"collectives/nccl", "mapping/mapping"} {
		anchors = append(anchors, filepath.Join("../testdata", name+".otf2"))
	}
	otf2test.Fuzz(f, anchors, func(t *testing.T, anchor string) {
		a, err := otf2.Open(anchor, nil)
		if a == nil {
			testkit.Require(t, err != nil, "neither archive nor error")
			return
		}
		defer a.Close()
		_ = Anchor(io.Discard, a, nil)
		_ = Thumbnails(io.Discard, a, nil)
		_ = Markers(io.Discard, a, nil)
		for _, print := range []func(io.Writer, *otf2.Archive, *Options) error{Definitions, LocalDefs, Events,
			Snapshots} {
			_ = print(io.Discard, a, &Options{})
		}
	})
}
