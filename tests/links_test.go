// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// docPages are the pages that people read, as paths from here.
func docPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../packaging/README.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("no pages %s (%v)", pattern, err)
		}
		pages = append(pages, more...)
	}
	return pages
}

var (
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile("(?m)^#+ (.*)$")
	codeFences = regexp.MustCompile("(?ms)^```.*?^```$")
)

// anchors are the places of a page that links can name, made of its headings as forges make them.
func anchors(page string) (names []string) {
	for _, h := range heading.FindAllStringSubmatch(codeFences.ReplaceAllString(page, ""), -1) {
		text := link.ReplaceAllString(h[1], "]")
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, text))
	}
	return names
}

// badLinks are the links of a page, a path from here, to files and sections that are not there.
func badLinks(t *testing.T, page, text string) (bad []string) {
	for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(codeFences.ReplaceAllString(text, ""), ""), -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		file, section, _ := strings.Cut(m[1], "#")
		path := page
		if file != "" {
			path = filepath.Join(filepath.Dir(page), file)
		}
		switch info, err := os.Stat(path); {
		case err != nil:
			bad = append(bad, m[1])
		case section != "" && !info.IsDir():
			target := text
			if path != page {
				target = string(testkit.Read(t, path))
			}
			if !slices.Contains(anchors(target), section) {
				bad = append(bad, m[1])
			}
		}
	}
	return bad
}

// Links of pages to each other lead somewhere.
func TestLinksOfPages(t *testing.T) {
	for _, page := range docPages(t) {
		for _, bad := range badLinks(t, page, string(testkit.Read(t, page))) {
			t.Errorf("%s: leads nowhere: %s", page, bad)
		}
	}
}

// The index of docs names every page there.
func TestIndexHasAllPages(t *testing.T) {
	index := string(testkit.Read(t, "../docs/README.md"))
	for _, page := range docPages(t) {
		name, below := strings.CutPrefix(page, "../docs/")
		if below && name != "README.md" && !strings.Contains(index, "("+name) {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}

func TestBadLinks(t *testing.T) {
	for text, want := range map[string][]string{
		"[a](faq.md)":                                nil,
		"[a](nowhere.md) [b](faq.md#nowhere)":        {"nowhere.md", "faq.md#nowhere"},
		"# `--hang` and more\n[a](#--hang-and-more)": nil,
		"```\n[a](nowhere.md)\n```\n`[a](x)`":        nil,
		"[a](https://example.org/nowhere.md)":        nil,
		"[a](../SECURITY.md#how-to-report)":          nil,
	} {
		if got := badLinks(t, "../docs/faq.md", text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
