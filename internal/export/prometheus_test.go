// SPDX-License-Identifier: Apache-2.0

package export

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

func timestamp(t uint64) otf2.Timestamp { return otf2.Timestamp(t) }

func TestSizesHaveInspectorsRanges(t *testing.T) {
	for bytes, want := range map[uint64]string{
		0: "0B", 1: "1-2B", 1023: "1023-1024B", 1024: "1-2KB", 8191: "7-8KB", 4 << 30: "4-5GB",
		537_000_000: "512-513MB", 5 << 50: "5120-5121TB",
	} {
		testkit.Equal(t, sizeRange(lowerBound(bytes)), want, "%d bytes", bytes)
	}
}

// Nothing appears under a name before it is complete, and nothing stays of what failed.
func TestFilesAppearWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.prom")
	testkit.Write(t, path, []byte("old"))
	f := testkit.Value(createFile(path))(t)
	f.WriteString("half")
	f.Flush()
	b, _ := os.ReadFile(path)
	testkit.Check(t, string(b) == "old", "half a file is there: %q", b)
	f.abandon()
	names := list(t, dir)
	testkit.Check(t, slices.Equal(names, []string{"m.prom"}), "%v is left", names)
	f = testkit.Value(createFile(path))(t)
	f.WriteString("new")
	testkit.Must(t, f.commit())
	f.abandon()
	b, _ = os.ReadFile(path)
	testkit.Check(t, string(b) == "new", "%q", b)
	// A folder in the way: the error tells, and no other file stays.
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "d"), 0o777))
	_, err := Perfetto(job(t), filepath.Join(dir, "d"), nil, nil)
	testkit.Check(t, err != nil, "a folder was overwritten")
	names = list(t, dir)
	testkit.Check(t, slices.Equal(names, []string{"d", "m.prom"}), "%v is left", names)
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries := testkit.Value(os.ReadDir(dir))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
