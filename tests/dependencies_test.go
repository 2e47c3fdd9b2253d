// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/installed"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Each module in the tool stands in docs/dependencies.md with a reason, and whether the collector needs it.
func TestDependencies(t *testing.T) {
	page := testkit.Read(t, "../docs/dependencies.md")
	listed := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (yes|no) \\| \\S.* \\|$").FindAllStringSubmatch(
		string(page), -1) {
		listed[row[1]] = row[2]
	}
	want := make(map[string]string)
	for m := range modulesOf(t, "../cmd/nccl-otf2") {
		want[m] = "no"
	}
	for m := range modulesOf(t, "../cmd/nccl-otf2-collector") {
		want[m] = "yes"
	}
	testkit.Same(t, want, listed)
}

// modulesOf are the modules, other than this, of a package and all that it imports.
func modulesOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	cmd.Stderr = os.Stderr
	out := testkit.Value(cmd.Output())(t)
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
		testkit.Check(t, relro && stack,
			"%s: read-only after relocation %t, stack not executable %t", name, relro, stack)
		now, err := f.DynValue(elf.DT_FLAGS_1)
		testkit.Check(t, err == nil && len(now) != 0 && elf.DynFlag1(now[0])&elf.DF_1_NOW != 0,
			"%s is not bound at once (%v %v)", name, now, err)
	}
	plugin := imports(t, openELF(t, builtFile(t, "libnccl-profiler-otf2.so")))
	for _, want := range []string{"__stack_chk_fail", "__snprintf_chk"} {
		testkit.Check(t, slices.Contains(plugin, want), "the plugin does without %s", want)
	}
	if runtime.GOARCH == "amd64" && knows(t, "-fcf-protection=full") {
		for _, name := range []string{"libnccl-profiler-otf2.so", "libscorep_substrate_nccl_otf2.so"} {
			wantBranchTargets(t, name, openELF(t, builtFile(t, name)))
		}
	}
	for _, name := range []string{"nccl-otf2", installed.Collector} {
		program := openELF(t, builtFile(t, name))
		testkit.Check(t, program.Type == elf.ET_DYN || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64",
			"%s is %s, not position-independent", name, program.Type)
		if relro, stack := protection(program); !relro || !stack {
			t.Errorf("%s: read-only after relocation %t, stack not executable %t", name, relro, stack)
		}
	}
}

// knows reports whether the C compiler of the build has a flag.
func knows(t *testing.T, flag string) bool {
	t.Helper()
	cc := cmp.Or(os.Getenv("CC"), "cc")
	if _, err := exec.LookPath(cc); err != nil {
		t.Fatal(err) // the libraries were built here
	}
	return exec.Command(cc, "-Werror", flag, "-x", "c", "-c", "-o", os.DevNull, os.DevNull).Run() == nil
}

// wantBranchTargets wants each function that others call, by its name or through a table of pointers, to begin with the instruction
// that says that it may be jumped to (CET). That all functions do is not in a library's notes: the C library's start files may do without.
func wantBranchTargets(t *testing.T, name string, f *elf.File) {
	t.Helper()
	symbols := testkit.Value(f.DynamicSymbols())(t)
	functions := make(map[string]uint64) // addresses
	var tables []elf.Symbol
	for _, s := range symbols {
		switch {
		case s.Section == elf.SHN_UNDEF:
		case elf.ST_TYPE(s.Info) == elf.STT_FUNC:
			functions[s.Name] = s.Value
		case elf.ST_TYPE(s.Info) == elf.STT_OBJECT:
			tables = append(tables, s)
		}
	}
	relocations := testkit.Value(f.Section(".rela.dyn").Data())(t)
	for ; len(relocations) >= 24; relocations = relocations[24:] { // Elf64_Rela: offset, info, addend
		at, info, to := f.ByteOrder.Uint64(relocations), f.ByteOrder.Uint64(relocations[8:]),
			f.ByteOrder.Uint64(relocations[16:])
		for _, s := range tables {
			if elf.R_TYPE64(info) == uint32(elf.R_X86_64_RELATIVE) && s.Value <= at && at < s.Value+s.Size {
				functions[fmt.Sprintf("%s+%d", s.Name, at-s.Value)] = to
			}
		}
	}
	found := 0
	for who, address := range functions {
		if begin, code := atAddress(f, address); code {
			found++
			if !bytes.Equal(begin, []byte{0xf3, 0x0f, 0x1e, 0xfa}) { // endbr64
				t.Errorf("%s: %s begins with %x", name, who, begin)
			}
		}
	}
	testkit.Check(t, found != 0, "%s: no function is found", name)
}

// atAddress gives the first bytes at an address, and whether they are code.
func atAddress(f *elf.File, address uint64) (begin []byte, code bool) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Vaddr <= address && address+4 <= p.Vaddr+p.Filesz {
			begin = make([]byte, 4)
			_, err := p.ReadAt(begin, int64(address-p.Vaddr))
			return begin, err == nil
		}
	}
	return nil, false
}

func openELF(t *testing.T, path string) *elf.File {
	t.Helper()
	f := testkit.Value(elf.Open(path))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

func imports(t *testing.T, f *elf.File) []string {
	t.Helper()
	symbols := testkit.Value(f.ImportedSymbols())(t)
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

// The license texts of all modules are beside the tool.
func TestLicencesAreShipped(t *testing.T) {
	text := testkit.Read(t, builtFile(t, "THIRD-PARTY-LICENSES"))
	for m := range modulesOf(t, "../cmd/nccl-otf2") {
		testkit.Contains(t, string(text), "\n"+m+" v")
	}
}
