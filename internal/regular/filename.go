// SPDX-License-Identifier: Apache-2.0

package regular

// longestPart is how many bytes of a foreign text are used in a file name, which can have 255.
const longestPart = 200

// FileName converts a foreign text (a host name, a job id) into a part of a file name: the result leads to no other
// folder, does not hide the file, and has no effect in a terminal. The plugin uses the same rule
// (ncclotf2_config_file_name).
func FileName(text string) string {
	if text == "" {
		return "_"
	}
	part := []byte(text[:min(len(text), longestPart)])
	for i, c := range part {
		if c == '/' || c < ' ' || c == 0x7f || c == '.' && i == 0 {
			part[i] = '_'
		}
	}
	return string(part)
}
