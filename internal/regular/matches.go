// SPDX-License-Identifier: Apache-2.0

package regular

import "path/filepath"

// Matches returns the sorted paths below a folder that match a pattern of package filepath; none if the folder does not
// exist. "*", "?" and "[" in the folder's own name have no special meaning. The pattern must be valid.
func Matches(folder, pattern string) []string {
	files, err := filepath.Glob(filepath.Join(quoted(folder), pattern))
	if err != nil {
		panic(err) // the pattern is a constant of the program
	}
	return files
}

// quoted returns a pattern that matches exactly this path.
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
