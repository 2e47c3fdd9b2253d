// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"debug/elf"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Each module in the tool stands in docs/dependencies.md with a reason, and whether the collector needs it.
func TestDependencies(t *testing.T) {
	page := testkit.Read(t, "../docs/dependencies.md")
	told := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (yes|no) \\| \\S.* \\|$").FindAllStringSubmatch(string(page), -1) {
		told[row[1]] = row[2]
	}
	want := make(map[string]string)
	for m := range modulesOf(t, "../cmd/nccl-otf2") {
		want[m] = "no"
	}
	for m := range modulesOf(t, "../collector") {
		want[m] = "yes"
	}
	if d := cmp.Diff(want, told); d != "" {
		t.Errorf("docs/dependencies.md (in the program −, on the page +):\n%s", d)
	}
}

// modulesOf are the modules, other than this, of a package and all that it imports.
func modulesOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := make(map[string]bool)
	for m := range bytes.FieldsSeq(out) {
		modules[string(m)] = true
	}
	return modules
}

// What is loaded into jobs, and the program beside them, have what docs/dependencies.md says of them.
func TestHardening(t *testing.T) {
	for _, name := range []string{"libnccl-profiler-otf2.so", "libscorep_substrate_nccl_otf2.so"} {
		f := openELF(t, builtFile(t, name))
		relro, stack := protection(f)
		if !relro || !stack {
			t.Errorf("%s: read-only after relocation %t, stack not executable %t", name, relro, stack)
		}
		if now, err := f.DynValue(elf.DT_FLAGS_1); err != nil || len(now) == 0 || elf.DynFlag1(now[0])&elf.DF_1_NOW == 0 {
			t.Errorf("%s is not bound at once (%v %v)", name, now, err)
		}
	}
	plugin := imports(t, openELF(t, builtFile(t, "libnccl-profiler-otf2.so")))
	for _, want := range []string{"__stack_chk_fail", "__snprintf_chk"} {
		if !slices.Contains(plugin, want) {
			t.Errorf("the plugin does without %s", want)
		}
	}
	tool := openELF(t, builtFile(t, "nccl-otf2"))
	if tool.Type != elf.ET_DYN && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
		t.Errorf("the tool is %s, not position-independent", tool.Type)
	}
	if _, stack := protection(tool); !stack {
		t.Error("the tool's stack is executable")
	}
}

func openELF(t *testing.T, path string) *elf.File {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func imports(t *testing.T, f *elf.File) []string {
	t.Helper()
	symbols, err := f.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, s := range symbols {
		names[s.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// protection says whether what the loader has set is read-only, and whether the stack is no program.
func protection(f *elf.File) (relro, stack bool) {
	for _, p := range f.Progs {
		switch p.Type {
		case elf.PT_GNU_RELRO:
			relro = true
		case elf.PT_GNU_STACK:
			stack = p.Flags&elf.PF_X == 0
		}
	}
	return relro, stack
}

// The licence texts of all modules are beside the tool.
func TestLicencesAreShipped(t *testing.T) {
	text := testkit.Read(t, builtFile(t, "THIRD-PARTY-LICENCES"))
	for m := range modulesOf(t, "../cmd/nccl-otf2") {
		if !strings.Contains(string(text), "\n"+m+" v") {
			t.Errorf("no licence of %s", m)
		}
	}
}
