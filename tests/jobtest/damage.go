// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
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

// Defects are things that can be wrong with an archive.
type Defects = []struct {
	Name  string
	Spoil func(s *Sample)
}

// FindDefects spoils an archive in one way after the other, and compares what a check says of each with a kept text. The
// first is sound.
func FindDefects(t *testing.T, file string, inspect func(t testing.TB, path string) *check.Result,
	original func() *Sample, defects Defects) {
	t.Helper()
	var said strings.Builder
	for _, d := range append(Defects{{"nothing", func(*Sample) {}}}, defects...) {
		s := original()
		d.Spoil(s)
		path := s.Write()
		lines := strings.ReplaceAll(Lines(inspect(t, path)), filepath.Dir(path), "DIR")
		fmt.Fprintf(&said, "%s:\n%s\n", d.Name, allDefinitions.ReplaceAllString(lines, "${1}N"))
	}
	golden.Text(t, file, said.String())
}

// allDefinitions are as many as there are attributes, and more.
var allDefinitions = regexp.MustCompile("(global definitions, the file has )[0-9]+")
