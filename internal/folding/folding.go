// SPDX-License-Identifier: Apache-2.0

// Package folding breaks text for terminals: lines that are too wide, between words, and paragraphs of prose.
package folding

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// Writer breaks lines that are wider than a terminal between words. What follows is indented, behind a name under the
// text that the name is of. To end it must be flushed.
type Writer struct {
	w     io.Writer
	width int
	line  []byte // that has not ended
}

// leastFolded is a width below which sentences are left to the terminal.
const leastFolded = 40

// NewWriter writes to w in lines of at most width characters; a width of 0 is not limited.
func NewWriter(w io.Writer, width int) *Writer {
	if width < leastFolded {
		width = 0
	}
	return &Writer{w: w, width: width}
}

// Write breaks the lines that end in text; the rest of it waits for its end.
func (f *Writer) Write(text []byte) (n int, err error) {
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
func (f *Writer) Flush() error {
	rest := fold(string(f.line), f.width)
	f.line = nil
	_, err := io.WriteString(f.w, rest)
	return err
}

// Prose fills the paragraphs of a text anew, to at most width characters a line. Blank lines end paragraphs; lines that
// are indented stay lines of their own, broken as Writer does, with those that go on under their text.
func Prose(text string, width int) string {
	var b strings.Builder
	var pending string
	end := func() {
		indent := 0
		if strings.HasPrefix(pending, " ") {
			indent = hanging(pending)
		}
		if pending != "" {
			b.WriteString(broken(pending, width, indent) + "\n")
		}
		pending = ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if pending != "" && line != "" && goesOn(pending, line) {
			pending += " " + strings.TrimLeft(line, " ")
			continue
		}
		end()
		if pending = line; line == "" {
			b.WriteByte('\n')
		}
	}
	end()
	return b.String()
}

// goesOn reports whether a line is of the paragraph, or of the indented item, before it.
func goesOn(before, line string) bool {
	margin := len(line) - len(strings.TrimLeft(line, " "))
	if !strings.HasPrefix(before, " ") {
		return margin == 0
	}
	return margin > 0 && margin == hanging(before)
}

// fold breaks a line, with what follows indented.
func fold(line string, width int) string { return broken(line, width, hanging(line)) }

// broken breaks a line, with what follows indented by so many blanks, at most by half of the width.
func broken(line string, width, margin int) string {
	if width <= 0 || columns(line) <= width {
		return line
	}
	indent := strings.Repeat(" ", min(margin, width/2))
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
		if n := len(words); n > 0 && words[n-1] != "" && unit(word) &&
			strings.ContainsAny(words[n-1][len(words[n-1])-1:], "0123456789") {
			words[n-1] += " " + word
			continue
		}
		words = append(words, word)
	}
	return words
}

// unit reports whether a word is one, with what ends a sentence or a part of it behind it.
func unit(word string) bool {
	switch strings.TrimRight(word, ".,;:)") {
	case "%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "GB/s":
		return true
	}
	return false
}

// hanging is how far the rest of a line is indented: as the text behind its name, of an indented line of two parts;
// else by two.
func hanging(line string) int {
	text := strings.TrimLeft(line, " ")
	margin := len(line) - len(text)
	if at := strings.Index(text, "  "); margin > 0 && at > 0 {
		rest := strings.TrimLeft(text[at:], " ")
		return utf8.RuneCountInString(line) - utf8.RuneCountInString(rest)
	}
	return margin + 2
}
