// SPDX-License-Identifier: Apache-2.0

// Package printable brings what programs, archives and other people's files say into a form that may be shown: names in
// them can hold sequences that a terminal acts upon, characters that reorder what stands beside them, line ends that
// make up lines of their own, and formulas that a spreadsheet calculates.
//
// Whoever writes text for people writes through it: names by [Name] or [Fprintf], cells of comma-separated values by
// [Cell].
package printable

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Raw is text that is shown as it is: it has been made here, of printable parts.
type Raw string

// Name is s with what is not to be shown as Go writes it in quotes: "\n", "\x1b", "\u202e". These are control
// characters, format characters (among them those of bidirectional text, and without width), separators of lines and
// paragraphs, and bytes that are no UTF-8. Everything else stays, also quotes and backslashes: most names come back as
// they are.
func Name(s string) string {
	if plain(s) {
		return s
	}
	at := strings.IndexFunc(s, hidden)
	if at < 0 {
		return s
	}
	b := append(make([]byte, 0, len(s)+16), s[:at]...)
	for rest := s[at:]; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			b = fmt.Appendf(b, `\x%02x`, rest[0])
		case hidden(r) && r != utf8.RuneError:
			quoted := strconv.AppendQuoteRuneToASCII(nil, r)
			b = append(b, quoted[1:len(quoted)-1]...)
		default:
			b = append(b, rest[:n]...)
		}
		rest = rest[n:]
	}
	return string(b)
}

// plain reports whether there is nothing but printable ASCII, as in nearly all names.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// hidden tells what Name looks at; the replacement character stands for bytes that are no UTF-8.
func hidden(r rune) bool {
	return r < ' ' || r >= 0x7f && (r == utf8.RuneError ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp))
}

// Cell is s as a cell of comma-separated values: a [Name], behind an apostrophe where a spreadsheet would take it for a
// formula. Numbers stay numbers, also negative ones.
func Cell(s string) string {
	s = Name(s)
	if s == "" || !strings.ContainsRune("=+-@", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}

// Fprintf is fmt.Fprintf with the [Name] of each argument that is text or an error. The format is the program's own,
// and shown as it is, as are arguments of type [Raw].
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, format, all(args)...)
}

// Fprintln is fmt.Fprintln with the [Name] of each argument, likewise.
func Fprintln(w io.Writer, args ...any) (int, error) { return fmt.Fprintln(w, all(args)...) }

func all(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = printable(a)
	}
	return out
}

// printable is an argument as it may be shown.
func printable(a any) any {
	switch v := a.(type) {
	case nil, Raw:
		return a
	case string:
		return Name(v)
	case []byte:
		return Name(string(v))
	case error:
		return Name(v.Error())
	}
	if kind := reflect.TypeOf(a).Kind(); kind >= reflect.Bool && kind <= reflect.Complex128 {
		return a // also if it has words: they are the program's
	}
	return Name(fmt.Sprint(a))
}
