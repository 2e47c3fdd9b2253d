// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What docs/reliability.md promises names the tests that hold it: they, the files, and the faults of ours are there.
func TestReliabilityPage(t *testing.T) {
	page := testkit.Value(os.ReadFile("../../docs/reliability.md"))(t)
	declared := make(map[string]bool)
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testkit.Must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "build" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declaration.FindAllSubmatch(text, -1) {
			declared[string(m[1])] = true
		}
		return err
	}))
	names := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(page), -1)
	testkit.Check(t, len(names) >= 20, "only %d names of tests on the page", len(names))
	for _, name := range names {
		testkit.Check(t, declared[name], "docs/reliability.md names %s, which is no test", name)
	}
	for _, path := range regexp.MustCompile(`\b(?:plugin/)?tests/[\w/]+(?:\.c)?`).FindAllString(string(page), -1) {
		_, err := os.Stat(filepath.Join("../..", path))
		testkit.Check(t, err == nil, "docs/reliability.md: %v", err)
	}
	for _, row := range regexp.MustCompile(`TestFaults \(([^)]*)\)`).FindAllSubmatch(page, -1) {
		for _, name := range bytes.Split(row[1], []byte(", ")) {
			testkit.Check(t, known(string(bytes.Trim(name, "`"))),
				"docs/reliability.md names the fault %s, which there is not", name)
		}
	}
	for _, f := range faults {
		testkit.Check(t, bytes.Contains(page, []byte("`"+f.name+"`")) || f.name == "job-stopped" ||
			f.name == "collector-told-to-end", "docs/reliability.md does not say what the fault %s costs", f.name)
	}
}

func known(name string) bool {
	for _, f := range faults {
		if f.name == name {
			return true
		}
	}
	return false
}
