// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Lines that are too wide are broken between words, with what follows under their text; others stay as they are.
func TestFolding(t *testing.T) {
	for _, tc := range []struct {
		line  string
		width int
		want  string
	}{
		{"one two", 40, "one two"},
		{"Rank 2 made the others wait: 89 % of 255 ms, every third call.", 40,
			"Rank 2 made the others wait: 89 % of\n  255 ms, every third call."},
		{"  most        1 s to 2 s: ranks waited half of the time, for Rank 2", 42,
			"  most        1 s to 2 s: ranks waited\n              half of the time, for Rank 2"},
		{"  a rank  that is named, and whose sentence goes on", 40,
			"  a rank  that is named, and whose\n          sentence goes on"},
		{"a/very/long/name/without/any/blank/in/it/at/all/that/cannot/be/broken", 40,
			"a/very/long/name/without/any/blank/in/it/at/all/that/cannot/be/broken"},
		{"naïve café über größe naïve café über größe", 41, "naïve café über größe naïve café über\n  größe"},
		{"one two three", 5, "one two three"},
		{"one two three", 0, "one two three"},
	} {
		var b strings.Builder
		f := NewWriter(&b, tc.width)
		for _, part := range []string{tc.line[:1], tc.line[1:]} { // as it may come
			_, _ = fmt.Fprint(f, part)
		}
		if err := f.Flush(); err != nil || b.String() != tc.want {
			t.Errorf("width %d: %q, want %q (%v)", tc.width, b.String(), tc.want, err)
		}
	}
}

// Paragraphs are filled anew; lines that are indented and blank ones stay where they are.
func TestProse(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", ""},
		{"one two\nthree", "one two three\n"},
		{"Makes one archive of what its processes\nrecorded, and ends as COMMAND ended.",
			"Makes one archive of what its processes\nrecorded, and ends as COMMAND ended.\n"},
		{"One sentence that is longer than a line of the terminal.\nAnother.\n\nA paragraph.\n",
			"One sentence that is longer than a line\nof the terminal. Another.\n\nA paragraph.\n"},
		{"Forms:\n  --jsonl   the records of the minimal profiler\n  --tables  JSON\nThat is all.",
			"Forms:\n  --jsonl   the records of the minimal\n            profiler\n  --tables  JSON\nThat is all.\n"},
		{"  --jsonl   the records of\n            the minimal profiler\n  --tables  JSON\n",
			"  --jsonl   the records of the minimal\n            profiler\n  --tables  JSON\n"},
	} {
		testkit.Equal(t, Prose(tc.text, 40), tc.want, "Prose(tc.text, 40)")
	}
}
