// SPDX-License-Identifier: Apache-2.0

// Licenses prints the license texts of the modules that a Go program is made of, and Go's own, for shipping beside it:
//
//	go run ./packaging/licenses ./cmd/nccl-otf2 >THIRD-PARTY-LICENSES
//
// It fails if a module has none.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// names of files that hold licenses and what has to be kept beside them, as patterns.
var names = []string{"LICEN[CS]E*", "COPYING*", "NOTICE*", "PATENTS*"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: licenses PACKAGE")
		os.Exit(2)
	}
	var text bytes.Buffer
	err := write(&text, os.Args[1])
	if err == nil {
		_, err = os.Stdout.Write(text.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// write prints the texts of all modules that the package needs, in the order of their names.
func write(w *bytes.Buffer, pkg string) error {
	modules, err := modulesOf(pkg)
	if err != nil {
		return err
	}
	goroot, err := run("env", "GOROOT", "GOVERSION")
	if err != nil {
		return err
	}
	goDir, goVersion, _ := strings.Cut(strings.TrimSpace(goroot), "\n")
	fmt.Fprintf(w, "nccl-otf2 is made with the following software. nccl-otf2 itself: Apache License 2.0.\n")
	for _, m := range append([]module{{"Go, its runtime and standard library", goVersion, goDir}}, modules...) {
		texts, err := licensesIn(m.dir)
		if err != nil {
			return fmt.Errorf("%s %s: %w", m.path, m.version, err)
		}
		fmt.Fprintf(w, "\n%s\n%s %s\n%s\n", strings.Repeat("=", 72), m.path, m.version, strings.Repeat("=", 72))
		for _, text := range texts {
			fmt.Fprintf(w, "\n%s\n", bytes.TrimSpace(text))
		}
	}
	return nil
}

type module struct{ path, version, dir string }

func modulesOf(pkg string) ([]module, error) {
	out, err := run(
		"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", pkg)
	if err != nil {
		return nil, err
	}
	lines := strings.Fields(strings.ReplaceAll(out, " ", "\x00")) // a folder's name may have blanks
	var modules []module
	for fields := range slices.Chunk(lines, 3) {
		modules = append(modules, module{fields[0], fields[1], strings.ReplaceAll(fields[2], "\x00", " ")})
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.path, b.path) })
	return slices.Compact(modules), nil
}

func run(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}

var errNone = errors.New("no license in its folder")

func licensesIn(dir string) ([][]byte, error) {
	var texts [][]byte
	for _, name := range names {
		files, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, ".go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil, errNone
	}
	return texts, nil
}
