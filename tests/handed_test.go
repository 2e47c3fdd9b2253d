// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Layers call each other downwards also where no import shows it: what a package is handed, a function or an implementation of its
// interface, may use nothing that the package could not import itself. So a collector that the tool hands "unify" fails here.
// What belongs to the giver itself may be handed: what takes results, or shows how far something is.
func TestNobodyIsHandedWhatItMayNotImport(t *testing.T) {
	t.Parallel()
	used := make(map[taker]bool)
	for _, h := range handed(t, "..") {
		file, _, _ := strings.Cut(h.at, ":")
		own, ok := strings.CutPrefix(h.uses, module+"/")
		to, from := folderOf(strings.TrimPrefix(h.to, module+"/")), folderOf(own)
		if !ok || to == nil || from == nil || to == from || folderOf(file) == to || slices.Contains(to.own, from.dir) || slices.Contains(shared, from.dir) {
			continue
		}
		if at := (taker{file, to.dir}); takers[at] != "" {
			used[at] = true
			continue
		}
		t.Errorf("%s: %s is handed what uses %s, which it may not import", h.at, h.to, h.uses)
	}
	for at := range takers {
		if !used[at] {
			t.Errorf("%s hands %s nothing of the kind any more: take it out of the table", at.file, at.to)
		}
	}
}

// shared are folders of which everybody may be handed what uses them: they only write, count, keep and compare.
var shared = []string{"internal/printable", "internal/regular", "internal/stats", "internal/atomicfile", "internal/bounded"}

// taker is a file that hands a folder something.
type taker struct{ file, to string }

// takers are those that hand down what takes results, or gives the rows of a file, and so uses what is above; with what it is.
var takers = map[taker]string{
	{"analysis/bandwidth/read.go", "analysis"}:              "takes operations, of those that are selected",
	{"analysis/live/live.go", "analysis"}:                   "takes operations",
	{"analysis/matrix/matrix.go", "analysis"}:               "takes operations that are selected",
	{"analysis/matrix/matrix.go", "facts"}:                  "takes transfers that are selected",
	{"analysis/operations/operations.go", "analysis"}:       "takes operations",
	{"analysis/operations/operations.go", "analysis/waits"}: "takes waits of ranks that are selected, and says which ranks have rows",
	{"analysis/operations/operations.go", "facts"}:          "takes regions",
	{"analysis/operations/part.go", "analysis"}:             "takes operations",
	{"analysis/overlap/overlap.go", "analysis"}:             "takes regions that are selected",
	{"analysis/overlap/overlap.go", "facts"}:                "takes regions",
	{"analysis/phases/each.go", "facts"}:                    "takes regions",
	{"analysis/selection/selection.go", "facts"}:            "takes regions",
	{"analysis/tally/tally.go", "analysis"}:                 "takes regions that are selected",
	{"cmd/nccl-otf2/experiment.go", "experiment"}:           "shows how far collectors are",
	{"collector/recording.go", "otf2"}:                      "how long a disk that fails is waited for",
	{"collector/recording.go", "regions"}:                   "where the timeline goes: to event files, or in profile mode to sums",
	{"profile/cubex/archive.go", "analysis/operations"}:     "takes waits and operations",
	{"timeline/read.go", "analysis/operations"}:             "takes operations, for the matrix",
	{"export/walk.go", "facts"}:                             "takes regions and transfers that are selected",
	{"export/tables.go", "analysis/phases"}:                 "takes phases that are selected",
	{"export/jsonl.go", "facts"}:                            "takes operations, regions and transfers",
	{"profile/cubex/write.go", "cube"}:                      "gives the rows of a metric",
	{"regions/kerneltimes.go", "regions/cuda"}:              "plans and rows of the timeline, which take what kernels are linked to",
	{"regions/plan.go", "regions/cuda"}:                     "the same",
	{"scorep/events.go", "experiment/jobs"}:                 "one step of a loop over rows",
	{"scorep/ends.go", "experiment/jobs"}:                   "the same",
	{"scorep/merge.go", "experiment/jobs"}:                  "the same",
	{"view/phases.go", "otf2"}:                              "takes events",
	{"view/read.go", "otf2"}:                                "takes events",
}

// The test above sees what it is to see: the packages of testdata/handed hand down what is above in each of the ways that there are.
func TestWhatIsHandedIsSeen(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, h := range handed(t, "testdata/handed") {
		if h.to != "handed/low" || h.uses != "handed/high" {
			t.Errorf("%+v", h)
		}
		seen[h.at] = true
	}
	text, err := os.ReadFile("testdata/handed/top/top.go")
	if err != nil {
		t.Fatal(err)
	}
	wanted := 0
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.Contains(line, "// seen") {
			continue
		}
		wanted++
		if at := fmt.Sprintf("tests/testdata/handed/top/top.go:%d", i+1); !seen[at] {
			t.Errorf("not seen: %s: %s", at, strings.TrimSpace(line))
		}
	}
	if len(seen) != wanted || wanted < 8 {
		t.Errorf("seen: %v; %d are to be", slices.Sorted(maps.Keys(seen)), wanted)
	}
}

// hand is a value that a package hands to another one: what it does when it is called uses a third one.
type hand struct{ at, to, uses string }

// listed is what `go list` tells of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Standard                bool
	Module                  *struct{ Main bool }
}

// handed finds what the packages of the module in dir hand to each other.
func handed(t *testing.T, dir string) (all []hand) {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Standard,Module", "./...")
	list.Dir = dir
	var problems strings.Builder
	list.Stderr = &problems
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	exports, own := make(map[string]string), make(map[string]*listed)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			own[p.ImportPath] = p
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(own)) {
		g := &giver{
			fset: fset, root: root, path: path, own: own, bodies: make(map[types.Object]ast.Node), flows: make(map[types.Object][]ast.Expr),
			info: &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object), Defs: make(map[*ast.Ident]types.Object)},
		}
		for _, name := range own[path].GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(own[path].Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			g.files = append(g.files, f)
		}
		if g.pkg, err = (&types.Config{Importer: imports}).Check(path, fset, g.files, g.info); err != nil {
			t.Fatal(err)
		}
		all = append(all, g.hands()...)
	}
	return all
}

// giver is a package that is looked at.
type giver struct {
	fset   *token.FileSet
	root   string
	path   string
	own    map[string]*listed // packages of the module
	pkg    *types.Package
	files  []*ast.File
	info   *types.Info
	bodies map[types.Object]ast.Node   // of its functions
	flows  map[types.Object][]ast.Expr // what its variables, fields and parameters are set to
	found  []hand
}

func (g *giver) hands() []hand {
	for _, f := range g.files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				g.bodies[g.info.Defs[d.Name]] = d.Body
			}
		}
	}
	each := func(set func(slot types.Object, typ types.Type, value ast.Expr)) {
		for _, f := range g.files {
			ast.Inspect(f, func(n ast.Node) bool {
				g.settings(n, set)
				return true
			})
		}
	}
	each(func(slot types.Object, _ types.Type, value ast.Expr) {
		if slot != nil {
			g.flows[slot] = append(g.flows[slot], value)
		}
	})
	each(func(slot types.Object, typ types.Type, value ast.Expr) {
		if to := g.receiver(slot, typ); to != "" {
			g.check(to, value)
		}
	})
	return g.found
}

// settings finds what a node sets: arguments of calls, fields of composite literals, and assignments.
func (g *giver) settings(n ast.Node, set func(slot types.Object, typ types.Type, value ast.Expr)) {
	switch n := n.(type) {
	case *ast.CallExpr:
		sig, ok := g.info.Types[n.Fun].Type.(*types.Signature)
		if !ok {
			return
		}
		callee := g.object(n.Fun)
		declared := sig // whose parameters are the slots: those of the generic function
		if f, ok := callee.(*types.Func); ok {
			declared = f.Origin().Signature()
		}
		for i, a := range n.Args {
			at := min(i, sig.Params().Len()-1)
			if at < 0 {
				break
			}
			slot := declared.Params().At(at)
			typ := slot.Type()
			if s, ok := typ.(*types.Slice); ok && sig.Variadic() && at == sig.Params().Len()-1 {
				typ = s.Elem()
			}
			if callee != nil && callee.Pkg() == slot.Pkg() {
				set(slot, typ, a)
			}
		}
	case *ast.CompositeLit:
		typ := g.info.Types[n].Type
		if p, ok := typ.Underlying().(*types.Pointer); ok { // elided in a list of pointers
			typ = p.Elem()
		}
		s, ok := typ.Underlying().(*types.Struct)
		for i, e := range n.Elts {
			value := e
			var slot types.Object
			if kv, isKV := e.(*ast.KeyValueExpr); isKV {
				value = kv.Value
				if key, isName := kv.Key.(*ast.Ident); ok && isName {
					slot = g.info.Uses[key]
				}
			} else if ok {
				slot = s.Field(i)
			}
			if slot != nil {
				set(slot, slot.Type(), value)
			} else if m, ok := typ.Underlying().(interface{ Elem() types.Type }); ok {
				if name, ok := typ.(*types.Named); ok {
					set(name.Obj(), m.Elem(), value)
				}
			}
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) {
				if slot := g.object(left); slot != nil {
					set(slot, slot.Type(), n.Rhs[i])
				}
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if slot := g.info.Defs[name]; i < len(n.Values) && slot != nil {
				set(slot, slot.Type(), n.Values[i])
			}
		}
	}
}

// object is what an expression names: a function, a variable, a field.
func (g *giver) object(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if o := g.info.Defs[e]; o != nil {
			return o
		}
		return g.info.Uses[e]
	case *ast.SelectorExpr:
		return g.info.Uses[e.Sel]
	case *ast.IndexExpr:
		return g.object(e.X)
	case *ast.IndexListExpr:
		return g.object(e.X)
	}
	return nil
}

// receiver is the package of the module, another one, that a slot belongs to which takes functions, or what implements its interface; "" if it is none.
func (g *giver) receiver(slot types.Object, typ types.Type) string {
	if slot == nil || slot.Pkg() == nil || slot.Pkg().Path() == g.path || g.own[slot.Pkg().Path()] == nil {
		return ""
	}
	if named, ok := typ.(*types.Named); ok && types.IsInterface(named) && (named.Obj().Pkg() == nil || g.own[named.Obj().Pkg().Path()] == nil) {
		return "" // error, io.Writer
	}
	switch u := typ.Underlying().(type) {
	case *types.Signature:
		return slot.Pkg().Path()
	case *types.Interface:
		if u.NumMethods() > 0 {
			return slot.Pkg().Path()
		}
	}
	return ""
}

// check notes what a value that is handed to a package uses.
func (g *giver) check(to string, value ast.Expr) {
	uses, seen := make(map[string]bool), make(map[any]bool)
	g.value(value, uses, seen)
	at := g.fset.Position(value.Pos())
	file, err := filepath.Rel(g.root, at.Filename)
	if err != nil {
		file = at.Filename
	}
	for _, path := range slices.Sorted(maps.Keys(uses)) {
		if path != to {
			g.found = append(g.found, hand{fmt.Sprintf("%s:%d", filepath.ToSlash(file), at.Line), to, path})
		}
	}
}

// value adds the packages that a value uses when it is called.
func (g *giver) value(e ast.Expr, uses map[string]bool, seen map[any]bool) {
	e = ast.Unparen(e)
	if lit, ok := e.(*ast.FuncLit); ok {
		g.body(lit.Body, uses, seen)
		return
	}
	if call, ok := e.(*ast.CallExpr); ok {
		if f, ok := g.object(call.Fun).(*types.Func); ok && f.Pkg() == g.pkg && !seen[f] { // what it returns is in its body
			g.name(f, uses, seen)
		}
		if g.info.Types[call.Fun].IsType() { // a conversion
			g.value(call.Args[0], uses, seen)
		}
	}
	if o := g.object(e); o != nil {
		g.name(o, uses, seen)
	}
	// Methods, where it is handed as an interface.
	typ := g.info.Types[e].Type
	if typ == nil {
		return
	}
	if p, ok := typ.(*types.Pointer); ok {
		typ = p.Elem()
	}
	if named, ok := typ.(*types.Named); ok && !types.IsInterface(named) && named.Obj().Pkg() == g.pkg {
		for m := range named.Methods() {
			g.name(m, uses, seen)
		}
	}
}

// name adds what a function uses, or what a variable can be.
func (g *giver) name(o types.Object, uses map[string]bool, seen map[any]bool) {
	if seen[o] {
		return
	}
	seen[o] = true
	if f, ok := o.(*types.Func); ok {
		f = f.Origin()
		if f.Pkg() != nil && f.Pkg() != g.pkg && g.own[f.Pkg().Path()] != nil {
			uses[f.Pkg().Path()] = true
		} else if body := g.bodies[f]; body != nil {
			g.body(body, uses, seen)
		}
		return
	}
	if _, ok := o.Type().Underlying().(*types.Signature); ok {
		for _, e := range g.flows[o] {
			g.value(e, uses, seen)
		}
	}
}

// body adds what the functions use that are named in a body.
func (g *giver) body(n ast.Node, uses map[string]bool, seen map[any]bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			switch o := g.info.Uses[id].(type) {
			case *types.Func:
				g.name(o, uses, seen)
			case *types.Var:
				g.name(o, uses, seen)
			}
		}
		return true
	})
}
