// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// However much of a library is missing at its end, it is refused: the loader would not refuse it.
func TestTruncatedLibrariesAreRefused(t *testing.T) {
	dir := t.TempDir()
	whole := testkit.Read(t, compile(t, filepath.Join(dir, "whole.so"), pluginSource))
	exports, err := CheckPlugin(filepath.Join(dir, "whole.so"))
	testkit.Require(t, err == nil && fmt.Sprint(exports) == "[5 6]", "whole: %v, %v", exports, err)
	cut := filepath.Join(dir, "cut.so")
	for _, percent := range []int{0, 1, 5, 10, 18, 30, 50, 70, 90, 95, 99} {
		testkit.Write(t, cut, whole[:len(whole)*percent/100])
		_, err := CheckPlugin(cut)
		testkit.Check(t, err != nil, "%d %% of a library pass", percent)
	}
	testkit.Write(t, cut, whole[:len(whole)-1])
	_, err = CheckPlugin(cut)
	testkit.Check(t, err != nil, "a library without its last byte passes")
	// The whole length, of which the end is a hole.
	testkit.Write(t, cut, append(whole[:len(whole)/3:len(whole)/3], make([]byte, len(whole)-len(whole)/3)...))
	_, err = CheckPlugin(cut)
	testkit.Check(t, err != nil, "a library of which two thirds are zero passes")
}

// What lies where the plugin should be, and is none that this machine can load.
func TestUnloadablePlugins(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"nothing", func(*testing.T, string) {}, "no such file"},
		{"a dangling link", func(t *testing.T, path string) { testkit.Must(t, os.Symlink("nowhere", path)) },
			"no such file"},
		{"a link to itself", func(t *testing.T, path string) { testkit.Must(t, os.Symlink(filepath.Base(path), path)) },
			"symbolic links"},
		{"a folder", func(t *testing.T, path string) { testkit.Must(t, os.Mkdir(path, 0o777)) }, "not a regular file"},
		{"a pipe", func(t *testing.T, path string) { testkit.Must(t, unix.Mkfifo(path, 0o666)) }, "not a regular file"},
		{"an empty file", func(t *testing.T, path string) { testkit.Write(t, path, nil) }, "is no ELF file (0 bytes)"},
		{"text", func(t *testing.T, path string) { testkit.Write(t, path, []byte("INPUT(libother.so)\n")) },
			"is no ELF file"},
		{"an object file", func(t *testing.T, path string) {
			compileWith(t, path, pluginSource, "-c")
		}, "nothing to load (ET_REL)"},
		{"a library of other symbols", func(t *testing.T, path string) { compile(t, path, otherSource) },
			"exports no ncclProfiler_v symbol"},
		{"another machine's", func(t *testing.T, path string) {
			b := testkit.Read(t, compile(t, path, pluginSource))
			b[18], b[19] = 0xf3, 0 // RISC-V
			testkit.Write(t, path, b)
		}, "EM_RISCV, this machine is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), PluginName)
			c.make(t, path)
			if _, err := CheckPlugin(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// No code is mapped from a file system that is mounted noexec, and no program started.
func TestNoexec(t *testing.T) {
	need.Root(t, "mount a file system")
	dir := t.TempDir()
	testkit.Must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOEXEC, "size=8m"))
	t.Cleanup(func() { testkit.Must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	f := newInstallation(t)
	copied := filepath.Join(dir, PluginName)
	testkit.Write(t, copied, testkit.Read(t, filepath.Join(f.bin, PluginName)))
	_, err := CheckPlugin(copied)
	testkit.Check(t, err != nil && strings.Contains(err.Error(), "noexec"), "error %v", err)
	f.env["NCCL_PROFILER_PLUGIN"] = copied
	expect(t, f.examine(), "NCCL_PROFILER_PLUGIN", Fail, "noexec")
	f.settings.Collector = filepath.Join(dir, "collector")
	testkit.Must(t, os.WriteFile(f.settings.Collector, []byte("#!/bin/sh\n"), 0o777))
	expect(t, f.examine(), "collector", Warn, "noexec")
}

// A collector of which a part is missing cannot start; the plugin goes on without.
func TestBrokenCollectors(t *testing.T) {
	f := newInstallation(t)
	program := filepath.Join(t.TempDir(), "collector")
	whole := testkit.Read(t, compile(t, program, pluginSource))
	f.settings.Collector = program
	for n, words := range map[int]string{0: "is no ELF file", len(whole) / 10: "is not whole",
		len(whole) - 1: "is not whole"} {
		testkit.Must(t, os.WriteFile(program, whole[:n], 0o777))
		expect(t, f.examine(), "collector", Warn, words)
	}
}

// The name by which RCCL finds the plugin leads to the same file, or is reported.
func TestNameForRCCL(t *testing.T) {
	f := newInstallation(t)
	link := filepath.Join(f.bin, rcclPluginName)
	testkit.Must(t, os.Symlink(PluginName, link))
	for _, c := range f.examine().Checks {
		testkit.Check(t, c.Name != rcclPluginName, "a sound link: %+v", c)
	}
	testkit.Must(t, os.Remove(link))
	testkit.Must(t, os.Symlink("nowhere", link))
	expect(t, f.examine(), rcclPluginName, Warn, "no such file")
}
