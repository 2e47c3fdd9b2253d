// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageText is a page of docs, or "" if there is none.
func pageText(t *testing.T, pages map[string]string, name string) string {
	text, known := pages[name]
	if !known {
		b, err := os.ReadFile(filepath.Join("..", name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		text = string(b)
		pages[name] = text
	}
	return text
}

var (
	citedPage = regexp.MustCompile(`\bdocs/[a-z0-9-]+\.md\b`)
	// What follows a page: sections, and numbers within them (hazards, rules), over the ends of comment lines.
	citedPlace = regexp.MustCompile(`^,? ?(?:§(\d+(?:\.\d+)?)|(?:rules? )?(\d+))\b`)
	aSection   = regexp.MustCompile(`§ ?(\d+(?:\.\d+)?)`)
	comments   = regexp.MustCompile(`\n\s*(?://|\*|#)? ?`)
)

const apiPage = "docs/nccl-profiler-api.md"

// badCitations lists the pages, sections and numbers that a text names and docs has not.
func badCitations(t *testing.T, pages map[string]string, text string) (bad []string) {
	text = comments.ReplaceAllString(text, " ")
	has := func(page, section string) bool {
		return regexp.MustCompile(`(?m)^#+ ` + regexp.QuoteMeta(section) + `\.? `).MatchString(pageText(t, pages, page))
	}
	for _, at := range citedPage.FindAllStringIndex(text, -1) {
		page := text[at[0]:at[1]]
		if pageText(t, pages, page) == "" {
			bad = append(bad, page)
			continue
		}
		scope := pageText(t, pages, page)
		for rest := text[at[1]:]; ; {
			m := citedPlace.FindStringSubmatch(rest)
			if m == nil || m[1] == "" && !strings.HasPrefix(m[0], ",") {
				break
			}
			rest = rest[len(m[0]):]
			if m[1] != "" {
				if !has(page, m[1]) {
					bad = append(bad, page+" §"+m[1])
				}
				_, scope, _ = strings.Cut(pageText(t, pages, page), "\n### "+m[1]+" ")
				scope, _, _ = strings.Cut(scope, "\n#")
			} else if !regexp.MustCompile(`(?m)^` + m[2] + `\. `).MatchString(scope) {
				bad = append(bad, page+", "+m[2])
			}
		}
	}
	return bad
}

// Comments name the page that a fact stands on, by its section.
func TestCitedPagesAndSectionsExist(t *testing.T) {
	out, err := exec.Command("git", "-C", "..", "ls-files", "*.go", "*.c", "*.h", "*.inc", "*.mk", "*.sh", "*.py", "*.ts", "Makefile").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(out))
	pages := map[string]string{}
	cited := 0
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) || filepath.Base(name) == "citations_test.go" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range badCitations(t, pages, string(text)) {
			t.Errorf("%s cites %s, which is not there", name, bad)
		}
		cited += strings.Count(string(text), apiPage)
		// A section without a page is one of this page's, whose name stands above.
		for _, m := range aSection.FindAllStringSubmatch(string(text), -1) {
			if strings.HasSuffix(name, ".go") && strings.Contains(string(text), apiPage) &&
				!regexp.MustCompile(`(?m)^#+ `+regexp.QuoteMeta(m[1])+`\.? `).MatchString(pageText(t, pages, apiPage)) {
				t.Errorf("%s cites §%s, which is not there", name, m[1])
			}
		}
	}
	if cited < 30 {
		t.Errorf("only %d citations of %s", cited, apiPage)
	}
}

func TestBadCitationsAreFound(t *testing.T) {
	pages := map[string]string{}
	for text, want := range map[string][]string{
		"// see docs/nccl-profiler-api.md §3.4, 10).":                    nil,
		"// see docs/nccl-profiler-api.md\n\t// §3.4, 10, and §2":        nil,
		"// docs/nccl-profiler-api.md, rules 15, 16.":                    nil,
		"// docs/nccl-profiler-api.md §3.2, §3.5,\n// §3.99":             {apiPage + " §3.99"},
		"// docs/nccl-profiler-api.md §3.4, 13":                          {apiPage + ", 13"},
		"/* docs/nccl-profiler-api.md, rule 21 */":                       {apiPage + ", 21"},
		"# docs/nowhere.md":                                              {"docs/nowhere.md"},
		" * docs/nccl-profiler-api.md\n * §12, docs/architecture.md and": nil,
	} {
		if got := badCitations(t, pages, text); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}
