// SPDX-License-Identifier: Apache-2.0

// Package mend makes JSON of what C programs print for it with printf: numbers that JSON has not got ("inf", "-nan",
// "0x1000"), null pointers ("(nil)"), words without quotes ("ncclFloat32"), commas that are missing between members,
// and such as nothing follows.
package mend

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSON gives text with such faults mended. What it cannot mend stays as it is; it takes one pass, and what it gives is
// never more than three times as long.
func JSON(text []byte) []byte {
	out := make([]byte, 0, len(text)+len(text)/8)
	ended := false // a value has: what comes next is a comma or a bracket that closes
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

// quoted is the length of the string that text begins with.
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

// bare is the length of what text begins with up to a character that ends it.
func bare(text []byte) int {
	if n := bytes.IndexAny(text, " \t\r\n,:\"{}[]"); n > 0 {
		return n
	}
	return len(text)
}

// value is a word that stands without quotes: as it is if JSON has it, null where it is no number or no address, else a
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
