// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func readTable[T any](t *testing.T, path string) []T {
	t.Helper()
	return testkit.Value(parquet.ReadFile[T](path))(t)
}

// The same archive gives the same bytes.
func TestExportsAreReproducible(t *testing.T) {
	a := job(t)
	read := func() map[string]string {
		dir := t.TempDir()
		for _, err := range []error{
			second(JSONL(a, dir, nil)), second(Parquet(a, dir, "zstd", nil)),
			second(Perfetto(a, filepath.Join(dir, "t.pftrace.gz"), nil, nil)),
			second(Prometheus(a, filepath.Join(dir, "m.prom"), nil, nil)),
		} {
			testkit.Must(t, err)
		}
		all := make(map[string]string)
		entries := testkit.Value(os.ReadDir(dir))(t)
		for _, e := range entries {
			b := testkit.Read(t, filepath.Join(dir, e.Name()))
			all[e.Name()] = string(b)
		}
		return all
	}
	one, other := read(), read()
	testkit.Equal(t, len(one), 3+5+2, "files")
	for name, text := range one {
		testkit.Equal(t, other[name], text, "%s differs", name)
	}
}

func second[T any](_ T, err error) error { return err }

// Row groups are bounded, so that tables of any size can be written and read piece by piece.
func TestTablesHaveBoundedRowGroups(t *testing.T) {
	e := newExporter(job(t), nil)
	var out bytes.Buffer
	table := newTable[WaitRow](e, &out, "waits", &parquet.Zstd)
	const n = 2*rowsPerGroup + 5
	for i := range n {
		testkit.Must(t, table.add(WaitRow{Kind: "collective", Waited: int64(i)}))
	}
	testkit.Must(t, table.close())
	f := testkit.Value(parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len())))(t)
	sizes := []int64{}
	for _, g := range f.RowGroups() {
		sizes = append(sizes, g.NumRows())
	}
	testkit.Check(t, slices.Equal(sizes, []int64{rowsPerGroup, rowsPerGroup, 5}), "row groups of %v rows", sizes)
	v, ok := f.Lookup("nccl-otf2.schema_version")
	testkit.Check(t, ok && v == "2", "schema %q", v)
}

func TestClocksOfOtherResolutionsAreConverted(t *testing.T) {
	c := clock{Resolution: 1000, Offset: 500, Realtime: 1_700_000_000_000_000_000}
	for ticks, want := range map[uint64]int64{500: 0, 501: 1_000_000, 499: -1_000_000, math.MaxInt64: -1} {
		if got := c.fromBegin(timestamp(ticks)); got != want && !(ticks == math.MaxInt64 && got != 0) {
			t.Errorf("%d ticks are %d ns, want %d", ticks, got, want)
		}
	}
	testkit.Equal(t, c.since1970(timestamp(1500)), 1_700_000_001_000_000_000, "ns since 1970")
}
