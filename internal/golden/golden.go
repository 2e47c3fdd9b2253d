// SPDX-License-Identifier: Apache-2.0

// Package golden compares what tests make with files that are kept. `go test ./FOLDER -update` writes these anew.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

var update = flag.Bool("update", false, "write golden files and generated texts anew")

// Updating says whether texts are written anew.
func Updating() bool { return *update }

// Text compares a text with that of a file.
func Text(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		testkit.Must(t, os.WriteFile(path, []byte(got), 0o666))
		return
	}
	want, err := os.ReadFile(path)
	testkit.Require(t, err == nil, "%v (run with -update to make it)", err)
	d := cmp.Diff(string(want), got)
	testkit.Check(t, d == "", "%s (run with -update to accept; want −, got +):\n%s", path, d)
}

// Section compares a text with what stands in a page between two marks of that name.
func Section(t testing.TB, page, name, got string) {
	t.Helper()
	SectionMadeBy(t, page, name, "make generate", got)
}

// SectionMadeBy is Section where another command makes the text.
func SectionMadeBy(t testing.TB, page, name, command, got string) {
	t.Helper()
	begin, end := "<!-- "+name+": made by `"+command+"` -->\n", "<!-- "+name+" end -->"
	text := testkit.Value(os.ReadFile(page))(t)
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	testkit.Require(t, ok && ok2, "%s has no place for the %s, between %q and %q", page, name, begin, end)
	Text(t, page, before+begin+got+end+after)
}

// SameLines compares two long texts and names the first line that differs.
func SameLines(t testing.TB, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Errorf("%s: line %d\n got %q\nwant %q", what, i+1, g[i], w[i])
			return
		}
	}
	t.Errorf("%s: %d lines, want %d", what, len(g), len(w))
}
