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
	{dir: "internal/testkit"},
	{dir: "internal/printable"},
	{dir: "internal/mend"},
	{dir: "internal/regular"},
	{dir: "internal/stats"},
	{dir: "internal/recording"},
	{dir: "internal/units"},
	{dir: "internal/folding"},
	{dir: "internal/installed"},
	{dir: "internal/atomicfile", own: []string{"internal/regular", "internal/recording"}},
	{dir: "otf2", own: []string{"internal/printable", "internal/regular", "internal/atomicfile"}},
	{dir: "cube", own: []string{"internal/printable", "internal/regular", "internal/atomicfile"}, external: []string{"github.com/klauspost/compress"}},
	{dir: "plugin/api", tests: []string{"otf2", "scorep"}},
	{dir: "plugin/shm", own: []string{"plugin/api"}, external: []string{"golang.org/x/sys"}},
	{dir: "internal/hidden"},
	{dir: "cupti", external: []string{"github.com/ianlancetaylor/demangle"}},
	{dir: "gpu", own: []string{"internal/regular"}, external: []string{"github.com/google/uuid", "github.com/NVIDIA/go-nvml"}},
	{dir: "config", own: []string{"internal/regular", "plugin/api"}, tests: []string{"internal/hidden"}, external: []string{"github.com/pelletier/go-toml", "go.yaml.in/yaml", "github.com/google/uuid"}},
	{dir: "experiment", own: []string{"internal/regular", "internal/atomicfile", "otf2", "plugin/shm"}, external: []string{"golang.org/x/sys"}},
	{dir: "internal/bounded"},
	{dir: "experiment/commid"},
	{dir: "regions/gpuclock"},
	{dir: "regions/cuda", own: []string{"cupti", "internal/bounded", "regions/gpuclock"}},
	{dir: "regions", own: []string{"internal/units", "otf2", "experiment", "experiment/commid", "plugin/api", "plugin/shm", "cupti", "internal/bounded", "regions/gpuclock", "regions/cuda"}, tests: []string{"replay", "tests"}},
	{dir: "experiment/jobs", own: []string{"internal/units", "otf2", "experiment", "experiment/commid", "regions"}, tests: []string{"scorep"}},
	{dir: "facts", own: []string{"internal/stats", "otf2", "experiment", "regions"}, tests: []string{"scorep"}},
	{dir: "facts/deviation", own: []string{"internal/units", "otf2", "experiment", "experiment/jobs", "regions", "facts"}, tests: []string{"scorep"}},
	{dir: "profile", own: []string{"internal/regular", "internal/stats", "otf2", "experiment", "regions", "facts"}},
	{dir: "collector/control", own: []string{"internal/regular", "internal/atomicfile", "experiment", "plugin/shm"}, external: []string{"golang.org/x/sys"}},
	{dir: "collector/record", own: []string{"internal/recording", "internal/regular", "internal/atomicfile", "experiment", "plugin/api", "plugin/shm"}, external: []string{"golang.org/x/sys"}},
	{dir: "collector/timeservice", tests: []string{"internal/testkit"}},
	{dir: "collector", own: []string{"internal/regular", "collector/control", "collector/record", "collector/timeservice", "otf2", "plugin/shm", "internal/hidden", "gpu", "config", "experiment", "regions", "profile"}, tests: []string{"scorep", "analysis/check"}, external: []string{"golang.org/x/sys", "github.com/google/uuid"}},
	{dir: "clocks", own: []string{"otf2", "regions", "facts"}, tests: []string{"scorep"}},
	{dir: "analysis/overtime", own: []string{"otf2"}},
	{dir: "analysis/causes", own: []string{"otf2", "facts", "analysis/overtime"}},
	{dir: "analysis/verdict", own: []string{"internal/stats", "internal/units", "otf2", "analysis/causes"}},
	{dir: "analysis/hang/waitfor", own: []string{"otf2", "experiment", "experiment/jobs", "regions", "facts", "facts/deviation", "analysis/verdict", "internal/units"}, tests: []string{"scorep"}},
	{dir: "scorep/measurement", own: []string{"internal/regular", "otf2", "experiment", "experiment/jobs", "regions", "facts"}},
	{dir: "scorep/files", own: []string{"internal/units", "internal/regular", "internal/atomicfile", "otf2", "experiment", "experiment/jobs"}, external: []string{"golang.org/x/sys"}},
	{dir: "scorep/ends", own: []string{"otf2", "facts"}},
	{dir: "scorep", own: []string{"scorep/measurement", "scorep/files", "scorep/ends", "internal/units", "internal/atomicfile", "otf2", "plugin/shm", "experiment", "experiment/jobs", "internal/hidden", "regions", "facts", "facts/deviation", "clocks", "analysis/verdict", "analysis/hang/waitfor"}, external: []string{"golang.org/x/sys", "github.com/google/uuid"}},
	{dir: "analysis", own: []string{"internal/stats", "internal/units", "otf2", "internal/hidden", "regions", "facts", "analysis/causes"}, tests: []string{"experiment", "scorep", "analysis/archivetest", "report"}},
	{dir: "analysis/selection", own: []string{"internal/units", "otf2", "facts", "analysis"}, tests: []string{"regions", "scorep", "analysis/archivetest", "analysis/bandwidth", "analysis/matrix", "analysis/operations", "analysis/overlap", "analysis/tally"}},
	{dir: "analysis/matrix", own: []string{"internal/units", "otf2", "facts", "analysis", "analysis/selection"}, tests: []string{"experiment", "scorep", "analysis/archivetest", "report"}},
	{dir: "analysis/bandwidth", own: []string{"internal/stats", "otf2", "regions", "facts", "analysis", "analysis/selection"}, tests: []string{"experiment", "scorep", "analysis/operations", "analysis/archivetest", "report"}},
	{dir: "analysis/efficiency", own: []string{"internal/units", "otf2", "regions", "facts"}},
	{dir: "analysis/phases", own: []string{"otf2", "facts", "analysis", "analysis/efficiency"}, tests: []string{"experiment", "regions", "scorep", "analysis/operations", "analysis/archivetest", "report"}},
	{dir: "analysis/transfers", own: []string{"internal/stats", "internal/units", "otf2", "facts"}},
	{dir: "analysis/criticalpath", own: []string{"internal/stats", "otf2", "facts", "analysis/causes", "analysis/transfers", "analysis/verdict"}},
	{dir: "analysis/waits", own: []string{"otf2", "regions", "facts", "analysis/causes", "analysis/efficiency", "analysis/overtime", "analysis/transfers", "analysis/verdict", "analysis"}, tests: []string{"analysis/archivetest", "report", "experiment", "scorep"}},
	{dir: "analysis/operations", own: []string{"internal/units", "analysis/hang/waitfor", "otf2", "internal/hidden", "regions", "facts", "analysis/causes", "analysis/verdict", "analysis", "analysis/bandwidth", "analysis/criticalpath", "analysis/phases", "analysis/efficiency", "analysis/overtime", "analysis/transfers", "analysis/waits", "analysis/selection"}, tests: []string{"experiment", "scorep", "analysis/matrix", "analysis/archivetest", "report"}},
	{dir: "analysis/overlap", own: []string{"otf2", "facts", "analysis", "analysis/selection"}, tests: []string{"scorep", "analysis/archivetest", "report"}},
	{dir: "analysis/tally", own: []string{"otf2", "experiment", "regions", "facts", "analysis", "analysis/selection"}, tests: []string{"scorep", "analysis/archivetest", "report"}},
	{dir: "analysis/check", own: []string{"internal/printable", "internal/regular", "otf2", "regions", "facts", "analysis"}, tests: []string{"experiment", "scorep", "analysis/archivetest"}},
	{dir: "analysis/scalasca", own: []string{"otf2", "facts", "analysis/check"}, tests: []string{"analysis/archivetest"}},
	{dir: "analysis/compare", own: []string{"internal/stats", "internal/units", "otf2", "regions", "facts", "analysis"}, tests: []string{"scorep", "analysis/archivetest"}},
	{dir: "analysis/hang/ras", own: []string{"internal/mend", "internal/units", "experiment/jobs", "analysis/verdict", "analysis/hang/waitfor"}, tests: []string{"experiment", "scorep"}},
	{dir: "analysis/hang", own: []string{"experiment", "experiment/jobs", "analysis", "analysis/verdict", "analysis/hang/waitfor", "analysis/hang/ras"}, tests: []string{"scorep", "analysis/archivetest", "report"}},
	{dir: "analysis/live", own: []string{"otf2", "experiment", "experiment/jobs", "facts", "analysis", "analysis/hang/waitfor", "analysis/waits"}, tests: []string{"scorep", "analysis/archivetest", "analysis/hang", "analysis/verdict"}},
	{dir: "analysis/archivetest", own: []string{"otf2", "experiment", "regions", "scorep", "analysis/operations", "analysis/check"}},
	{dir: "report", own: []string{"internal/printable", "internal/folding", "internal/units", "internal/hidden", "regions", "regions/cuda", "facts", "analysis", "analysis/bandwidth", "analysis/criticalpath", "analysis/matrix", "analysis/phases", "analysis/efficiency", "analysis/overtime", "analysis/waits", "analysis/operations", "analysis/verdict", "analysis/overlap", "analysis/tally", "analysis/compare", "analysis/hang", "analysis/hang/waitfor", "analysis/live", "analysis/selection"}, tests: []string{"otf2", "experiment", "scorep", "analysis/check", "analysis/scalasca", "analysis/archivetest"}},
	{dir: "view", own: []string{"internal/units", "internal/atomicfile", "otf2", "experiment", "regions", "facts", "scorep/files", "analysis"}, tests: []string{"scorep", "analysis/check", "analysis/scalasca"}},
	{dir: "sql"},
	{dir: "export", own: []string{"internal/regular", "internal/units", "sql", "internal/atomicfile", "internal/stats", "otf2", "plugin/api", "plugin/shm", "regions", "facts", "profile", "analysis", "analysis/matrix", "analysis/phases", "analysis/waits", "analysis/operations", "analysis/selection", "analysis/verdict"}, tests: []string{"experiment", "scorep"}, external: []string{"github.com/klauspost/compress", "github.com/parquet-go/parquet-go", "google.golang.org/protobuf"}},
	{dir: "ingest", own: []string{"internal/mend", "internal/units", "internal/regular", "otf2", "plugin/api", "plugin/shm", "experiment", "regions"}, tests: []string{"scorep", "analysis", "analysis/matrix", "analysis/waits", "analysis/operations", "analysis/check", "analysis/hang", "export", "replay"}, external: []string{"github.com/google/uuid"}},
	{dir: "profile/cubex", own: []string{"internal/regular", "internal/stats", "internal/atomicfile", "otf2", "cube", "experiment", "experiment/jobs", "regions", "facts", "profile", "scorep", "analysis", "analysis/waits", "analysis/operations", "analysis/tally"}},
	{dir: "timeline", own: []string{"otf2", "experiment", "regions", "facts", "scorep", "analysis", "analysis/bandwidth", "analysis/causes", "analysis/criticalpath", "analysis/matrix", "analysis/phases", "analysis/selection", "analysis/waits", "analysis/operations", "analysis/overtime", "analysis/verdict", "report", "internal/units"}, tests: []string{"analysis/archivetest", "replay", "tests"}, external: []string{"github.com/klauspost/compress"}},
	{dir: "replay", own: []string{"config", "internal/recording", "internal/installed", "internal/regular", "plugin/api", "internal/need", "internal/testkit", "internal/hidden"}, external: []string{"golang.org/x/sys"}},
	{dir: "replay/rawfile", own: []string{"internal/units", "plugin/api", "plugin/shm", "replay"}, tests: []string{"internal/recording", "collector/record", "experiment"}},
	{dir: "cmd/nccl-otf2-collector", own: []string{"internal/installed", "internal/printable", "collector"}},
	{dir: "cmd/nccl-otf2", own: []string{"experiment/jobs", "internal/recording", "internal/installed", "internal/printable", "internal/folding", "internal/units", "internal/regular", "internal/atomicfile", "otf2", "cube", "plugin/api", "plugin/shm", "internal/hidden", "gpu", "config", "experiment", "regions", "collector/control", "collector/record", "collector", "scorep", "analysis", "analysis/bandwidth", "analysis/matrix", "analysis/operations", "analysis/overlap", "analysis/tally", "analysis/check", "analysis/scalasca", "analysis/compare", "analysis/hang", "analysis/hang/ras", "analysis/live", "report", "view", "sql", "export", "ingest", "profile/cubex", "timeline", "replay", "replay/rawfile", "analysis/selection"},
		tests: []string{"tests"}, external: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys"}},
	{dir: "packaging"},
	{dir: "packaging/site", external: []string{"github.com/yuin/goldmark"}},
	{dir: "query", external: []string{"github.com/duckdb/duckdb-go"}},
	{dir: "tests", own: []string{"replay"}, external: []string{"golang.org/x/sys", "github.com/chromedp"}},
}

// testSupport are the folders, and testModules the modules, that may be imported by tests of every folder.
var testSupport = []string{"internal/golden", "internal/need", "internal/testkit"}

var testModules = []string{"github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "pgregory.net/rapid", "github.com/prometheus/common", "github.com/parquet-go/parquet-go", "google.golang.org/protobuf"}

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
// facts; the others write them or hold archives, also those of other tools, against the rules of their grammar.
var decoders = map[string][]string{
	"facts/operation.go":               nil, // all
	"facts/region.go":                  {"EventEnter", "EventLeave"},
	"facts/step.go":                    nil,
	"facts/transfer.go":                nil,
	"profile/writer.go":                nil,
	"view/simplerow.go":                nil, // puts simpler records in the place of others
	"analysis/archivetest/scalasca.go": nil,
	"analysis/check/events.go":         nil,
	"analysis/scalasca/check.go":       nil,
	"analysis/scalasca/replay.go":      nil,
	"analysis/scalasca/notices.go":     nil,
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

// docs/architecture.md shows the table: each folder has a row, or is named in that of the folder above it, and a row lists what the folder may
// import. Names that end in "/" are folders within.
func TestArchitectureShowsTheLayers(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "| imports of ours |\n|---|---|---|\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatal("docs/architecture.md has no table of folders")
	}
	names := regexp.MustCompile("`([^`]+)`")
	for _, f := range layers {
		if !strings.Contains(table, "`"+f.dir+"/`") && !strings.Contains(table, "`"+path.Base(f.dir)+"/`") {
			t.Errorf("%s has no row in docs/architecture.md", f.dir)
		}
	}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), " | ")
		folders := names.FindAllStringSubmatch(cells[0], -1)
		imports := strings.TrimSuffix(cells[len(cells)-1], " |")
		if len(folders) != 1 || imports == "all" {
			continue
		}
		at := slices.IndexFunc(layers, func(l folder) bool { return l.dir+"/" == folders[0][1] })
		if at < 0 {
			continue // not Go's
		}
		var shown []string
		for _, name := range names.FindAllStringSubmatch(imports, -1) {
			if !strings.HasSuffix(name[1], "/") {
				shown = append(shown, name[1])
			}
		}
		own := slices.Clone(layers[at].own)
		slices.Sort(shown)
		slices.Sort(own)
		if !slices.Equal(shown, own) {
			t.Errorf("%s: docs/architecture.md lists %v, the table here %v", layers[at].dir, shown, own)
		}
	}
}

func TestImportDirection(t *testing.T) {
	files := 0
	eachGoFile(t, func(file string, imports []string) {
		files++
		dir := path.Dir(file)
		test := strings.HasSuffix(file, "_test.go") || strings.HasSuffix(dir, "test") // folders of tests' own helpers
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
				if f.dir != "plugin/shm" && f.dir != "regions" { // regions asks for sizes only
					t.Errorf("%s: unsafe is allowed in plugin/shm, and in regions for sizes", file)
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

// TestEveryFileHasALicence keeps the one-line license notice at the top of each source file.
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
