// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/debug"
)

// manyRows is how many rows an archive has of which what is held of each, and the garbage beside it, is what a command's memory is made
// of: some 30 KB for each rank.
const manyRows = 4096

// garbage is how much there may be then, in percent of what is held. Hardly anything is allocated for events, so that collecting it
// oftener takes little time.
const garbage = 10

// beThrifty has garbage collected oftener where there are many rows, unless the user has said how often.
func beThrifty(rows int) {
	if os.Getenv("GOGC") == "" && rows > manyRows {
		debug.SetGCPercent(garbage)
	}
}
