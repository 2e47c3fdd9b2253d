// SPDX-License-Identifier: Apache-2.0

package tests

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

// installedFiles are the files and folders of build/ that README.md tells people to copy.
func installedFiles(t *testing.T) []string {
	t.Helper()
	// Wherever its lines break.
	text := strings.Join(strings.Fields(string(testkit.Read(t, "../README.md"))), " ")
	_, text, _ = strings.Cut(text, " ## Record a job ")
	_, text, begins := strings.Cut(text, "`THIRD-PARTY-LICENSES`):")
	text, _, ends := strings.Cut(text, "Copy them to one folder")
	testkit.Require(t, begins && ends, "README.md does not name what make build leaves")
	var names []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	testkit.Require(t, len(names) >= 4, "README.md names only %q", names)
	return names
}

// install copies what is named to a folder as cp -a does.
func install(t *testing.T, to string, names ...string) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(to, 0o777))
	for _, name := range names {
		testkit.Output(t, exec.Command("cp", "-a", builtFile(t, name), to))
	}
}

// replayInstalled plays a recording with an installed tool, in an empty folder.
func replayInstalled(t *testing.T, tool, recording string) (string, error) {
	t.Helper()
	recording = testkit.Value(filepath.Abs(filepath.Join("../testdata/nccl-callbacks", recording)))(t)
	cmd := exec.Command(tool, "replay", recording, "--clock", "recorded", "--dir", "exp")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err == nil {
		_, err := os.Stat(filepath.Join(cmd.Dir, "exp", "traces.otf2"))
		testkit.Check(t, err == nil, "no archive: %v", err)
	}
	return string(out), err
}

// Recordings are played by what is installed alone, in one folder as README.md has it, and in the folders of a prefix. In one of the
// recordings NCCL is said to be the library that calls.
func TestReplayIsInstalled(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T, root string) string{
		"one folder": func(t *testing.T, root string) string {
			install(t, root, installedFiles(t)...)
			return filepath.Join(root, "nccl-otf2")
		},
		"prefix": func(t *testing.T, root string) string {
			for _, file := range installedFiles(t) {
				if strings.HasPrefix(file, "libexec") {
					install(t, root, file)
				} else {
					install(t, filepath.Join(root, "bin"), file)
				}
			}
			return filepath.Join(root, "bin", "nccl-otf2")
		},
	} {
		for _, recording := range []string{"09-straggler-4p", "11-starved-2p"} {
			t.Run(name+"/"+recording, func(t *testing.T) {
				t.Parallel()
				out, err := replayInstalled(t, place(t, t.TempDir()), recording)
				testkit.Check(t, err == nil, "%v\n%s", err, out)
			})
		}
	}
}

// Where the host is missing, one line says which file, and where it is looked for.
func TestReplayWithoutItsHost(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, file := range installedFiles(t) {
		if !strings.HasPrefix(file, "libexec") {
			install(t, root, file)
		}
	}
	out, err := replayInstalled(t, filepath.Join(root, "nccl-otf2"), "09-straggler-4p")
	want := filepath.Join(root, "libexec", "nccl-otf2", "replay-host")
	testkit.Check(t, err != nil && strings.Count(out, "\n") == 1 && strings.Contains(out, want),
		"%v\n%swant one line that names %s", err, out, want)
}

// makeInstall installs what is built, or takes it away again.
func makeInstall(t *testing.T, action, destination, libraries string) {
	t.Helper()
	cmd := exec.Command("packaging/install.sh", action)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "BUILD="+builtFile(t, "."), "PREFIX="+prefix,
		"LIBDIR="+filepath.Join(prefix, libraries), "DESTDIR="+destination)
	testkit.Output(t, cmd)
}

const prefix = "/opt/nccl-otf2"

// What is installed works from where it lies, wherever the system has its libraries: the tool finds the plugin, the plugin the tool. Nothing is
// left when it is taken away.
func TestInstall(t *testing.T) {
	t.Parallel()
	for _, libraries := range []string{"lib", "lib64", "lib/x86_64-linux-gnu"} {
		t.Run(libraries, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			makeInstall(t, "install", root, libraries)
			tool := filepath.Join(root, prefix, "bin/nccl-otf2")
			for _, recording := range []string{"09-straggler-4p", "c05-balanced-4p", "c07-startup-4p",
				"c10-missing-4p"} {
				playByName(t, tool, recording)
			}
			exp := filepath.Join(t.TempDir(), "exp")
			runTool(t, tool, "replay", filepath.Join(root, prefix, "share/nccl-otf2/recordings/09-straggler-4p"),
				"--clock", "recorded", "--dir", exp)
			if raw, err := filepath.Glob(filepath.Join(exp, "shards", "*.spool*")); err != nil || len(raw) > 0 {
				t.Errorf("the plugin did not find the collector, and wrote %q (%v)", raw, err)
			}
			pages(t, tool, filepath.Join(root, prefix, "share/man/man1"))
			compiles(t, filepath.Join(root, prefix, "include"))
			foundByBuilds(t, filepath.Join(root, prefix), libraries)
			makeInstall(t, "uninstall", root, libraries)
			left, err := os.ReadDir(filepath.Join(root, prefix))
			testkit.Check(t, err == nil && len(left) == 0, "left: %v, %v", left, err)
		})
	}
}

// playByName plays a recording that is installed with the tool, in an empty folder.
func playByName(t *testing.T, tool, name string) {
	t.Helper()
	cmd := exec.Command(tool, "replay", name, "--clock", "recorded", "--dir", "exp")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	testkit.Check(t, err == nil && strings.Contains(string(out), "replayed "+name+": "), "%s: %v\n%s", name, err, out)
}

// pages wants a manual page for each command that the tool lists.
func pages(t *testing.T, tool, dir string) {
	t.Helper()
	_, list, _ := strings.Cut(runTool(t, tool, "--help"), "\nRecord:\n")
	list, _, _ = strings.Cut(list, "\nFlags:\n")
	commands := regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(list, -1)
	testkit.Require(t, len(commands) >= 15, "commands: %q", commands)
	for _, command := range commands {
		if command[1] == "help" {
			continue
		}
		page := filepath.Join(dir, "nccl-otf2-"+command[1]+".1")
		text, err := os.ReadFile(page)
		testkit.Check(t, err == nil && bytes.Contains(text, []byte(".SH SYNOPSIS")), "%s: %v", page, err)
	}
}

// compiles wants the header to do for a program in C and in C++.
func compiles(t *testing.T, include string) {
	t.Helper()
	for _, language := range []string{"c", "c++"} {
		cmd := exec.Command("gcc", "-x", language, "-Wall", "-Werror", "-fsyntax-only", "-I", include, "-")
		cmd.Stdin = strings.NewReader(
			"#include <nccl_otf2.h>\nint main(void) { void (*begin)(const char *) = nccl_otf2_phase_begin; return " +
				"begin == 0; }\n")
		out, err := cmd.CombinedOutput()
		testkit.Check(t, err == nil || strings.Contains(string(out), "cc1plus"), "%s: %v\n%s", language, err, out)
	}
}

// foundByBuilds wants pkg-config and CMake to find header and plugin where they are: DESTDIR has moved them away from the prefix.
func foundByBuilds(t *testing.T, root, libraries string) {
	t.Helper()
	plugin, include := filepath.Join(root, libraries, "libnccl-profiler-otf2.so"), filepath.Join(root, "include")
	config := need.Program(t, "pkg-config", "package pkg-config")
	for _, ask := range [][2]string{{"--variable=plugin", plugin}, {"--variable=includedir", include}} {
		c := exec.Command(config, ask[0], "nccl-otf2")
		c.Env = append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(root, libraries, "pkgconfig"))
		if out, err := c.Output(); err != nil || filepath.Clean(strings.TrimSpace(string(out))) != ask[1] {
			t.Errorf("pkg-config %s: %s (%v), want %s", ask[0], out, err, ask[1])
		}
	}
	script := filepath.Join(t.TempDir(), "script.cmake")
	testkit.Write(t, script, fmt.Appendf(nil, `
function(add_library)
endfunction()
function(set_target_properties)
  message("$<${ARGV}>")
endfunction()
include(%q)
message("$<plugin;${NCCL_OTF2_PLUGIN}>")
`, filepath.Join(root, libraries, "cmake/nccl-otf2/nccl-otf2-config.cmake")))
	out, err := exec.Command(need.Program(t, "cmake", "package cmake"), "-P", script).CombinedOutput()
	testkit.Check(t, err == nil && strings.Contains(string(out), "$<plugin;"+plugin+">") &&
		strings.Contains(string(out), "INTERFACE_INCLUDE_DIRECTORIES;"+include+";"),
		"CMake (%v) finds\n%swant %s and %s", err, out, plugin, include)
}

func runTool(t *testing.T, tool string, args ...string) string {
	t.Helper()
	out, err := exec.Command(tool, args...).CombinedOutput()
	testkit.Require(t, err == nil, "%s %q: %v\n%s", tool, args, err, out)
	return string(out)
}
