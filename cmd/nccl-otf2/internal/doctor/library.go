// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// library is what an ELF file says of itself.
type library struct {
	machine  elf.Machine
	symbols  []string // names of defined dynamic symbols
	profiler []int    // N of each string "ncclProfiler_vN" in its constant data, ascending: what NCCL looks up
	version  string   // of NCCL, such as "2.29.7"; "" if it could not be learned
	learned  string   // how: "version string in its constant data", "its file name"
}

var (
	versionString  = regexp.MustCompile(`R?N?CCL version (\d+\.\d+\.\d+)`)
	versionInName  = regexp.MustCompile(`\.so\.(\d+\.\d+\.\d+)$`)
	profilerSymbol = regexp.MustCompile(`ncclProfiler_v(\d+)`)
)

// readLibrary reads a shared library without loading it.
func readLibrary(path string) (*library, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := &library{machine: f.Machine}
	syms, err := f.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("%s has no table of dynamic symbols: %w", path, err)
	}
	for _, s := range syms {
		if s.Section != elf.SHN_UNDEF && elf.ST_BIND(s.Info) != elf.STB_LOCAL {
			l.symbols = append(l.symbols, s.Name)
		}
	}
	for _, s := range f.Sections {
		// Constant strings lie in .rodata; a linker may name parts of it .rodata.str1.1 and the like.
		if !strings.HasPrefix(s.Name, ".rodata") || s.Type != elf.SHT_PROGBITS {
			continue
		}
		data, err := s.Data()
		if err != nil {
			continue
		}
		if m := versionString.FindSubmatch(data); m != nil && l.version == "" {
			l.version, l.learned = string(m[1]), "version string in its constant data"
		}
		for _, m := range profilerSymbol.FindAllSubmatch(data, -1) {
			if n, err := strconv.Atoi(string(m[1])); err == nil && !slices.Contains(l.profiler, n) {
				l.profiler = append(l.profiler, n)
			}
		}
	}
	slices.Sort(l.profiler)
	if l.version == "" {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			real = path
		}
		if m := versionInName.FindStringSubmatch(filepath.Base(real)); m != nil {
			l.version, l.learned = m[1], "its file name"
		}
	}
	return l, nil
}

func (l *library) hasSymbol(name string) bool { return slices.Contains(l.symbols, name) }

// profilerVersions gives N of each exported ncclProfiler_vN, ascending.
func (l *library) profilerVersions() []int {
	var out []int
	for _, s := range l.symbols {
		if m := profilerSymbol.FindStringSubmatch(s); m != nil && m[0] == s {
			if n, err := strconv.Atoi(m[1]); err == nil && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// ownMachine is the ELF machine of this program, EM_NONE where the doctor does not know it.
func ownMachine() elf.Machine {
	return map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "ppc64le": elf.EM_PPC64,
		"riscv64": elf.EM_RISCV, "386": elf.EM_386}[runtime.GOARCH]
}

// newestProfiler gives the newest profiler API that an NCCL release takes, 0 if it takes none.
func newestProfiler(version string) int {
	major, rest, _ := strings.Cut(version, ".")
	minorText, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(minorText)
	if err != nil || major != "2" {
		return 0
	}
	newest := 0
	for _, v := range api.Versions {
		if minor >= v.Minor {
			newest = v.Number
		}
	}
	return newest
}

// releaseWith names the first NCCL release that takes a profiler API.
func releaseWith(version int) string {
	for _, v := range api.Versions {
		if v.Number >= version {
			return fmt.Sprintf("2.%d", v.Minor)
		}
	}
	return "a release"
}

// versionList writes [4 5 6 7] as "v4 to v7" and [1 4] as "v1, v4".
func versionList(v []int) string {
	if len(v) == 0 {
		return "none"
	}
	if n := v[len(v)-1] - v[0] + 1; n == len(v) && n > 1 {
		return fmt.Sprintf("v%d to v%d", v[0], v[len(v)-1])
	}
	parts := make([]string, len(v))
	for i, n := range v {
		parts[i] = "v" + strconv.Itoa(n)
	}
	return strings.Join(parts, ", ")
}

// sameFile reports whether two paths name one file.
func sameFile(a, b string) bool {
	sa, err := os.Stat(a)
	if err != nil {
		return false
	}
	sb, err := os.Stat(b)
	return err == nil && os.SameFile(sa, sb)
}
