// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Check checks an archive that can be read.
func Check(t testing.TB, path string) *check.Result {
	t.Helper()
	res := testkit.Value(check.Archive(path, nil))(t)
	return res
}

// Lines are the findings, each as a line.
func Lines(res *check.Result) string {
	var b strings.Builder
	for _, f := range res.Findings {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

// FindDefect spoils an archive and sees what a check says of it: want is a part of a line, its beginning if it is a
// note; "": no findings.
func FindDefect(t *testing.T, inspect func(t testing.TB, path string) *check.Result, s *Sample, spoil func(s *Sample),
	want string) {
	t.Helper()
	spoil(s)
	res := inspect(t, s.Write())
	switch got := Lines(res); {
	case want == "":
		testkit.Check(t, len(res.Findings) == 0, "findings:\n%s", got)
	case !strings.Contains(got, want):
		t.Errorf("want %s\ngot:\n%s", want, got)
	case strings.HasPrefix(want, "note") != (res.Errors() == 0):
		t.Errorf("%d errors:\n%s", res.Errors(), got)
	}
}
