// SPDX-License-Identifier: Apache-2.0

// Package jobfolder names the folders of several jobs that share an experiment directory: where is a job's result, and
// which is the newest?
package jobfolder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// jobFolder is the prefix of the folders of jobs that share an experiment directory: run-1, run-2, … in the order of
// their begin.
const jobFolder = "run-"

// PathOf returns the folder for results of a job, the n-th one (from 0) by its begin among those of an experiment
// directory.
func PathOf(directory string, n, of int) string {
	if of == 1 {
		return directory
	}
	return filepath.Join(directory, jobFolder+strconv.Itoa(n+1))
}

// IsOne reports whether a path has the name of a folder of one of several jobs in an experiment directory.
func IsOne(path string) bool {
	_, err := jobNumber(path)
	return err == nil
}

func jobNumber(path string) (int, error) {
	number, ok := strings.CutPrefix(filepath.Base(path), jobFolder)
	if !ok {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(number)
}

// FindNewest finds a file that is made for each job, in an experiment directory or in its jobs' folders: that of the
// job that began last, and those of the others, the newest first. Files older than the first folder's are of an earlier
// unify with other jobs, and come last. newest is "" if there is none.
func FindNewest(directory, name string) (newest string, others []string) {
	type made struct {
		path   string
		number int // 0: in the directory itself, then it is the only job's
		stale  bool
	}
	var all []made
	first, _ := os.Stat(filepath.Join(PathOf(directory, 0, 2), name))
	add := func(path string, number int) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			all = append(all, made{path, number, first != nil && info.ModTime().Before(first.ModTime())})
		}
	}
	add(filepath.Join(directory, name), 0)
	if len(all) == 1 && !all[0].stale {
		return all[0].path, nil
	}
	for _, path := range regular.Matches(directory, filepath.Join(jobFolder+"*", name)) {
		if number, err := jobNumber(filepath.Dir(path)); err == nil {
			add(path, number)
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	slices.SortFunc(all, func(a, b made) int {
		if a.stale != b.stale {
			return map[bool]int{true: 1, false: -1}[a.stale]
		}
		return b.number - a.number
	})
	for _, m := range all[1:] {
		others = append(others, m.path)
	}
	return all[0].path, others
}

// DescribeOthers states which of several jobs in a directory was chosen, and where the others are.
func DescribeOthers(directory, newest string, others []string) string {
	return fmt.Sprintf("%s holds %d jobs: this is %s, of the newest; the others are %s", directory, len(others)+1,
		newest, strings.Join(others, ", "))
}
