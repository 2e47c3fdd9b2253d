// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportedNamesHaveComments holds that whoever reads a package's names learns what they stand for: functions, methods of exported
// types, types, variables and constants, these by themselves or as a group. Commands, tests and what only helps them are left out.
func TestExportedNamesHaveComments(t *testing.T) {
	checked := 0
	eachGoFile(t, func(file string, _ []string) {
		folder := filepath.ToSlash(filepath.Dir(file))
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "tests/") || strings.HasSuffix(folder, "test") {
			return
		}
		positions := token.NewFileSet()
		f, err := parser.ParseFile(positions, filepath.Join("..", file), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name == "main" {
			return
		}
		for _, d := range f.Decls {
			for _, name := range uncommented(d) {
				t.Errorf("%s:%d: %s has no comment that says what it is (meaning, unit, clock, errors)", file, positions.Position(name.Pos()).Line, name.Name)
			}
		}
		checked++
	})
	if checked < 100 {
		t.Errorf("%d files were looked at", checked)
	}
}

// uncommented lists the exported names that a declaration makes without a comment.
func uncommented(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || receiver(d).IsExported()) {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			return nil
		}
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Doc == nil && s.Comment == nil && s.Name.IsExported() {
					names = append(names, s.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if s.Doc == nil && s.Comment == nil && name.IsExported() {
						names = append(names, name)
					}
				}
			}
		}
	}
	return names
}

// receiver is the name of the type that a method is of.
func receiver(d *ast.FuncDecl) *ast.Ident {
	for of := d.Recv.List[0].Type; ; {
		switch e := of.(type) {
		case *ast.StarExpr:
			of = e.X
		case *ast.IndexExpr:
			of = e.X
		case *ast.IndexListExpr:
			of = e.X
		case *ast.Ident:
			return e
		default:
			return ast.NewIdent("_")
		}
	}
}
