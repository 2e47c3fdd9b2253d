// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bufio"
	"bytes"
	_ "embed" // the page around two others
	"fmt"
	"html"
	"io"
)

// besideAsset is the page that frames two others; `make page` builds it from page/.
//
//go:embed asset/beside.html
var besideAsset []byte

// Placeholders in it.
var (
	titleMark = []byte("<!--title-->")
	textMark  = []byte("<!--text-->")
	runsMark  = []byte("<!--runs-->")
)

// ComparedRun is one of two runs shown beside each other.
type ComparedRun struct {
	*Data
	Options
}

// String states the amount of data.
func (b ComparedRun) String() string { return b.Title + ": " + b.Data.String() }

// WriteBeside writes one page with the pages of two runs in frames, each with all its data; navigation in one moves the
// other. text describes both, as plain text.
func WriteBeside(w io.Writer, runs [2]ComparedRun, text string) error {
	out := bufio.NewWriterSize(w, 1<<16)
	rest := besideAsset
	until := func(mark []byte) error {
		before, after, ok := bytes.Cut(rest, mark)
		if !ok {
			return fmt.Errorf("the built page has no %s: make page", mark)
		}
		rest = after
		_, err := out.Write(before)
		return err
	}
	if err := until(titleMark); err != nil {
		return err
	}
	out.WriteString(html.EscapeString(runs[0].Title + " and " + runs[1].Title))
	if err := until(textMark); err != nil {
		return err
	}
	out.WriteString(html.EscapeString(text))
	if err := until(runsMark); err != nil {
		return err
	}
	for _, r := range runs {
		fmt.Fprintf(out, "<iframe title=\"%s\" srcdoc=\"", html.EscapeString(r.Title))
		if err := r.WritePage(htmlAttribute{out}, r.Options); err != nil {
			return err
		}
		out.WriteString("\"></iframe>\n")
	}
	out.Write(rest)
	return out.Flush()
}

// htmlAttribute writes the quoted value of an HTML attribute.
type htmlAttribute struct{ to *bufio.Writer }

// Write writes text and escapes characters that have a meaning in attributes.
func (a htmlAttribute) Write(b []byte) (n int, err error) {
	for n < len(b) {
		i := bytes.IndexAny(b[n:], "&\"")
		if i < 0 {
			_, err = a.to.Write(b[n:])
			return len(b), err
		}
		a.to.Write(b[n : n+i])
		if n += i; b[n] == '&' {
			_, err = a.to.WriteString("&amp;")
		} else {
			_, err = a.to.WriteString("&quot;")
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
