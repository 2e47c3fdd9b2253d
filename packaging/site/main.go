// SPDX-License-Identifier: Apache-2.0

// Command site makes a web site of the pages of a checkout, with a search that needs no server:
//
//	make site
//
// It is a module of its own, so that the parser of Markdown is in no other program.
package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pagePatterns are the pages, seen from the checkout. Other files that they link to are copied.
var pagePatterns = []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "packaging/README.md",
	"docs/*.md", "docs/*/*.md"}

//go:embed page.html search.js style.css
var assets embed.FS

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: site CHECKOUT FOLDER")
		os.Exit(2)
	}
	if err := build(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// build writes the site of a checkout into a folder, which it makes.
func build(root, out string) error {
	var sources []string
	for _, pattern := range pagePatterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("no pages %s in %s (%v)", pattern, root, err)
		}
		for _, file := range found {
			name, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			sources = append(sources, filepath.ToSlash(name))
		}
	}
	s := site{root: root, out: out, pages: make(map[string]bool)}
	for _, name := range sources {
		s.pages[name] = true
	}
	for _, name := range sources {
		if err := s.page(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	slices.Sort(s.files)
	for _, name := range slices.Compact(s.files) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if err := s.write(shown(name), text); err != nil {
			return err
		}
	}
	for _, name := range []string{"search.js", "style.css"} {
		text, err := assets.ReadFile(name)
		if err != nil {
			return err
		}
		if err := s.write(name, text); err != nil {
			return err
		}
	}
	return s.writeIndex()
}

// site is what is being made.
type site struct {
	root, out string
	pages     map[string]bool // names of Markdown files
	files     []string        // of files that pages show or link to
	sections  []section       // for the search
}

func (s *site) write(name string, text []byte) error {
	path := filepath.Join(s.out, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o666)
}

// target is the name of the file that is made of a page.
func target(page string) string {
	if strings.HasSuffix(page, "README.md") {
		return strings.TrimSuffix(page, "README.md") + "index.html"
	}
	return strings.TrimSuffix(page, ".md") + ".html"
}
