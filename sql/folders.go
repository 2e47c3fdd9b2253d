// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tables are the names of the tables. A folder of tables has a file NAME.parquet for each, or its parts,
// NAME-0001-of-0008.parquet and so on.
var tables = []string{"operations", "transfers", "waits", "phases", "runs"}

// FolderName is the name of the folder of tables beside an archive.
const FolderName = "parquet"

// Folders returns the folders of tables for a path: the path itself, the folder beside an archive in an experiment
// directory, or those of all folders in it, sorted. If there are none, the error states how to make tables.
func Folders(path string) ([]string, error) {
	all := folderOf(path)
	if all == nil {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			all = append(all, folderOf(filepath.Join(path, e.Name()))...)
		}
	}
	if all == nil {
		return nil, fmt.Errorf("%s has no tables: make them with `nccl-otf2 export --parquet %s`", path, path)
	}
	for _, folder := range all {
		var missing []string
		for _, t := range tables {
			files, err := filesOf(folder, t)
			if err != nil {
				return nil, err
			}
			if files == nil {
				missing = append(missing, t)
			}
		}
		if len(missing) > 0 {
			return nil, fmt.Errorf("%s has no %s: it was written by an earlier version; export the archive again",
				folder, strings.Join(missing, ", "))
		}
	}
	return all, nil
}

// folderOf returns a folder of tables, or the one in it; nil if there is neither.
func folderOf(path string) []string {
	for _, folder := range []string{path, filepath.Join(path, FolderName)} {
		if files, err := filesOf(folder, tables[0]); files != nil || err != nil {
			return []string{folder}
		}
	}
	return nil
}

// filesOf returns the files of a table in a folder, parts in their order; nil if there are none. The error names
// missing parts, or that the table is there more than once.
func filesOf(folder, table string) (files []string, err error) {
	entries, _ := os.ReadDir(folder) // a missing folder has no files
	of := 0
	for _, e := range entries { // sorted by name, thus by number
		if !e.Type().IsRegular() && e.Type() != fs.ModeSymlink {
			continue
		}
		n, k := 1, 1
		if e.Name() != table+Suffix {
			var ok bool
			if k, n, ok = PartOf(e.Name(), table); !ok {
				continue
			}
		}
		files = append(files, filepath.Join(folder, e.Name()))
		if of != 0 && of != n || k != len(files) {
			return nil, fmt.Errorf("%s: %s is not whole, or there more than once: export all of its parts again",
				folder, table)
		}
		of = n
	}
	if len(files) != of {
		return nil, fmt.Errorf("%s: %s has %d of %d parts: the others have not been exported", folder, table,
			len(files), of)
	}
	return files, nil
}
