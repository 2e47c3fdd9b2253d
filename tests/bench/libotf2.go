// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed libotf2_bench.c
var libotf2Source []byte

// errNoLibotf2 says what to install.
var errNoLibotf2 = errors.New("libotf2's headers or its tools are missing, there is nothing to compare with: " +
	"install libotf2-trace-dev and otf2-tools (Debian, Ubuntu) or otf2-devel (Fedora, RHEL), and a C compiler")

// buildLibotf2 compiles the cases for libotf2 in dir and returns the program and the library's version.
func buildLibotf2(dir string) (program, version string, err error) {
	cc := cmp.Or(os.Getenv("CC"), "cc")
	for _, tool := range []string{cc, "otf2-config", "otf2-print"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", "", fmt.Errorf("%w (%w)", errNoLibotf2, err)
		}
	}
	source := filepath.Join(dir, "libotf2_bench.c")
	program = filepath.Join(dir, "libotf2_bench")
	if err := os.WriteFile(source, libotf2Source, 0o644); err != nil {
		return "", "", err
	}
	var flags [4][]string
	for i, which := range []string{"--cflags", "--ldflags", "--libs", "--version"} {
		out, err := exec.Command("otf2-config", which).Output()
		if err != nil {
			return "", "", fmt.Errorf("otf2-config %s: %w", which, err)
		}
		flags[i] = strings.Fields(string(out))
	}
	args := append(flags[0], "-std=gnu11", "-O2", "-o", program, source)
	args = append(append(args, flags[1]...), flags[2]...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("%s %s: %w\n%s", cc, strings.Join(args, " "), err, out)
	}
	if n := len(flags[3]); n > 0 {
		version = flags[3][n-1] // of "otf2-config: version 3.0.2"
	}
	return program, version, nil
}
