// SPDX-License-Identifier: Apache-2.0

package regular

import "path/filepath"

// Matches lists the paths below a folder that a pattern of package filepath names, in their order; none of a folder
// that is not there. The folder is what it is called, whatever its name has of "*", "?" and "[", and the pattern must
// be a good one.
func Matches(folder, pattern string) []string {
	files, err := filepath.Glob(filepath.Join(quoted(folder), pattern))
	if err != nil {
		panic(err) // the pattern is the program's own
	}
	return files
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
