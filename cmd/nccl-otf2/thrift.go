// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/debug"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
)

// garbage is how much there may be then, in percent of what is held. Hardly anything is allocated for events, so that
// collecting it oftener takes little time.
const garbage = 4

// timelineGarbage is how much of it timeline lets be: what it makes of events is garbage soon, and collecting it as
// often takes a third longer.
const timelineGarbage = 25

// beThrifty has garbage collected oftener where there are many rows, unless the user has said how often.
func beThrifty(rows, percent int) {
	if os.Getenv("GOGC") == "" && rows > analysis.ManyRows {
		debug.SetGCPercent(percent)
	}
}
