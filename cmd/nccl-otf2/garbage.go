// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/debug"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
)

// garbage is the GC percentage for archives with many rows. Reading events allocates little, so that more frequent
// collections take little time.
const garbage = 4

// timelineGarbage is the GC percentage of timeline, which allocates more: with garbage it would take a third longer.
const timelineGarbage = 25

// limitGarbage lowers the GC percentage for archives with many rows, unless the user has set GOGC.
func limitGarbage(rows, percent int) {
	if os.Getenv("GOGC") == "" && rows > analysis.ManyRows {
		debug.SetGCPercent(percent)
	}
}
