// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// reader is a program of somebody else's that uses the libraries.
const reader = `package main

import (
	"fmt"

	"MODULE/cube"
	"MODULE/otf2"
)

func main() {
	d := cube.Definitions{}
	fmt.Println(d.AddRegion(cube.Region{Name: "main"}), otf2.TypeString)
}
`

// outside runs a command in a folder, without a network.
func outside(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(need.Program(t, name, "to build a module"), args...)
	cmd.Dir = dir
	// With the flags of this test, else all of Go would be compiled anew.
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOPROXY=off", "GOWORK=off",
		"CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	testkit.Require(t, err == nil, "%s %v: %v\n%s", name, args, err, out)
	return string(out)
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Write(t, path, []byte(text))
	}
}

const module = "github.com/nccl-otf2/nccl-otf2"

// As docs/otf2-format.md says it is done until the module is published.
func TestLibrariesServeOtherModules(t *testing.T) {
	t.Parallel()
	root := testkit.Value(filepath.Abs(".."))(t)
	sums := testkit.Read(t, "../go.sum")
	dir := t.TempDir()
	put(t, dir, map[string]string{"main.go": strings.ReplaceAll(reader, "MODULE", module), "go.sum": string(sums)})
	outside(t, dir, "go", "mod", "init", "example.org/reader")
	outside(t, dir, "go", "mod", "edit", "-require", module+"@v0.0.0", "-replace", module+"="+root)
	got := outside(t, dir, "go", "run", ".")
	testkit.Check(t, strings.HasPrefix(got, "0 "), "it says %q", got)
}

func TestModuleGetsAnotherPath(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"go.mod":      "module github.com/nccl-otf2/nccl-otf2\n\ngo 1.26\n",
		"a/a.go":      "package a\n\nconst A = 1\n",
		"main.go":     "package main\n\nimport \"github.com/nccl-otf2/nccl-otf2/a\"\n\nfunc main() { println(a.A) }\n",
		"pages/it.md": "See github.com/nccl-otf2/nccl-otf2/a, not githubXcom/nccl-otf2/nccl-otf2.\n",
	})
	outside(t, dir, "git", "init", "-q")
	outside(t, dir, "git", "add", ".")
	script := testkit.Value(filepath.Abs("../scripts/module-path.sh"))(t)
	outside(t, dir, script, "example.org/group/tracer")
	outside(t, dir, "go", "vet", "./...")
	testkit.Equal(t, outside(t, dir, "go", "list", "-m"), "example.org/group/tracer\n", "the module")
	text, err := os.ReadFile(filepath.Join(dir, "pages/it.md"))
	testkit.Check(t, err == nil &&
		string(text) == "See example.org/group/tracer/a, not githubXcom/nccl-otf2/nccl-otf2.\n", "%q, %v", text, err)
	for _, bad := range []string{"nothing", "a b.c/d", "x.y/$(z)"} {
		cmd := exec.Command(script, bad)
		cmd.Dir = dir
		testkit.Check(t, cmd.Run() != nil, "%q is taken", bad)
	}
}
