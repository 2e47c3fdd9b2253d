// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"os"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// abandonedAfter is how long a temporary file must be unchanged until its writer counts as dead; the slowest write is
// over by then.
const abandonedAfter = time.Minute

// temporaries are the name patterns of incomplete files in an experiment directory.
var temporaries = []string{
	atomicfile.Temporaries, "run-*/" + atomicfile.Temporaries, Folder + "/" + atomicfile.Temporaries,
	Folder + "/*/" + atomicfile.Temporaries,
}

// Tidy removes temporary files of writers that were killed. What cannot be removed stays.
func Tidy(directory string) {
	for _, pattern := range temporaries {
		for _, file := range regular.Matches(directory, pattern) {
			info, err := os.Lstat(file)
			if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > abandonedAfter {
				_ = os.Remove(file)
			}
		}
	}
}
