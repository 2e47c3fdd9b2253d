// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A name that looks like a pattern selects only itself, not what the pattern matches.
func TestNamesThatArePatterns(t *testing.T) {
	names := []string{"step 1", "step [1]", "a*b", "aXb", "a[", `b\c`, "[!a]"}
	for pattern, want := range map[string][]string{
		"step [1]": {"step [1]"}, "a*b": {"a*b"}, "a[": {"a["}, `b\c`: {`b\c`}, "[!a]": {"[!a]"}, "a?b": {"a*b", "aXb"},
		"step ?": {"step 1"}, "none": nil,
	} {
		got, err := fitting(pattern, names)
		testkit.Check(t, err == nil && slices.Equal(got, want), "%s: %q, %v, want %q", pattern, got, err, want)
	}
	_, err := fitting("b[", names)
	testkit.Check(t, err != nil, "a pattern without its end is one")
}
