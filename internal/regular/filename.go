// SPDX-License-Identifier: Apache-2.0

package regular

// longestPart is how many bytes of a foreign text become part of a file's name, which can have 255.
const longestPart = 200

// FileName is a text that others chose (the name of a host, the id of a job) as a part of a file's name: nothing in it
// leads to another folder, hides the file, or is acted upon by a terminal. The plugin goes by the same rule
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
