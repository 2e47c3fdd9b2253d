// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A table is one file, or all of its parts; what is missing, or there twice, is said.
func TestFilesOfATable(t *testing.T) {
	const one, two = "operations-0001-of-0002.parquet", "operations-0002-of-0002.parquet"
	for _, c := range []struct {
		there, want []string
		says        string
	}{
		{nil, nil, ""},
		{[]string{"operations.parquet", "waits.parquet"}, []string{"operations.parquet"}, ""},
		{[]string{one, two, "operations-mine.parquet", one + "~"}, []string{one, two}, ""},
		{[]string{one}, nil, "has 1 of 2 parts"},
		{[]string{two}, nil, "is not whole"},
		{[]string{one, two, "operations.parquet"}, nil, "more than once"},
		{[]string{"operations-0001-of-0003.parquet", two}, nil, "is not whole"},
	} {
		dir := t.TempDir()
		for _, name := range c.there {
			testkit.Must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
		}
		got, err := filesOf(dir, "operations")
		for i, path := range got {
			got[i] = filepath.Base(path)
		}
		testkit.Check(t, slices.Equal(got, c.want) && (err == nil) == (c.says == "") &&
			(err == nil || strings.Contains(err.Error(), c.says)), "%v: %v, %v", c.there, got, err)
		if _, folders := Folders(dir); c.says != "" && (folders == nil || !strings.Contains(folders.Error(), c.says)) {
			t.Errorf("%v: %v", c.there, folders)
		}
	}
}
