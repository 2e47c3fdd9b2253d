// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// Values of settings are bytes, and their words are ASCII, because the plugin reads them without a locale. Other
// characters have no case and are not blanks, whatever Unicode defines.

const blanks = " \t\n\v\f\r"

// trimBlanks removes blanks from both ends.
func trimBlanks(text string) string { return strings.Trim(text, blanks) }

// splitWords splits a text at commas and blanks.
func splitWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || strings.ContainsRune(blanks, r) })
}

// lowerASCII converts ASCII letters to lower case.
func lowerASCII(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// sameWord reports whether two texts are equal, ignoring case.
func sameWord(a, b string) bool { return lowerASCII(a) == lowerASCII(b) }
