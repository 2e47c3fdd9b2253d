// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
)

// loaderCache returns the libraries in the dynamic loader's cache, in its order. It returns none unless the cache has
// the format that glibc has written since 2.2 ("glibc-ld.so.cache1.1").
//
// The 20 bytes of magic are followed by: uint32 count, uint32 length of the strings, 20 bytes of flags and reserve;
// then 24 bytes per library: int32 flags, uint32 key, uint32 value (both offsets from the magic to a NUL-terminated
// string: name and path), uint32, uint64. Source: glibc sysdeps/generic/dl-cache.h.
func loaderCache(path string) []string {
	const magic, head, entry = "glibc-ld.so.cache1.1", 48, 24
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	i := bytes.Index(b, []byte(magic)) // a cache in an older format may precede it
	if i < 0 || len(b) < i+head {
		return nil
	}
	b = b[i:]
	n := int(binary.NativeEndian.Uint32(b[len(magic):]))
	var out []string
	for k := range n {
		at := head + k*entry
		if at+entry > len(b) {
			break
		}
		value := int(binary.NativeEndian.Uint32(b[at+8:]))
		if value >= len(b) {
			continue
		}
		text, _, _ := bytes.Cut(b[value:], []byte{0})
		out = append(out, string(text))
	}
	return out
}

// defaultFolders lists the folders that the loader always searches, with the multi-arch names of Debian and Ubuntu.
var defaultFolders = []string{"/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
	"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib", "/usr/lib"}

func splitFolders(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ';' })
}

// foundLibrary is a library, and how the loader found it.
type foundLibrary struct {
	path string
	how  string
}

// resolveLibrary returns the file that dlopen(name) would open for a name without a slash, according to the environment
// and the system's configuration. It does not know an executable's run path.
func (e *examiner) resolveLibrary(name string) (foundLibrary, bool) {
	for _, d := range splitFolders(e.Getenv("LD_LIBRARY_PATH")) {
		if p := filepath.Join(d, name); pathExists(p) {
			return foundLibrary{p, "in LD_LIBRARY_PATH"}, true
		}
	}
	for _, p := range e.cache {
		if filepath.Base(p) == name && pathExists(e.pathInRoot(p)) {
			return foundLibrary{e.pathInRoot(p), "in the loader's cache"}, true
		}
	}
	for _, d := range defaultFolders {
		if p := e.pathInRoot(filepath.Join(d, name)); pathExists(p) {
			return foundLibrary{p, "in the loader's default folders"}, true
		}
	}
	return foundLibrary{}, false
}
