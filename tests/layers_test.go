// SPDX-License-Identifier: Apache-2.0

// Package tests holds what is tested from outside the packages.
package tests

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path that go.mod gives the module.
var module = func() string {
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		panic(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimPrefix(first, "module ")
}()

// folder is a row of the picture in docs/architecture.md. The folders stand in order of their
// layers: each may import only what stands above it, and of that only what it names.
type folder struct {
	dir      string
	own      []string // folders of this module that it may import
	tests    []string // and those that only its tests may import, to make what they look at
	external []string // modules it may import beside the standard library, in code that is not a test
}

var layers = []folder{
	{dir: "internal/golden", external: []string{"github.com/google/go-cmp"}},
	{dir: "internal/need"},
	{dir: "internal/printable"},
	{dir: "internal/regular"},
	{dir: "internal/stats"},
	{dir: "internal/atomicfile"},
	{dir: "otf2", own: []string{"internal/printable", "internal/regular", "internal/atomicfile"}},
	{dir: "cube", own: []string{"internal/printable", "internal/regular", "internal/atomicfile"}, external: []string{"github.com/klauspost/compress"}},
	{dir: "plugin/api"},
	{dir: "plugin/shm", own: []string{"plugin/api"}, external: []string{"golang.org/x/sys"}},
	{dir: "internal/hidden"},
	{dir: "cupti", external: []string{"github.com/ianlancetaylor/demangle"}},
	{dir: "gpu", external: []string{"github.com/google/uuid", "github.com/NVIDIA/go-nvml"}},
	{dir: "config", own: []string{"internal/regular", "plugin/api"}, tests: []string{"internal/hidden"}, external: []string{"github.com/spf13/viper", "github.com/spf13/cast", "github.com/go-viper/mapstructure", "github.com/google/uuid"}},
	{dir: "experiment", own: []string{"internal/regular", "internal/atomicfile", "otf2", "plugin/shm"}, external: []string{"golang.org/x/sys"}},
	{dir: "internal/bounded"},
	{dir: "regions/gpuclock"},
	{dir: "regions/cuda", own: []string{"cupti", "internal/bounded", "regions/gpuclock"}},
	{dir: "regions", own: []string{"otf2", "experiment", "plugin/shm", "cupti", "internal/bounded", "regions/gpuclock", "regions/cuda"}, tests: []string{"replay", "tests"}},
	{dir: "experiment/jobs", own: []string{"otf2", "experiment", "regions"}, tests: []string{"scorep"}},
	{dir: "facts", own: []string{"otf2", "experiment", "regions"}, tests: []string{"scorep"}},
	{dir: "profile", own: []string{"internal/regular", "internal/stats", "otf2", "experiment", "regions", "facts"}},
	{dir: "collector", own: []string{"internal/regular", "plugin/api", "internal/atomicfile", "otf2", "experiment", "plugin/shm", "config", "gpu", "internal/hidden", "regions", "profile"}, tests: []string{"scorep", "analysis"}, external: []string{"golang.org/x/sys", "github.com/google/uuid"}},
	{dir: "clocks", own: []string{"otf2", "regions", "facts"}, tests: []string{"scorep"}},
	{dir: "scorep", own: []string{"internal/regular", "internal/atomicfile", "otf2", "experiment", "experiment/jobs", "internal/hidden", "regions", "facts", "clocks"}, external: []string{"golang.org/x/sys", "github.com/google/uuid"}},
	{dir: "analysis", own: []string{"internal/regular", "internal/printable", "internal/stats", "otf2", "experiment", "experiment/jobs", "internal/hidden", "regions", "facts"}, tests: []string{"scorep"}},
	{dir: "view", own: []string{"internal/regular", "otf2", "experiment", "regions", "facts", "scorep", "analysis"}},
	{dir: "export", own: []string{"internal/atomicfile", "otf2", "plugin/shm", "regions", "facts", "analysis"}, tests: []string{"scorep", "experiment"}, external: []string{"github.com/klauspost/compress", "github.com/parquet-go/parquet-go"}},
	{dir: "ingest", own: []string{"internal/regular", "plugin/api", "otf2", "experiment", "plugin/shm", "regions"}, tests: []string{"scorep", "analysis", "export", "replay"}, external: []string{"github.com/google/uuid"}},
	{dir: "profile/cubex", own: []string{"internal/regular", "internal/atomicfile", "internal/stats", "otf2", "experiment", "regions", "facts", "scorep", "analysis", "cube", "profile"}},
	{dir: "timeline", own: []string{"otf2", "experiment", "regions", "facts", "scorep", "analysis"}, tests: []string{"replay", "tests"}, external: []string{"github.com/klauspost/compress"}},
	{dir: "replay", own: []string{"internal/regular", "plugin/api", "internal/need", "internal/hidden"}, external: []string{"golang.org/x/sys"}},
	{dir: "cmd/nccl-otf2", own: []string{"internal/regular", "internal/atomicfile", "internal/printable", "otf2", "experiment", "plugin/api", "plugin/shm", "config", "gpu", "internal/hidden", "regions", "collector", "scorep", "analysis", "view", "export", "ingest", "replay", "cube", "profile/cubex", "timeline"},
		external: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys"}},
	{dir: "packaging"},
	{dir: "tests", own: []string{"replay"}, external: []string{"golang.org/x/sys", "github.com/chromedp"}},
}

// testSupport are the folders, and testModules the modules, that may be imported by tests of every folder.
var testSupport = []string{"internal/golden", "internal/need"}

var testModules = []string{"github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "pgregory.net/rapid", "github.com/prometheus/common", "github.com/parquet-go/parquet-go"}

// folderOf gives the row that a slash path relative to the root belongs to.
func folderOf(dir string) *folder {
	var nearest *folder
	for i := range layers {
		f := &layers[i]
		if (dir == f.dir || strings.HasPrefix(dir, f.dir+"/")) && (nearest == nil || len(f.dir) > len(nearest.dir)) {
			nearest = f
		}
	}
	return nearest
}

func within(importPath string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool { return importPath == m || strings.HasPrefix(importPath, m+"/") })
}

// decoders are the files that may look at the events of operations, regions, transfers and communicators. What they mean is decided in
// facts; the others write them, hold archives, also those of other tools, against the rules of their grammar, or draw all regions as they are.
var decoders = map[string][]string{
	"facts/operation.go":         nil, // all
	"facts/transfer.go":          nil,
	"profile/writer.go":          nil,
	"analysis/checkevents.go":    nil,
	"analysis/scalasca.go":       nil,
	"analysis/scalascareplay.go": nil,
	"analysis/scalascatales.go":  nil,
	"timeline/read.go":           {"EventEnter", "EventLeave", "EventMpiIsend", "EventRmaPut", "EventRmaOpComplete", "EventNonBlockingCollectiveRequest", "EventMpiIrecvRequest"},
}

// decoded are the beginnings of the names of events that one package decodes.
var decoded = []string{
	"EventMpiCollective", "EventNonBlockingCollective", "EventMpiIsend", "EventMpiIrecv", "EventEnter", "EventLeave", "EventRmaPut", "EventRmaOpComplete",
	"EventCommCreate", "EventCommDestroy",
}

var eventName = regexp.MustCompile(`otf2\.(Event[A-Z]\w+)`)

func TestEventsAreDecodedInOnePlace(t *testing.T) {
	seen := make(map[string]bool)
	eachGoFile(t, func(file string, _ []string) {
		if strings.HasPrefix(file, "otf2/") || strings.HasSuffix(file, "_test.go") {
			return
		}
		text, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range eventName.FindAllStringSubmatch(string(text), -1) {
			if !slices.ContainsFunc(decoded, func(d string) bool { return strings.HasPrefix(m[1], d) }) {
				continue
			}
			may, known := decoders[file]
			seen[file] = true
			if !known || may != nil && !slices.ContainsFunc(may, func(d string) bool { return strings.HasPrefix(m[1], d) }) {
				t.Errorf("%s decodes %s: package facts does", file, m[1])
			}
		}
	})
	for file := range decoders {
		if !seen[file] {
			t.Errorf("%s decodes nothing: it need not be excepted", file)
		}
	}
}

func TestLayersAreInOrder(t *testing.T) {
	for i, f := range layers {
		for _, o := range f.own {
			if at := slices.IndexFunc(layers, func(l folder) bool { return l.dir == o }); at < 0 || at >= i {
				t.Errorf("%s may import %s, which is not below it", f.dir, o)
			}
		}
	}
}

func TestImportDirection(t *testing.T) {
	files := 0
	eachGoFile(t, func(file string, imports []string) {
		files++
		dir := path.Dir(file)
		test := strings.HasSuffix(file, "_test.go")
		f := folderOf(dir)
		if f == nil {
			t.Errorf("%s: folder %s is in no layer: add it to the table here and to docs/architecture.md", file, dir)
			return
		}
		for _, imported := range imports {
			first, _, _ := strings.Cut(imported, "/")
			own, isOwn := strings.CutPrefix(imported, module+"/")
			switch {
			case imported == "C":
				t.Errorf("%s: import \"C\" is allowed nowhere", file)
			case imported == "unsafe":
				if f.dir != "plugin/shm" {
					t.Errorf("%s: unsafe is allowed in plugin/shm only", file)
				}
			case isOwn:
				to := folderOf(own)
				if to == nil || to != f && !slices.Contains(f.own, to.dir) && !(test && (slices.Contains(f.tests, to.dir) || slices.Contains(testSupport, to.dir))) && f.dir != "tests" {
					t.Errorf("%s imports %s: %s may import only %v, and in tests %v", file, imported, f.dir, f.own, f.tests)
				}
			case strings.Contains(first, "."):
				if !within(imported, f.external) && !(test && within(imported, testModules)) {
					t.Errorf("%s imports %s: %s may use only %v", file, imported, f.dir, f.external)
				}
			}
		}
	})
	if files < len(layers) {
		t.Fatalf("looked at %d Go files only: is this the module's root?", files)
	}
}

// eachGoFile calls do with each Go file of the module (slash path from the root) and what it imports.
func eachGoFile(t *testing.T, do func(file string, imports []string)) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != root && (name == "testdata" || name == "build" || name == "node_modules" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		var imports []string
		for _, s := range parsed.Imports {
			v, err := strconv.Unquote(s.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, v)
		}
		do(filepath.ToSlash(rel), imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryFileHasALicence keeps the one-line licence notice at the top of each source file.
func TestEveryFileHasALicence(t *testing.T) {
	kinds := []string{".go", ".c", ".h", ".mk", ".sh", ".map", ".ts", ".mjs", ".css"}
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != ".." && (d.Name() == "testdata" || d.Name() == "build" || d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if d.IsDir() || !slices.Contains(kinds, filepath.Ext(p)) && d.Name() != "Makefile" {
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		head := string(b[:min(len(b), 400)])
		if !strings.Contains(head, "SPDX-License-Identifier: Apache-2.0") {
			t.Errorf("%s has no SPDX-License-Identifier line", p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
