// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
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
	eachSource(t, func(path string, text []byte) {
		name := filepath.Base(path)
		inDocs := strings.HasSuffix(path, ".md") && name != "glossary.md" && name != "CHANGELOG.md"
		golden := strings.HasSuffix(path, ".txt") && strings.Contains(path, "testdata")
		if !inDocs && !golden {
			return
		}
		for i, line := range strings.Split(string(text), "\n") {
			if word := replaced.FindString(line); word != "" {
				t.Errorf("%s:%d: %q: see docs/glossary.md", path, i+1, word)
			}
		}
	})
}

// eachSource calls see with the sources and pages of the repository: not what is built or fetched.
func eachSource(t *testing.T, see func(path string, text []byte)) {
	t.Helper()
	of := map[string]bool{".md": true, ".txt": true, ".go": true, ".c": true, ".h": true, ".ts": true}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "build" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != ".."):
			return filepath.SkipDir
		case d.IsDir() || !of[filepath.Ext(path)]:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		see(path, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ruledOut gives the single words that the glossary's last table replaces, as they stand in names: those of more words are of texts.
func ruledOut(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| instead of | write |\n|---|---|\n")
	if !found {
		t.Fatal("docs/glossary.md has no table of other words")
	}
	words := make(map[string]bool)
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			break
		}
		said, _, _ := strings.Cut(cells[1], "(")
		for _, word := range strings.Split(said, ",") {
			if word = strings.TrimSpace(word); word != "" && !strings.Contains(word, " ") {
				words[word], words[word+"s"] = true, true
			}
		}
	}
	return words
}

var (
	wordOfName = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)
	nameInCode = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// inName finds the first of words that a name is made of, as in lostAndTold, LOST_AND_TOLD or lost_and_told; "" if it has none.
func inName(name string, words map[string]bool) string {
	for _, w := range wordOfName.FindAllString(name, -1) {
		low := strings.ToLower(w)
		if words[low] {
			return low
		}
		// Of GPUTold the first word ends before its last capital.
		if upper := strings.IndexFunc(w, unicode.IsLower); upper > 1 && words[low[upper-1:]] {
			return low[upper-1:]
		}
	}
	return ""
}

func TestWordsInNames(t *testing.T) {
	words := map[string]bool{"told": true, "apart": true}
	for name, want := range map[string]string{
		"told": "told", "toldSettings": "told", "AttrGPUApart": "apart", "told_at_once": "told", "NOT_TOLD": "told", "hostsApart": "apart", "isTold2": "told",
		"apartment": "", "toldest": "", "TOLDER": "", "department": "", "untold": "", "GPUApartment": "",
	} {
		if got := inName(name, words); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// notNames are what names cannot stand in, in C and TypeScript: comments and texts. A template's expressions are passed over with it.
var notNames = regexp.MustCompile("(?s)/\\*.*?\\*/|//[^\n]*|\"(?:\\\\.|[^\"\\\\\n])*\"|'(?:\\\\.|[^'\\\\\n])*'|`(?:\\\\.|[^`\\\\])*`")

// namesOf calls see with the names in a source file's code, and whether it is in a language that is looked at.
func namesOf(path string, text []byte, see func(line int, name string)) bool {
	switch filepath.Ext(path) {
	case ".go":
		var s scanner.Scanner
		set := token.NewFileSet()
		s.Init(set.AddFile(path, -1, len(text)), text, nil, 0)
		for at, tok, name := s.Scan(); tok != token.EOF; at, tok, name = s.Scan() {
			if tok == token.IDENT {
				see(set.Position(at).Line, name)
			}
		}
	case ".c", ".h", ".ts":
		code := notNames.ReplaceAllFunc(text, func(passed []byte) []byte { return bytes.Repeat([]byte("\n"), bytes.Count(passed, []byte("\n"))+1) })
		for i, line := range strings.Split(string(code), "\n") {
			for _, name := range nameInCode.FindAllString(line, -1) {
				see(i+1, name)
			}
		}
	default:
		return false
	}
	return true
}

// TestNamesOfTheGlossary: what the glossary's last table replaces is not in the names of Go, C and TypeScript either, tests' included.
func TestNamesOfTheGlossary(t *testing.T) {
	words := ruledOut(t)
	if !words["told"] || !words["apart"] || !words["strangers"] || len(words) < 14 {
		t.Fatalf("only %d words are ruled out: %v", len(words), words)
	}
	files := make(map[string]int)
	eachSource(t, func(path string, text []byte) {
		if namesOf(path, text, func(line int, name string) {
			if word := inName(name, words); word != "" {
				t.Errorf("%s:%d: %s has %q in its name: see docs/glossary.md", path, line, name, word)
			}
		}) {
			files[filepath.Ext(path)]++
		}
	})
	if files[".go"] < 1000 || files[".c"] < 80 || files[".ts"] < 80 {
		t.Errorf("only %v files were looked at", files)
	}
}
