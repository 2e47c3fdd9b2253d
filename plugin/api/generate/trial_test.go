// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// byHand are all edits that a version 8 needs which has one more event type, a state of it, and one more member of an
// older type: docs/adding-an-event.md tells them. The table and the new file are enough for it to be recorded; those in
// regions draw the event.
var byHand = []struct {
	file, old, new string // old "": a file of its own
}{
	{"plugin/api/generate/table.go", "const Layout = ", "const Layout = 1"},
	{"plugin/api/generate/table.go", "}\n\n// at gives places",
		"\t{8, \"2.33.1\", \"made up\", 144, 8, 8, initID},\n}\n\n// at gives places"},
	{"plugin/api/generate/table.go", "At: at(7, 128), Doc: tagDoc},\n", "At: at(7, 128), Doc: tagDoc},\n" +
		"\t\t\t{Name: \"deadline\", Kind: U64, Go: \"Deadline\", At: at(8, 136)},\n"},
	{"plugin/api/generate/table.go", "}\n\n// States are", `	{
		Name: "CeFence", Doc: "an order between copies of a CeColl", Member: "ceFence", Since: 8, Start: and("CeFence"), NeedsParent: true,
		Preset: "all", Class: "CHANNEL", Depth: 6,
		Members: []Member{
			{Name: "reason", Kind: String, Go: "Reason", At: at(8, 24)},
			{Name: "peer", Kind: I32, Go: "Peer", At: at(8, 32)},
		},
	},
}

// States are`},
	{"plugin/api/generate/table.go", "\"RCCL's version 6: ProxyDiagUpdate\"},\n",
		"\"RCCL's version 6: ProxyDiagUpdate\"},\n\t{\"CeFenceReached\", 8, TransSize, \"\"},\n"},
	{"plugin/vtable_v8.c", "",
		"/* SPDX-License-Identifier: Apache-2.0 */\n#include \"api_versions.h\"\n\n#define VERSION 8\n" +
			"#define STATE ncclotf2_state_v7\n#include \"vtable.inc\"\n"},
	{"regions/model.go", "\t\tshm.EventKernelPhase:  {",
		"\t\tshm.EventCeFence: {start: ts.startCEPart, stop: ts.stopCEPart},\n\t\tshm.EventKernelPhase:  {"},
	{"regions/ce.go", "\tregion := ts.defs.regionRef(name, GroupEnqueue",
		"\tif r.Type == shm.EventCeFence {\n\t\tname = \"CE fence \" + r.Reason\n\t}\n" +
			"\tregion := ts.defs.regionRef(name, GroupEnqueue"},
}

// copyTree copies what the plugin, the tool and the replay host are built from.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		name := d.Name()
		if d.IsDir() {
			if strings.HasPrefix(name, ".") && rel != "." || name == "build" || name == "node_modules" ||
				name == "testdata" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o777)
		}
		if !d.Type().IsRegular() || strings.HasSuffix(name, ".png") || strings.HasSuffix(name, "_test.go") &&
			!strings.HasPrefix(rel, "plugin/shm/") && !strings.HasPrefix(rel, "config/") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o666)
	})
	testkit.Must(t, err)
}

// A made-up version 8 is added as the page says, in a copy of the tree: what is generated compiles and passes the
// checks of layouts, the Go mirror agrees with C, and an event of the new type goes through the plugin and the
// collector into a transcript and into an archive.
func TestAVersionIsAddedByAFewEdits(t *testing.T) {
	cc := need.Program(t, cmp.Or(os.Getenv("CC"), "cc"), "to build the plugin")
	tree := t.TempDir()
	copyTree(t, "../../..", tree)
	edited := map[string]bool{}
	for _, e := range byHand {
		path := filepath.Join(tree, e.file)
		text, err := os.ReadFile(path)
		if e.old != "" && (err != nil || strings.Count(string(text), e.old) != 1) {
			t.Fatalf("%s: %q stands there %d times (%v)", e.file, e.old, strings.Count(string(text), e.old), err)
		}
		if e.old == "" {
			text = []byte(e.new)
		}
		testkit.Must(t, os.WriteFile(path, []byte(strings.Replace(string(text), e.old, e.new, min(1, len(e.old)))),
			0o666))
		edited[e.file] = true
	}
	if len(edited) != 4 { // as docs/adding-an-event.md says
		t.Errorf("%d files are edited by hand", len(edited))
	}
	run := func(env []string, name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir, c.Env = tree, append(os.Environ(), append(env, "CGO_ENABLED=0",
			"GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath")...)
		var errors bytes.Buffer
		c.Stderr = &errors
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errors.Bytes())
		}
		return string(out) + errors.String()
	}
	run(nil, "go", "run", "./plugin/api/generate", "-write", ".")
	run(nil, "go", "test", "./config", "-run", "TestPluginTable$", "-update")

	sources := func(pattern string) []string {
		files, err := filepath.Glob(filepath.Join(tree, pattern))
		testkit.Require(t, err == nil && len(files) != 0, "%v %v", pattern, err)
		return files
	}
	build := filepath.Join(tree, "build")
	testkit.Must(t, os.Mkdir(build, 0o777))
	plugin := filepath.Join(build, "libnccl-profiler-otf2.so")
	flags := []string{"-std=gnu11", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-format-truncation", "-D_GNU_SOURCE",
		"-pthread"}
	run(nil, cc, append(append(flags, "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec", "-shared",
		"-Wl,-z,nodelete",
		"-Wl,--version-script=plugin/export.map", "-o", plugin), append(sources("plugin/*.c"), "-ldl")...)...)
	run(nil, cc, append(flags, "-fsyntax-only", "internal/replay/host/api.c")...)
	program := testkit.Value(filepath.Abs("testdata/trial.c"))(t)
	run(nil, cc, append(flags, "-Iplugin", "-o", "build/trial", program, "-ldl")...)

	run(nil, "go", "test", "-run", "Layout|Record|Decode|Table|Names", "./plugin/shm")
	// The collector is all of the tool that sees events of the plugin: what comes after it reads archives, as this
	// test's own packages do.
	run(nil, "go", "build", "-o", "build/nccl-otf2", "./cmd/nccl-otf2-collector")
	recorded, archive := filepath.Join(tree, "recorded"), filepath.Join(tree, "archive")
	for dir, mode := range map[string]string{recorded: "record", archive: "trace"} {
		output := run([]string{"NCCL_OTF2_DIR=" + dir, "NCCL_OTF2_MODE=" + mode, "NCCL_OTF2_EVENTS=all",
			"NCCL_OTF2_START_LIMIT=60", "NCCL_OTF2_UNIFY=off"},
			filepath.Join(build, "trial"), plugin)
		testkit.Check(t, output == "", "%s: %s", mode, output)
	}
	entered := regionsEntered(t, archive)
	testkit.Check(t, slices.Contains(entered, "CE fence late"), "no fence is in the archive, but %q", entered)
	text := allText(t, recorded)
	for _, want := range []string{`"typeName":"CeFence"`, `"d":{"_":0,"reason":"late","peer":1}`, `"deadline":123456`,
		`"stateName":"CeFenceReached","args":{"transSize":77}`} {
		testkit.Check(t, strings.Contains(text, want), "the recording has no %s:\n%s", want, text)
	}
}

// regionsEntered are the names of an experiment directory's regions that somebody is in.
func regionsEntered(t *testing.T, dir string) (names []string) {
	testkit.Value(scorep.Unify(dir, nil))(t)
	a := testkit.Value(otf2.Open(filepath.Join(dir, "traces.otf2"), nil))(t)
	defer a.Close()
	for ev, err := range a.Events(nil) {
		testkit.Must(t, err)
		if ev.Kind == otf2.EventEnter {
			names = append(names, a.Defs.String(a.Defs.Region(ev.Enter().Region).Name))
		}
	}
	return names
}

// allText is what the files below a folder hold.
func allText(t *testing.T, dir string) string {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		from := io.Reader(file)
		if strings.HasSuffix(path, ".gz") {
			if from, err = gzip.NewReader(file); err != nil {
				return err
			}
		}
		_, err = io.Copy(&all, from)
		return err
	})
	testkit.Must(t, err)
	return all.String()
}
