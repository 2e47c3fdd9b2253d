// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// All that a report says fits the width, but for names that cannot be broken.
func TestReportsAreFolded(t *testing.T) {
	r := jobtest.Operations(t, "../../tests/jobtest/testdata/scalasca-min/traces.otf2")
	for _, width := range []int{60, 80, 120} {
		var b strings.Builder
		testkit.Must(t, WriteStyled(r, &b, Style{Width: width}))
		for line := range strings.Lines(b.String()) {
			n := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
			testkit.Check(t, n <= width, "width %d: %d characters: %s", width, n, line)
		}
	}
}

// Colors take no room: a text in color is broken where it is without, and nothing else of it changes.
func TestColorsTakeNoRoom(t *testing.T) {
	r := jobtest.Operations(t, jobtest.WithWaits(t))
	r.Problems =
		[]string{"a file that could not be read to its end, for a reason that takes more than a line of a narrow " +
			"terminal to tell"}
	for _, width := range []int{0, 40, 60, 80, 133} {
		var plain, colored bytes.Buffer
		testkit.Must(t, WriteStyled(r, &plain, Style{Width: width}))
		testkit.Must(t, WriteStyled(r, &colored, Style{Width: width, Color: true}))
		n := bytes.Count(colored.Bytes(), []byte("\x1b[1m"))
		testkit.Check(t, n == 1, "width %d: the answer stands out %d times", width, n)
		testkit.Check(t, bytes.Contains(colored.Bytes(), []byte("\x1b[33ma file")),
			"width %d: the problem does not stand out", width)
		got := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAll(colored.Bytes(), nil)
		testkit.Check(t, bytes.Equal(got, plain.Bytes()), "width %d:\n%s\nwant\n%s", width, got, plain.Bytes())
		testkit.Check(t, !bytes.Contains(plain.Bytes(), []byte("\x1b")),
			"width %d: colors that nobody asked for", width)
	}
}
