// SPDX-License-Identifier: Apache-2.0

// Package mend turns what C programs print as JSON with printf into valid JSON. It mends numbers that JSON lacks
// ("inf", "-nan", "0x1000"), null pointers ("(nil)"), words without quotes ("ncclFloat32"), and missing or trailing
// commas.
package mend

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSON returns text with such faults mended; other faults stay. It takes one pass, and the result is at most three
// times as long.
func JSON(text []byte) []byte {
	out := make([]byte, 0, len(text)+len(text)/8)
	ended := false // after a value, only a comma or a closing bracket may follow
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n':
			out = append(out, c)
			i++
		case ',':
			if next := bytes.TrimLeft(text[i+1:], " \t\r\n"); len(next) == 0 || next[0] != '}' && next[0] != ']' {
				out = append(out, c)
			}
			ended = false
			i++
		case ':':
			out = append(out, c)
			ended = false
			i++
		case '}', ']':
			out = append(out, c)
			ended = true
			i++
		default:
			if ended {
				out = append(out, ',')
			}
			n := 1
			switch ended = true; c {
			case '{', '[':
				out, ended = append(out, c), false
			case '"':
				n = quoted(text[i:])
				out = append(out, text[i:i+n]...)
			default:
				n = bare(text[i:])
				out = append(out, value(text[i:i+n])...)
			}
			i += n
		}
	}
	return out
}

// quoted returns the length of the string at the start of text.
func quoted(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// bare returns the length of text up to a character that ends an unquoted word.
func bare(text []byte) int {
	if n := bytes.IndexAny(text, " \t\r\n,:\"{}[]"); n > 0 {
		return n
	}
	return len(text)
}

// value converts an unquoted word: unchanged if it is valid JSON, null if it is no number or no address, otherwise a
// string.
func value(word []byte) []byte {
	if json.Valid(word) {
		return word
	}
	switch strings.TrimLeft(strings.ToLower(string(word)), "+-") {
	case "inf", "infinity", "nan", "-nan", "nan(ind)", "nan(snan)", "1.#inf", "1.#qnan", "1.#ind", "(nil)", "(null)",
		"nil", "null", "none":
		return []byte("null")
	}
	text, err := json.Marshal(string(word))
	if err != nil {
		return word
	}
	return text
}
