// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// folding breaks lines that are wider than a terminal between words. What follows is indented, behind a name under the text that the name is of.
type folding struct {
	w     io.Writer
	width int
	line  []byte // that has not ended
}

// leastFolded is a width below which sentences are left to the terminal.
const leastFolded = 40

// folded writes to w, and to end it must be flushed; a width of 0 is not limited.
func folded(w io.Writer, width int) *folding {
	if width < leastFolded {
		width = 0
	}
	return &folding{w: w, width: width}
}

func (f *folding) Write(text []byte) (n int, err error) {
	if f.width == 0 {
		return f.w.Write(text)
	}
	f.line = append(f.line, text...)
	for {
		end := bytes.IndexByte(f.line, '\n')
		if end < 0 {
			return len(text), nil
		}
		if _, err := io.WriteString(f.w, fold(string(f.line[:end]), f.width)+"\n"); err != nil {
			return 0, err
		}
		f.line = f.line[:copy(f.line, f.line[end+1:])]
	}
}

// Flush writes what has no end of a line.
func (f *folding) Flush() error {
	rest := fold(string(f.line), f.width)
	f.line = nil
	_, err := io.WriteString(f.w, rest)
	return err
}

// fold breaks a line.
func fold(line string, width int) string {
	if width <= 0 || columns(line) <= width {
		return line
	}
	indent := strings.Repeat(" ", min(hanging(line), width/2))
	words := wordsOf(line)
	var b strings.Builder
	at := 0 // characters in the line that is written
	empty := true
	for i, word := range words {
		n := columns(word)
		if i > 0 {
			if at+1+n > width && !empty {
				b.WriteString("\n" + indent)
				at, empty = len(indent), true
			} else {
				b.WriteByte(' ')
				at++
			}
		}
		b.WriteString(word)
		at += n
		empty = empty && word == ""
	}
	return b.String()
}

// columns is how many characters of a terminal a text takes: those that set colors take none.
func columns(text string) (n int) {
	for text != "" {
		before, after, found := strings.Cut(text, "\x1b[")
		n += utf8.RuneCountInString(before)
		if !found {
			break
		}
		_, text, _ = strings.Cut(after, "m")
	}
	return n
}

// wordsOf are the parts of a line between which it can be broken: a number and its unit stay together.
func wordsOf(line string) (words []string) {
	for _, word := range strings.Split(line, " ") {
		if n := len(words); n > 0 && words[n-1] != "" && unit(word) && strings.ContainsAny(words[n-1][len(words[n-1])-1:], "0123456789") {
			words[n-1] += " " + word
			continue
		}
		words = append(words, word)
	}
	return words
}

// unit tells whether a word is one, with what ends a sentence or a part of it behind it.
func unit(word string) bool {
	switch strings.TrimRight(word, ".,;:)") {
	case "%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "GB/s":
		return true
	}
	return false
}

// hanging is how far the rest of a line is indented: as the text behind its name, of an indented line of two parts; else by two.
func hanging(line string) int {
	text := strings.TrimLeft(line, " ")
	margin := len(line) - len(text)
	if at := strings.Index(text, "  "); margin > 0 && at > 0 {
		rest := strings.TrimLeft(text[at:], " ")
		return utf8.RuneCountInString(line) - utf8.RuneCountInString(rest)
	}
	return margin + 2
}
