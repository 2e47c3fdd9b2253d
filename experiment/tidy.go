// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"os"
	"path/filepath"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
)

// abandonedAfter is how long nobody has written a temporary file whose writer is taken for dead; the slowest write is over by then.
const abandonedAfter = time.Minute

// temporaries are what writers name what is not whole yet, in an experiment directory.
var temporaries = []string{
	atomicfile.Temporaries, "run-*/" + atomicfile.Temporaries, Folder + "/" + atomicfile.Temporaries, Folder + "/*/" + atomicfile.Temporaries,
}

// Tidy removes temporary files of writers that were killed. What cannot be removed stays.
func Tidy(directory string) {
	for _, pattern := range temporaries {
		files, _ := filepath.Glob(filepath.Join(quoted(directory), pattern))
		for _, file := range files {
			info, err := os.Lstat(file)
			if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > abandonedAfter {
				_ = os.Remove(file)
			}
		}
	}
}

// quoted is a path as a pattern that only it matches.
func quoted(path string) string {
	out := make([]byte, 0, len(path))
	for i := range len(path) {
		switch c := path[i]; c {
		case '*', '?', '[', '\\':
			out = append(out, '\\', c)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
