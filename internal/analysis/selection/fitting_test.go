// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"testing"
)

// A name that looks like a pattern selects only itself, not what the pattern matches.
func TestNamesThatArePatterns(t *testing.T) {
	names := []string{"step 1", "step [1]", "a*b", "aXb", "a[", `b\c`, "[!a]"}
	for pattern, want := range map[string][]string{
		"step [1]": {"step [1]"}, "a*b": {"a*b"}, "a[": {"a["}, `b\c`: {`b\c`}, "[!a]": {"[!a]"}, "a?b": {"a*b", "aXb"},
		"step ?": {"step 1"}, "none": nil,
	} {
		if got, err := fitting(pattern, names); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", pattern, got, err, want)
		}
	}
	if _, err := fitting("b[", names); err == nil {
		t.Error("a pattern without its end is one")
	}
}
