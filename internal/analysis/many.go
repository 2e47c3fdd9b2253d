// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"runtime"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// ManyRows is the number of rows beyond which the data of single rows, and the resulting garbage, dominate a command's
// memory: about 30 KB for each rank.
const ManyRows = 4096

// HaveRead collects the garbage from reading an archive with many rows. Call it when nothing refers to that data any
// more; otherwise the memory of later results adds to it.
func HaveRead(defs *otf2.Definitions) {
	if len(defs.Locations) > ManyRows {
		runtime.GC()
	}
}
