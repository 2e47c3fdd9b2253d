// SPDX-License-Identifier: Apache-2.0

package sql

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Tables are the tables that questions are asked of, by their names; a folder of tables has a file NAME.parquet of each.
var Tables = []string{"operations", "transfers", "waits", "phases", "runs"}

// folderName is the folder of tables beside an archive.
const folderName = "parquet"

// Folders are the folders of tables that a path stands for: itself, that beside an archive in an experiment directory, or those of the folders
// in it, by name. The error says how to make tables where there are none.
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
		for _, t := range Tables {
			if !has(folder, t) {
				missing = append(missing, t)
			}
		}
		if len(missing) > 0 {
			return nil, fmt.Errorf("%s has no %s: it was written by an earlier version; export the archive again", folder, strings.Join(missing, ", "))
		}
	}
	return all, nil
}

// folderOf is a folder of tables, or the one in it; nil if there is neither.
func folderOf(path string) []string {
	for _, folder := range []string{path, filepath.Join(path, folderName)} {
		if has(folder, Tables[0]) {
			return []string{folder}
		}
	}
	return nil
}

func has(folder, table string) bool {
	info, err := os.Stat(filepath.Join(folder, table+".parquet"))
	return err == nil && info.Mode().IsRegular()
}
