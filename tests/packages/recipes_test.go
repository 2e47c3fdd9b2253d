// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// In recipes everything is filled in.
func TestRecipesAreFilledIn(t *testing.T) {
	sum := regexp.MustCompile(`-linux-(x86_64|aarch64)\.tar\.gz': '([0-9a-f]{64})'`)
	for _, file := range packages(t, "recipes/*", 5) {
		text := testkit.Read(t, file)
		left := regexp.MustCompile(`@[A-Za-z0-9_]+@`).Find(text)
		testkit.Check(t, left == nil, "%s has %s", file, left)
		testkit.Check(t, !strings.HasSuffix(file, ".eb") || len(sum.FindAll(text, -1)) == 2,
			"%s has not two checksums:\n%s", file, text)
	}
}

// EasyBuild installs the archive, with its checksum looked at and the recipe's own tests, and makes a module that can
// be loaded.
func TestEasyBuild(t *testing.T) {
	recipe := packages(t, "recipes/*.eb", 1)[0]
	home := t.TempDir()
	python := filepath.Join(home, "venv/bin/python")
	p := place{dir: home, env: []string{"USER=root", "EB_PYTHON=" + python, "MODULES_CMD=" + moduleScript(t)}}
	p.run(t, "python3", "-m", "venv", "venv")
	for _, pins := range []string{"setuptools.txt",
		"easybuild.txt"} { // what builds, then what is built: these are sources
		path := testkit.Value(filepath.Abs(pins))(t)
		pip := exec.Command(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps",
			"--no-build-isolation", "--require-hashes", "-r", path)
		if out, err := pip.CombinedOutput(); err != nil {
			need.NoError(t, "EasyBuild, from PyPI", fmt.Errorf("%w: %s", err, out))
		}
	}
	said := p.run(t, filepath.Join(home, "venv/bin/eb"), recipe, "--sourcepath="+*folder,
		"--prefix="+filepath.Join(home, "eb"), "--modules-tool=EnvironmentModules",
		"--module-syntax=Tcl", "--allow-use-as-root-and-accept-consequences")
	testkit.Contains(t, said, "COMPLETED: Installation ended successfully")
	p.env = append(p.env, "MODULEPATH="+filepath.Join(home, "eb/modules/all"))
	loaded := p.run(t, need.Program(t, "modulecmd", "package environment-modules"), "sh", "load", "nccl-otf2")
	tool := p.run(t, "/bin/sh", "-c", loaded+"\ncommand -v nccl-otf2")
	testkit.Check(t, strings.HasPrefix(tool, filepath.Join(home, "eb/software/nccl-otf2")), "loaded: %s", tool)
}

// moduleScript is what the command modulecmd runs.
func moduleScript(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/*/modulecmd.tcl")
	if err == nil && len(found) == 0 {
		err = os.ErrNotExist
	}
	need.NoError(t, "Environment Modules (Debian: environment-modules)", err)
	return found[0]
}

// The module file finds its prefix, wherever that lies.
func TestModuleFile(t *testing.T) {
	modulecmd := need.Program(t, "modulecmd", "package environment-modules")
	root := unpack(t, packages(t, "*-linux-"+nativeMachine(t)+".tar.gz", 1)[0], t.TempDir())
	p := place{dir: t.TempDir(), env: []string{"MODULEPATH=" + filepath.Join(root, "share/nccl-otf2/modulefiles")}}
	said := p.run(t, modulecmd, "sh", "load", "nccl-otf2")
	testkit.Contains(t, said, "PATH="+root+"/bin:", "MANPATH="+root+"/share/man",
		"PYTHONPATH="+root+"/share/nccl-otf2/python", "CMAKE_PREFIX_PATH="+root,
		"PKG_CONFIG_PATH="+root+"/lib/pkgconfig")
	tool := p.run(t, "/bin/sh", "-c", said+"\ncommand -v nccl-otf2; nccl-otf2 version")
	testkit.Check(t, bytes.HasPrefix([]byte(tool), []byte(root+"/bin/nccl-otf2\nnccl-otf2 ")), "loaded: %s", tool)
}
