// SPDX-License-Identifier: Apache-2.0

// Package need is for tests that need something of the machine: a compiler, the reference tools. Where that is missing
// they are left out, and `make test` lists them; with CI=true they fail.
package need

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// machine is a variable that `make test` sets to a sum of the programs that there are. As all that is looked for here
// reads it, `go test` runs anew, when they have changed, what was left out or ran with another release: what lies
// outside of the module it does not watch.
const machine = "TEST_MACHINE"

// NoError ends a test if there is an error, which says that what it needs is missing.
func NoError(t testing.TB, what string, err error) {
	t.Helper()
	_ = os.Getenv(machine)
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("needed: %s: %v", what, err)
	default:
		t.Skipf("SKIPPED, NOT TESTED: needed: %s: %v", what, err)
	}
}

// Root leaves out what only root can do: make things that are another user's, or become one.
func Root(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skipf("SKIPPED, NOT TESTED: only root can %s", why)
	}
}

// Program finds a program; hint says what for, or of what package it is.
func Program(t testing.TB, name, hint string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	NoError(t, name+" ("+hint+")", err)
	return path
}

// Reference finds a program of the reference implementation of OTF2.
func Reference(t testing.TB, name string) (path string) {
	t.Helper()
	return Program(t, name, "Debian: otf2-tools")
}

const python = "/usr/bin/python3" // the one for which Debian's package is installed

var bindings = sync.OnceValue(func() error { return exec.Command(python, "-I", "-c", "import otf2").Run() })

// Python is the interpreter that has the bindings of the reference implementation.
func Python(t testing.TB) (path string) {
	t.Helper()
	NoError(t, "OTF2's Python bindings (Debian: python3-otf2)", bindings())
	return python
}

// Tool finds a program that tests/reference/tools.sh has put into the build folder.
func Tool(t testing.TB, name string) (path string) {
	t.Helper()
	path, err := builtTool(name)
	NoError(t, name+" (make setup)", err)
	return path
}

// Pipit is an interpreter that has pipit, whose checkout only its user can name: without it the test is left out.
func Pipit(t testing.TB) (path string) {
	t.Helper()
	path, err := builtTool("pipit/python")
	if err != nil {
		t.Skipf("SKIPPED, NOT TESTED: no pipit: make setup PIPIT=DIR, a checkout of it")
	}
	return path
}

func builtTool(name string) (path string, err error) {
	root, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil {
			break
		}
		if up := filepath.Dir(root); up != root {
			root = up
			continue
		}
		err = errors.New("not in the repository")
	}
	if err == nil {
		path = filepath.Join(root, "build", "tools", name)
		_, err = os.Stat(path)
	}
	return path, err
}
