// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/scorep"
)

// expectsScorep reports whether any of Score-P's variables are set for a job.
func expectsScorep(env *environment) bool {
	return slices.ContainsFunc(env.names(), func(name string) bool { return strings.HasPrefix(name, "SCOREP_") })
}

// Score-P's default names for experiment directories: during a measurement, after a failed one, and the prefix of all
// others.
const (
	scorepUnfinished = "scorep-measurement-tmp"
	scorepFailed     = "scorep-failed-"
	scorepPrefix     = "scorep-"
)

// scorepSettings is the file that Score-P writes when it creates an experiment directory.
const scorepSettings = "scorep.cfg"

// joinMeasurement moves an experiment directory into Score-P's experiment directory of the same job, as its folder
// nccl. The job was started in the working directory at a given time. It returns the new path; the error explains why
// the directory was not moved.
func joinMeasurement(dir string, env *environment, began time.Time) (string, error) {
	there, err := madeByScorep(dir, env.get("SCOREP_EXPERIMENT_DIRECTORY"), began)
	if err != nil {
		return dir, err
	}
	to := filepath.Join(there, ncclFolder)
	if _, err := os.Lstat(to); err == nil {
		return dir, fmt.Errorf("%s already exists", relativePath(to))
	}
	switch err := os.Rename(dir, to); {
	case errors.Is(err, unix.EXDEV):
		return dir, fmt.Errorf("%s is on another file system", relativePath(there))
	case err != nil:
		return dir, err
	}
	return to, nil
}

// madeByScorep finds the directory of a measurement that was made since a time. If it contains a trace, the trace must
// contain processes of this job.
func madeByScorep(dir, name string, began time.Time) (string, error) {
	var candidates []string
	if name != "" {
		path, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		candidates = []string{path}
	} else {
		wd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		candidates = regular.Matches(wd, scorepPrefix+"*")
	}
	var made, others []string
	for _, c := range candidates {
		base := filepath.Base(c)
		if name == "" && (base == scorepUnfinished || strings.HasPrefix(base, scorepFailed)) {
			continue
		}
		// File systems keep coarser times than the clock has: allow for two seconds.
		info, err := os.Lstat(filepath.Join(c, scorepSettings))
		if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(began.Add(-2*time.Second)) {
			continue
		}
		switch ours, err := scorep.SameJob(c, dir); {
		case errors.Is(err, fs.ErrNotExist): // only a profile: nothing contradicts it
			made = append(made, c)
		case err != nil:
			return "", err
		case ours:
			made = append(made, c)
		default:
			others = append(others, c)
		}
	}
	switch {
	case len(made) == 1:
		return made[0], nil
	case len(made) > 1:
		return "", fmt.Errorf("Score-P made %d experiment directories during the job: %s", len(made),
			relativeList(made))
	case len(others) > 0:
		return "", fmt.Errorf("no process of this job is in Score-P's %s", relativeList(others))
	case name != "":
		return "", fmt.Errorf("Score-P has made no %s", name)
	}
	return "", fmt.Errorf("Score-P has made no experiment directory here")
}

func relativeList(paths []string) string {
	short := make([]string, len(paths))
	for i, p := range paths {
		short[i] = relativePath(p)
	}
	return strings.Join(short, ", ")
}

// changeFolder updates the paths of the archives after their experiment directory was moved.
func (u *unified) changeFolder(from, to string) {
	at := func(path string) string {
		if r, err := filepath.Rel(from, path); err == nil && filepath.IsLocal(r) {
			return filepath.Join(to, r)
		}
		return path
	}
	for i := range u.Recordings {
		u.Recordings[i] = at(u.Recordings[i])
	}
	for i := range u.Tables {
		u.Tables[i] = at(u.Tables[i])
	}
	if u.Result != nil {
		for i := range u.Runs {
			u.Runs[i].Archive = at(u.Runs[i].Archive)
		}
	}
}
