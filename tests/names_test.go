// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/facts"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// nameTables are the files in which the names that archives are read by are defined: attributes, regions, their groups and rows, and properties.
var nameTables = []string{"regions/attribute.go", "regions/region.go", "facts/property.go"}

// meansElse are literals that are equal to such a name and mean something else, by where they stand. otf2/ knows nothing of NCCL, and
// settings have their own table.
var meansElse = map[string][]string{
	"config/":                     nil, // all
	"otf2/":                       nil,
	"plugin/api/":                 nil,       // members of NCCL's own events
	"plugin/shm/record.go":        {"GRAPH"}, // as in plugin/api
	"regions/raw.go":              {"GRAPH", "PID", "QP"},
	"analysis/archivetest/":       nil,                        // archives made up for tests
	"cmd/nccl-otf2/allgatherv.go": {string(facts.PropNNodes)}, // a variable of launchers
	"replay/run.go":               {string(facts.PropRank)},
	"profile/cubex/write.go":      {string(facts.PropNetwork)}, // the name of a call tree
	"plugin/shm/layout.go":        {string(facts.PropPaused)},  // why a call is not handed on to Score-P
	"ingest/":                     {string(facts.PropStates)},  // what became of the input
}

// The names that archives are read by are written in one table each, and used by their constants everywhere: a literal beside it would go on to
// compile when the table changes.
func TestNamesStandInOneTable(t *testing.T) {
	names := make(map[string]bool)
	for _, a := range regions.Attributes {
		names[a.Name] = true
	}
	for _, file := range nameTables[1:] {
		for name := range constants(t, file) {
			names[name] = true
		}
	}
	delete(names, regions.NameCall) // "nccl" is a part of much
	if len(names) < 120 || !names["EVENT_ID"] || !names["PROCESSES_DIED"] || !names["Send GPU wait"] || !names[facts.PropertyPrefix] {
		t.Fatalf("%d names: are the tables there?", len(names))
	}
	eachGoFile(t, func(file string, _ []string) {
		if strings.HasSuffix(file, "_test.go") || slices.Contains(nameTables, file) {
			return
		}
		for _, l := range literals(t, file) {
			if names[l.text] && !elsewhere(file, l.text) || strings.Contains(l.text, facts.PropertyPrefix) {
				t.Errorf("%s:%d: %q is a name of the tables in %v: use the constant", file, l.line, l.text, nameTables)
			}
		}
	})
}

func elsewhere(file, text string) bool {
	for where, literals := range meansElse {
		if strings.HasPrefix(file, where) && (literals == nil || slices.Contains(literals, text)) {
			return true
		}
	}
	return false
}

type literal struct {
	text string
	line int
}

func parsed(t *testing.T, file string) (*ast.File, *token.FileSet) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, filepath.Join("..", file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f, set
}

// literals lists the strings in a file's code, without imports and the tags of fields.
func literals(t *testing.T, file string) (all []literal) {
	f, set := parsed(t, file)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				all = append(all, literal{text, set.Position(n.Pos()).Line})
			}
		}
		return true
	})
	return all
}

// Commands write structs as JSON. A field without a name for it would come out under its Go name.
func TestFieldsOfJSONHaveNames(t *testing.T) {
	seen := 0
	eachGoFile(t, func(file string, _ []string) {
		// Tests and package replay read what others wrote, under any case of its members' names.
		if strings.HasPrefix(file, "tests/") || strings.HasPrefix(file, "replay/") || strings.HasSuffix(file, "_test.go") {
			return
		}
		f, set := parsed(t, file)
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok && slices.ContainsFunc(s.Fields.List, namedInJSON) {
				for _, field := range s.Fields.List {
					seen++
					for _, name := range field.Names {
						if name.IsExported() && !namedInJSON(field) {
							t.Errorf("%v: %s has no name in JSON", set.Position(name.Pos()), name.Name)
						}
					}
				}
			}
			return true
		})
	})
	if seen < 300 {
		t.Errorf("%d fields have names in JSON: are they found?", seen)
	}
}

func namedInJSON(field *ast.Field) bool {
	if field.Tag == nil {
		return false
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	_, named := reflect.StructTag(tag).Lookup("json")
	return err == nil && named
}

// constants lists the strings that a file's exported constants are.
func constants(t *testing.T, file string) map[string]bool {
	all := make(map[string]bool)
	f, _ := parsed(t, file)
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, value := range v.Values {
				if l, ok := value.(*ast.BasicLit); ok && l.Kind == token.STRING && v.Names[i].IsExported() {
					text, err := strconv.Unquote(l.Value)
					if err != nil {
						t.Fatal(err)
					}
					all[text] = true
				}
			}
		}
	}
	return all
}
