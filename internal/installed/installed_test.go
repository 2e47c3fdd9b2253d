// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

const library = "libx.so"

// lay puts empty files into a folder, and gives that.
func lay(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		path := filepath.Join(root, f)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Write(t, path, nil)
	}
	return root
}

func TestLibrary(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"beside the tool": {[]string{"bin/" + library, "lib/" + library}, "bin/" + library},
		"in lib":          {[]string{"lib/" + library}, "lib/" + library},
		"in lib64":        {[]string{"lib64/" + library}, "lib64/" + library},
		"in the machine's": {[]string{libraryFolders[3][len("../"):] + "/" + library},
			libraryFolders[3][len("../"):] + "/" + library},
		"a folder is no library": {[]string{"lib/" + library + "/x", "lib64/" + library}, "lib64/" + library},
	} {
		root := lay(t, c.files...)
		got, err := Library(filepath.Join(root, "bin", "nccl-otf2"), library)
		testkit.Check(t, err == nil && got == filepath.Join(root, c.want), "%s: %q, %v", name, got, err)
	}
}

// An installation that was moved is asked before the place for which it was built.
func TestPrefix(t *testing.T) {
	Prefix = lay(t, "lib/"+library, "libexec/x")
	t.Cleanup(func() { Prefix = "" })
	tool := filepath.Join(t.TempDir(), "bin", "nccl-otf2")
	got, err := Library(tool, library)
	testkit.Check(t, err == nil && got == filepath.Join(Prefix, "lib", library), "%q, %v", got, err)
	got, err = Program(tool, "libexec/x")
	testkit.Check(t, err == nil && got == filepath.Join(Prefix, "libexec/x"), "%q, %v", got, err)
	moved := lay(t, "lib64/"+library, "libexec/x")
	got, err = Library(filepath.Join(moved, "bin", "nccl-otf2"), library)
	testkit.Check(t, err == nil && got == filepath.Join(moved, "lib64", library), "%q, %v", got, err)
	got, err = Program(filepath.Join(moved, "bin", "nccl-otf2"), "libexec/x")
	testkit.Check(t, err == nil && got == filepath.Join(moved, "libexec/x"), "%q, %v", got, err)
}

// What the plugin starts is the tool where there is no program for it alone.
func TestCollectorOf(t *testing.T) {
	for _, tc := range []struct {
		tool  string
		files []string
		want  string
	}{
		{"nccl-otf2", []string{Collector}, Collector},
		{"bin/nccl-otf2", []string{Collector}, Collector},
		{"bin/nccl-otf2", []string{Collector, "bin/" + Collector}, "bin/" + Collector},
		{"mine/nccl-otf2", []string{Collector}, "mine/nccl-otf2"},
		{"bin/nccl-otf2", nil, "bin/nccl-otf2"},
	} {
		root := lay(t, append(tc.files, tc.tool)...)
		testkit.Equal(t, CollectorOf(filepath.Join(root, tc.tool)), filepath.Join(root, tc.want), "%v", tc)
	}
}

// A program in libexec finds the tool of its installation, and that of the folder to which all was copied.
func TestToolOf(t *testing.T) {
	for _, tool := range []string{"nccl-otf2", "bin/nccl-otf2"} {
		root := lay(t, tool, Collector)
		got, err := ToolOf(filepath.Join(root, Collector))
		testkit.Check(t, err == nil && got == filepath.Join(root, tool), "%q, %v", got, err)
	}
	got, err := ToolOf(filepath.Join(lay(t, Collector), Collector))
	testkit.Check(t, err != nil, "took %q", got)
}

// What others may have put beside the folder of a tool that is in no prefix is not taken.
func TestNoPrefix(t *testing.T) {
	root := lay(t, "lib/"+library, "libexec/x")
	tool := filepath.Join(root, "mine", "nccl-otf2")
	got, err := Library(tool, library)
	testkit.Check(t, err != nil, "took %q", got)
	got, err = Program(tool, "libexec/x")
	testkit.Check(t, err != nil, "took %q", got)
}

// Where a file is missing, one line says where it was looked for.
func TestMissing(t *testing.T) {
	_, err := Library("/opt/x/bin/nccl-otf2", library)
	for _, place := range []string{"/opt/x/bin/" + library, "/opt/x/lib,", "/opt/x/lib64", "make install"} {
		testkit.Check(t, err != nil && strings.Contains(err.Error(), place) && !strings.Contains(err.Error(), "\n"),
			"%v: does not name %s", err, place)
	}
}
