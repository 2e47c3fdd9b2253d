// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// Texts of settings are bytes, and their words ASCII: the plugin reads them without a locale. Other characters are of
// no case and no blanks, whatever Unicode says of them.

const blanks = " \t\n\v\f\r"

// trim takes the blanks off both ends.
func trim(text string) string { return strings.Trim(text, blanks) }

// words are what commas and blanks separate.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || strings.ContainsRune(blanks, r) })
}

// lower is a text without capital letters.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// same reports whether two texts differ in the case of letters at most.
func same(a, b string) bool { return lower(a) == lower(b) }
