// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2test"
)

// FuzzRead: whatever stands in an archive, it is refused, or makes blocks that the page can read.
func FuzzRead(f *testing.F) {
	otf2test.Fuzz(f, []string{makeJob(f)}, readAndShow)
}

func readAndShow(t *testing.T, anchor string) {
	a, err := otf2.Open(anchor, nil)
	if a == nil {
		if err == nil {
			t.Fatal("neither archive nor error")
		}
		return
	}
	defer a.Close()
	d, err := Read(a)
	if err != nil {
		return
	}
	defer d.Close()
	show(t, d)
}

func TestUndefinedLocations(t *testing.T) {
	otf2test.EachWithoutLocation(t, makeJob(t), readAndShow)
}
