// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/need"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// FuzzLibrary: whatever stands in a file that is named as a library, it says something of itself or is refused, and
// costs no more memory than its size gives reason for.
func FuzzLibrary(f *testing.F) {
	dir := f.TempDir()
	source, library := filepath.Join(dir, "l.c"), filepath.Join(dir, "l.so")
	testkit.Must(f, os.WriteFile(
		source, []byte(
			`const char *f(void) { return "NCCL version 2.29.7+cuda13.0 ncclProfiler_v6"; } int ncclGetVersion(int *v) { return *v = 22907; }`), 0o600))
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-nostdlib", "-s", "-o", library,
		source).CombinedOutput(); err != nil {
		need.NoError(f, "a C compiler", err)
		f.Fatalf("%s", out)
	}
	whole := testkit.Value(os.ReadFile(library))(f)
	f.Add(whole)
	for _, at := range []int{16, 40, 60, 64, 200, len(whole) / 2, len(whole) - 200, len(whole) - 100} {
		damaged := bytes.Clone(whole)
		copy(damaged[at:], "\xff\xff\xff\x7f")
		f.Add(damaged)
		f.Add(whole[:at])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "libnccl.so.2")
		testkit.Must(t, os.WriteFile(path, b, 0o600))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l, err := readLibrary(path)
		runtime.ReadMemStats(&after)
		testkit.Require(t, (l == nil) != (err == nil), "%v, %v", l, err)
		n := after.TotalAlloc - before.TotalAlloc
		testkit.Check(t, n <= 64<<20+200*uint64(len(b)), "%d bytes for a file of %d", n, len(b))
	})
}

// FuzzLoaderCache: whatever stands in the loader's cache, the libraries that it names are texts in it.
func FuzzLoaderCache(f *testing.F) {
	const head, entry = 48, 24
	cache := append([]byte("glibc-ld.so.cache1.1"), make([]byte, head-20+entry)...)
	binary.NativeEndian.PutUint32(cache[20:], 1)
	binary.NativeEndian.PutUint32(cache[head+8:], head+entry)
	cache = append(cache, "/usr/lib/libnccl.so.2\x00"...)
	f.Add(cache)
	for _, at := range []int{20, head, head + 8} {
		damaged := bytes.Clone(cache)
		copy(damaged[at:], "\xff\xff\xff\xff")
		f.Add(damaged)
		f.Add(cache[:at])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "ld.so.cache")
		testkit.Must(t, os.WriteFile(path, b, 0o600))
		all := loaderCache(path)
		testkit.Require(t, len(all) <= len(b)/entry, "%d libraries in %d bytes", len(all), len(b))
		for _, library := range all {
			testkit.Check(t, bytes.Contains(b, []byte(library)), "%q is not in the file", library)
		}
	})
}
