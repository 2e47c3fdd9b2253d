// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"cmp"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// FunctionName is the readable name of a kernel without parameters and template arguments: "at::native::reduce_kernel"
// of "_ZN2at6native13reduce_kernelILi512ELi1EEEvT_". Of a name that was cut off, it is that of the scopes and the
// function as far as they are there; what is no mangled name stays as it is.
func FunctionName(mangled string) string {
	if !strings.HasPrefix(mangled, "_Z") {
		return mangled
	}
	if name, err := demangle.ToString(mangled, demangle.NoParams, demangle.NoTemplateParams,
		demangle.NoClones); err == nil {
		return name
	}
	return cmp.Or(beginning(mangled), mangled)
}

// beginning reads the source names at the beginning of a mangled name (Itanium C++ ABI, 5.1.2): scopes, and the
// function unless it is cut off. It ends where anything else begins, such as template arguments.
func beginning(mangled string) string {
	s := strings.TrimPrefix(mangled, "_Z")
	s = strings.TrimPrefix(s, "L")
	if strings.HasPrefix(s, "N") {
		s = strings.TrimLeft(s[1:], "rVKRO")
	}
	var names []string
	if strings.HasPrefix(s, "St") {
		names, s = append(names, "std"), s[2:]
	}
	for {
		n, digits := 0, 0
		for digits < len(s) && digits < 4 && s[digits] >= '0' && s[digits] <= '9' {
			n = 10*n + int(s[digits]-'0')
			digits++
		}
		if digits == 0 || n == 0 || digits+n > len(s) {
			return strings.Join(names, "::")
		}
		name := s[digits : digits+n]
		if strings.HasPrefix(name, "_GLOBAL__N_") {
			name = "(anonymous namespace)"
		}
		names, s = append(names, name), s[digits+n:]
	}
}
