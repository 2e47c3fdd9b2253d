// SPDX-License-Identifier: Apache-2.0

// Command size prints how large the module's packages are.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// pack is what is counted of a package. Lines are those that are not empty.
type pack struct {
	dir         string
	code, tests lines
	exported    int // names of the package's code, fields and methods included
}

// lines are lines of text.
type lines struct{ all, comments int }

func (l lines) share() string {
	if l.all == 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", (100*l.comments+l.all/2)/l.all)
}

// function is one of a package's code.
type function struct {
	at    string
	name  string
	lines int
}

// survey is what is counted of a module.
type survey struct {
	packs     map[string]*pack
	functions []function
}

func main() {
	large := flag.Int("large", 4000, "list packages of more `lines`")
	flag.Parse()
	s := survey{packs: make(map[string]*pack)}
	err := s.read(".")
	if err == nil {
		err = s.print(os.Stdout, *large)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

// read counts the packages in a folder.
func (s *survey) read(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "build" || name == "node_modules" ||
			strings.HasPrefix(name, ".") && path != root):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "zz_"):
			return nil
		}
		return s.file(path)
	})
}

func (s *survey) file(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	p := s.packs[dir]
	if p == nil {
		p = &pack{dir: dir}
		s.packs[dir] = p
	}
	of := &p.code
	if strings.HasSuffix(path, "_test.go") {
		of = &p.tests
	} else {
		p.exported += exported(f)
	}
	of.all += filled(string(text))
	for _, c := range f.Comments {
		of.comments += commentLines(fset, text, c)
	}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil && of == &p.code {
			begin, end := fset.Position(d.Pos()).Line, fset.Position(d.End()).Line
			s.functions = append(s.functions, function{fmt.Sprintf("%s:%d", path, begin), d.Name.Name, end - begin + 1})
		}
	}
	return nil
}

// filled counts the lines that are not empty.
func filled(text string) (n int) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

// commentLines counts the lines that have nothing but a comment.
func commentLines(fset *token.FileSet, text []byte, group *ast.CommentGroup) (n int) {
	for _, c := range group.List {
		at := fset.Position(c.Pos()).Offset
		begin := strings.LastIndexByte(string(text[:at]), '\n') + 1
		if strings.TrimSpace(string(text[begin:at])) == "" {
			n += filled(c.Text)
		}
	}
	return n
}

// exported counts the names that a file exports.
func exported(f *ast.File) (n int) {
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			if node.Name.IsExported() {
				n++
			}
			return false
		case *ast.TypeSpec:
			if !node.Name.IsExported() {
				return false
			}
			n++
		case *ast.ValueSpec:
			n += exportedOf(node.Names)
			return false
		case *ast.Field:
			n += exportedOf(node.Names)
		}
		return true
	})
	return n
}

func exportedOf(names []*ast.Ident) (n int) {
	for _, name := range names {
		if name.IsExported() {
			n++
		}
	}
	return n
}

const longest = 10

func (s *survey) print(out io.Writer, large int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "code\tcomments\ttests\tcomments\texported\t  package\t")
	var sum pack
	for _, dir := range slices.Sorted(maps.Keys(s.packs)) {
		p := s.packs[dir]
		p.print(w)
		sum.code.add(p.code)
		sum.tests.add(p.tests)
		sum.exported += p.exported
	}
	sum.dir = "all"
	sum.print(w)
	fmt.Fprintln(w)
	fmt.Fprintf(w, "\nlines\t\t  the %d longest functions, without tests\n", longest)
	slices.SortFunc(s.functions, func(a, b function) int { return cmp.Or(b.lines-a.lines, cmp.Compare(a.at, b.at)) })
	for _, f := range s.functions[:min(longest, len(s.functions))] {
		fmt.Fprintf(w, "%d\t\t  %s %s\n", f.lines, f.at, f.name)
	}
	fmt.Fprintf(w, "\npackages of more than %d lines, without tests:", large)
	for _, dir := range slices.Sorted(maps.Keys(s.packs)) {
		if p := s.packs[dir]; p.code.all > large {
			fmt.Fprintf(w, " %s (%d)", dir, p.code.all)
		}
	}
	fmt.Fprintln(w)
	return w.Flush()
}

func (p *pack) print(w io.Writer) {
	fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%d\t  %s\t\n", p.code.all, p.code.share(), p.tests.all, p.tests.share(), p.exported,
		p.dir)
}

func (l *lines) add(o lines) {
	l.all += o.all
	l.comments += o.comments
}
