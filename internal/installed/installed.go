// SPDX-License-Identifier: Apache-2.0

// Package installed finds the files of an installation from the tool's own place: everything in one folder, as `make
// build` leaves it and people copy it, or in the folders of a prefix, as `make install` and packages do it. The plugin
// finds the tool by the same table read the other way round (find in plugin/collector.c).
package installed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Prefix is where the files were to be installed when the tool was built (-X); "": not said. It is asked last: an
// installation may have been moved.
var Prefix string

// libraryFolders are where libraries lie, seen from the tool's folder.
var libraryFolders = []string{".", "../lib", "../lib64", filepath.Join("../lib", multiarch[runtime.GOARCH])}

// multiarch are the names that Debian gives the folders of libraries, by Go's name of the processor.
var multiarch = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// Tool is the absolute path of this executable, symbolic links followed.
func Tool() (string, error) {
	tool, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(tool)
}

// Library is the absolute path of a library that belongs to a tool, given by its file's name. The error names all
// places that were looked at.
func Library(tool, name string) (string, error) {
	var places []string
	for i, folder := range libraryFolders {
		if i == 0 || inPrefix(tool) {
			places = append(places, filepath.Join(filepath.Dir(tool), folder, name))
		}
	}
	if Prefix != "" {
		for _, folder := range libraryFolders[1:] {
			places = append(places, filepath.Join(Prefix, "bin", folder, name))
		}
	}
	return first(places)
}

// Program is the absolute path of a program that only the tool starts, given by its path in the prefix ("libexec/…").
func Program(tool, path string) (string, error) {
	var places []string
	for _, root := range Roots(tool) {
		places = append(places, filepath.Join(root, path))
	}
	return first(places)
}

// Collector is the program that the plugin starts beside each process, by its path in the prefix.
const Collector = "libexec/nccl-otf2/nccl-otf2-collector"

// CollectorOf is the absolute path of what the plugin starts where it finds this tool: the program for it in the tool's
// folder or its prefix, else the tool (prefer_small in plugin/collector.c looks in the same places).
func CollectorOf(tool string) string {
	places := []string{filepath.Join(filepath.Dir(tool), Collector)}
	if inPrefix(tool) {
		places = append(places, filepath.Join(filepath.Dir(tool), "..", Collector))
	}
	if path, err := first(places); err == nil {
		return path
	}
	return tool
}

// QueryProgram contains DuckDB and SQLite, which the tool does not, because it may also run beside each rank.
const QueryProgram = "nccl-otf2-query"

// ErrNoQueryProgram says that QueryProgram is not installed.
var ErrNoQueryProgram = errors.New("is missing, the program")

// FindQueryProgram is the absolute path of QueryProgram beside the tool. The error, which wraps ErrNoQueryProgram, ends
// in what the caller says: what it wants the program for, and what to do.
func FindQueryProgram(wanted string) (string, error) {
	tool, err := Tool()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(tool), QueryProgram)
	if _, err := first([]string{path}); err != nil {
		return "", fmt.Errorf("%s %w that contains %s", path, ErrNoQueryProgram, wanted)
	}
	return path, nil
}

// ToolOf is the absolute path of the tool that belongs to a program in libexec, given by that program's path.
func ToolOf(program string) (string, error) {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return "", err
	}
	root := filepath.Join(filepath.Dir(program), "../..")
	return first([]string{filepath.Join(root, "nccl-otf2"), filepath.Join(root, "bin", "nccl-otf2")})
}

// Roots are the folders that can be the prefix of an installation: that of the tool, where all may have been copied to,
// the one above it if the tool is in a folder bin, and the prefix that the tool was built for.
func Roots(tool string) []string {
	folder := filepath.Dir(tool)
	roots := []string{folder}
	if inPrefix(tool) {
		roots = append(roots, filepath.Dir(folder))
	}
	if Prefix != "" {
		roots = append(roots, Prefix)
	}
	return roots
}

// inPrefix reports whether a tool is in the folder bin of a prefix. From any other folder nothing is looked for
// elsewhere: beside /tmp/mine that would be /tmp/lib, which anybody can make.
func inPrefix(tool string) bool { return filepath.Base(filepath.Dir(tool)) == "bin" }

// first is the first of some places at which there is a file.
func first(places []string) (string, error) {
	for _, path := range places {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	elsewhere := ""
	if len(places) > 1 {
		elsewhere = ", and not in " + strings.Join(folders(places[1:]), ", ")
	}
	return "", fmt.Errorf(
		"%s is missing%s: `make build` makes it, `make install PREFIX=…` installs it; or copy it beside the tool",
		places[0], elsewhere)
}

func folders(paths []string) (all []string) {
	for _, p := range paths {
		all = append(all, filepath.Dir(p))
	}
	return all
}
