// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"runtime"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// ManyRows is how many rows an archive has of which what is held of each, and the garbage beside it, is what a
// command's memory is made of: some 30 KB for each rank.
const ManyRows = 4096

// HaveRead collects what reading an archive of many rows has held, when nothing refers to it any more: else what is
// made of it comes on top.
func HaveRead(defs *otf2.Definitions) {
	if len(defs.Locations) > ManyRows {
		runtime.GC()
	}
}
