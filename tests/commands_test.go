// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A command of a page that runs tests or benchmarks: its package, and the names that it asks for.
var (
	testCommand = regexp.MustCompile("go test [^`\\n]*?\\./([a-z0-9/]+(?:-[a-z0-9]+)*)([^`\\n]*)")
	askedFor    = regexp.MustCompile(`-(run|bench) '?([A-Za-z|]{4,})`)
	ownFlag     = regexp.MustCompile(` -([a-z][a-z-]*)`)
	// goFlags are go test's own, and that of golden texts (internal/golden).
	goFlags = regexp.MustCompile(
		`^(v|run|bench|benchtime|benchmem|count|timeout|cpu|fuzz|fuzztime|race|short|parallel|tags|args|update)$`)
)

// The pages tell how their figures were found. Tests move; a command that names none any more runs nothing, and
// succeeds.
func TestCommandsOfPagesFindTheirTests(t *testing.T) {
	found := 0
	for _, page := range docPages(t) {
		text := testkit.Read(t, page)
		for _, command := range testCommand.FindAllStringSubmatch(string(text), -1) {
			code := testCode(t, command[1])
			arguments, _, _ := strings.Cut(command[2], "#")
			for _, flag := range ownFlag.FindAllStringSubmatch(arguments, -1) {
				if !goFlags.MatchString(flag[1]) && !regexp.MustCompile(`\(\s*"`+flag[1]+`",`).MatchString(code) {
					t.Errorf("%s: %q: %s has no flag %s", page, strings.TrimSpace(command[0]), command[1], flag[1])
				}
			}
			for _, asked := range askedFor.FindAllStringSubmatch(command[2], -1) {
				kind := map[string]string{"run": "(?:Test|Fuzz|Example)", "bench": "Benchmark"}[asked[1]]
				for _, name := range strings.Split(asked[2], "|") {
					found++
					name = strings.TrimPrefix(name, "Test")
					if !regexp.MustCompile(`(?m)^func ` + kind + `\w*` + name).MatchString(code) {
						t.Errorf("%s: %q: %s has no such test", page, strings.TrimSpace(command[0]), command[1])
					}
				}
			}
		}
	}
	testkit.Check(t, found >= 15, "%d names of tests found in pages: does the search see them?", found)
}

// testCode is the text of a folder's tests.
func testCode(t *testing.T, dir string) string {
	t.Helper()
	files := testkit.Value(filepath.Glob(filepath.Join("..", dir, "*_test.go")))(t)
	var all strings.Builder
	for _, f := range files {
		text := testkit.Read(t, f)
		all.Write(text)
	}
	return all.String()
}

// docPages are the pages that people read, as paths from here.
func docPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../packaging/README.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md"} {
		more, err := filepath.Glob(pattern)
		testkit.Require(t, err == nil && len(more) != 0, "no pages %s (%v)", pattern, err)
		pages = append(pages, more...)
	}
	return pages
}
