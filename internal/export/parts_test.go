// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// folder gives the files of a folder by name.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries := testkit.Value(os.ReadDir(dir))(t)
	all := make(map[string]string)
	for _, e := range entries {
		all[e.Name()] = string(testkit.Read(t, filepath.Join(dir, e.Name())))
	}
	return all
}

// partsOf reads the parts of a table one behind the other.
func partsOf[T any](t *testing.T, dir, file string, parts int) (rows []T) {
	t.Helper()
	for number := range parts {
		rows = append(rows, readTable[T](t, filepath.Join(
			dir, partName(file, analysis.Slice{Number: number + 1, Of: parts})))...)
	}
	return rows
}

// Parts that are written at the same time are, one behind the other, the rows of the whole table, in as many parts as
// one likes; the other tables are the same files.
func TestPartsAreTheWholeTable(t *testing.T) {
	a := job(t)
	whole := t.TempDir()
	res := testkit.Value(Parquet(a, whole, "zstd", nil))(t)
	operations, transfers := readTable[Operation](t, filepath.Join(whole, OperationsFile)),
		readTable[TransferRow](t, filepath.Join(whole, TransfersFile))
	testkit.Require(t, len(operations) != 0 && len(transfers) != 0,
		"%d operations, %d transfers", len(operations), len(transfers))
	for _, parts := range []int{1, 2, 3, 5, 40} {
		dir := t.TempDir()
		reported := uint64(0)
		got := testkit.Value(Parquet(a, dir, "zstd", &Options{Parts: parts,
			Progress: func(_ string, records uint64) { reported = max(reported, records) }}))(t)
		testkit.Equal(t, cmp.Diff(operations, partsOf[Operation](t, dir, OperationsFile, parts)), "",
			"operations in %d parts (-whole, +parts):\n", parts)
		testkit.Equal(t, cmp.Diff(transfers, partsOf[TransferRow](t, dir, TransfersFile, parts)), "",
			"transfers in %d parts (-whole, +parts):\n", parts)
		d := cmp.Diff([]any{res.Records, res.LeftOut, res.Problems}, []any{got.Records, got.LeftOut, got.Problems})
		testkit.Check(t, d == "" && len(got.Files) == 3+2*parts, "%d parts: %d files: %s", parts, len(got.Files), d)
		total := uint64(0)
		for _, n := range got.Records {
			total += n
		}
		testkit.Check(t, reported != 0 && reported <= total,
			"%d parts: progress of %d records, there are %d", parts, reported, total)
		one, other := folder(t, whole), folder(t, dir)
		for _, name := range []string{WaitsFile, PhasesFile, RunsFile} {
			testkit.Equal(t, one[name], other[name], "%s differs in %d parts", name, parts)
		}
		alone := t.TempDir()
		for number := parts; number > 0; number-- { // by one process each, in any order
			res := testkit.Value(Parquet(a, alone, "zstd", &Options{Parts: parts, Part: number}))(t)
			testkit.Check(t, number <= 1 || len(res.Files) == 2, "part %d of %d: %v", number, parts, res.Files)
		}
		testkit.Same(t, other, folder(t, alone))
	}
}

// What an earlier export has cut otherwise goes, and nothing else.
func TestPartsReplaceOthers(t *testing.T) {
	a, dir := job(t), t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "operations-mine.parquet"), nil, 0o666))
	for _, c := range []struct{ parts, files int }{{3, 3 + 6 + 1}, {0, 5 + 1}, {2, 3 + 4 + 1}, {4, 3 + 8 + 1}} {
		testkit.Value(Parquet(a, dir, "zstd", &Options{Parts: c.parts}))(t)
		all := folder(t, dir)
		testkit.Check(t, len(all) == c.files, "%d parts: %d files, want %d", c.parts, len(all), c.files)
	}
	for _, o := range []Options{{Parts: -1}, {Part: 1}, {Parts: 2, Part: 3}, {Parts: MaxParts + 1},
		{Parts: 2, Part: -1}} {
		_, err := Parquet(a, dir, "zstd", &o)
		testkit.Check(t, err != nil && strings.Contains(err.Error(), fmt.Sprintf("part %d of %d", o.Part, o.Parts)),
			"%d of %d: %v", o.Part, o.Parts, err)
	}
}

// Slices are all of the locations, one behind the other, with about as many events each.
func TestSlicesAreAll(t *testing.T) {
	defs := job(t).Defs
	var all []otf2.LocationRef
	for _, l := range defs.Locations {
		all = append(all, l.Self)
	}
	for _, of := range []int{1, 2, 7, len(all), 3 * len(all)} {
		var together []otf2.LocationRef
		for number := range of {
			together = append(together, analysis.Slice{Number: number + 1, Of: of}.Cut(defs, all)...)
		}
		testkit.Check(t, slices.Equal(all, together), "%d slices: %v of %v", of, together, all)
	}
	all = (analysis.Slice{Number: 1, Of: 2}).Cut(defs, nil)
	testkit.Check(t, all == nil, "%v", all)
}
