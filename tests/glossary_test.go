// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGlossaryNamesTheCode holds docs/glossary.md to the code: each name of its column "in the code" is a file or folder,
// or an exported name (with field or method) of the package of that name.
func TestGlossaryNamesTheCode(t *testing.T) {
	text, err := os.ReadFile("../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := exportedNames(t)
	name := regexp.MustCompile(`^([a-z0-9]+)\.([A-Z]\w*)(?:\.(\w+))*$`)
	looked := 0
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[3], -1) {
			switch m := name.FindStringSubmatch(code[1]); {
			case m != nil:
				looked++
				for _, part := range strings.Split(code[1], ".")[1:] {
					if known := packages[m[1]]; known == nil || !known[part] {
						t.Errorf("%s: package %s has no %s", cells[1], m[1], part)
					}
				}
			case strings.Contains(code[1], "/"):
				looked++
				if _, err := os.Stat(filepath.Join("..", code[1])); err != nil {
					t.Errorf("%s: %v", cells[1], err)
				}
			}
		}
	}
	if looked < 30 {
		t.Errorf("only %d names were looked at", looked)
	}
}

// exportedNames gives, by package name, all names declared at top level and those of fields and methods.
func exportedNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	eachGoFile(t, func(file string, _ []string) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "tests/") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		names := all[parsed.Name.Name]
		if names == nil {
			names = map[string]bool{}
			all[parsed.Name.Name] = names
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, v := range n.Names {
					names[v.Name] = true
				}
			case *ast.Field:
				for _, v := range n.Names {
					names[v.Name] = true
				}
			}
			return true
		})
	})
	return all
}

// TestWordsOfTheGlossary: what the glossary has replaced is not in what users read: pages, help, columns.
func TestWordsOfTheGlossary(t *testing.T) {
	replaced := regexp.MustCompile(`(?i)\b(others waited for it|times last|\bperhaps, judged by|stranger|quieten|is no terminal)\b`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "build" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != "..") {
			return filepath.SkipDir
		}
		inDocs := strings.HasSuffix(path, ".md") && d.Name() != "glossary.md" && d.Name() != "CHANGELOG.md"
		golden := strings.HasSuffix(path, ".txt") && strings.Contains(path, "testdata")
		if !inDocs && !golden {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if word := replaced.FindString(line); word != "" {
				t.Errorf("%s:%d: %q: see docs/glossary.md", path, i+1, word)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
