// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobfolder"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// anchorName is the anchor file of an experiment directory's archive.
const anchorName = "traces.otf2"

// requirePath returns an error if a path does not exist; give describes valid arguments.
func requirePath(path, give string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist: give %s", path, give)
	}
	return nil
}

// requireFolder returns an error if a path is not a readable folder; give describes valid arguments.
func requireFolder(path, give string) error {
	if err := requirePath(path, give); err != nil {
		return err
	}
	_, err := os.Stat(path + "/.")
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be read: its owner can let you read it (chmod)", path)
	case !isDir(path):
		return fmt.Errorf("%s is not a folder: give %s", path, give)
	}
	return err
}

// anchorPath returns the anchor file that a path argument means: the file itself, or the one in an experiment
// directory.
func anchorPath(arg string) (string, error) {
	if err := requirePath(arg,
		"an experiment directory or the anchor file ("+anchorName+") of an archive"); err != nil {
		return "", err
	}
	st, err := os.Stat(arg)
	switch {
	case err != nil:
		return "", err
	case !st.IsDir():
		if filepath.Ext(arg) != ".otf2" {
			return "", fmt.Errorf("%s is not an anchor file: its name does not end in .otf2", arg)
		}
		return arg, nil
	}
	if newest := findNewest(arg, anchorName); newest != "" {
		return newest, nil
	}
	if _, err := os.Stat(filepath.Join(arg, anchorName)); errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("%w: its owner can let you read it (chmod)", err)
	}
	anchors := regular.Matches(arg, "*.otf2") // other tools use other names for anchors
	switch {
	case len(anchors) == 1:
		return anchors[0], nil
	case len(anchors) > 1:
		return "", fmt.Errorf("%s holds %d archives: name one of %s", arg, len(anchors), strings.Join(anchors, ", "))
	case inProfileMode(arg):
		if profile := findNewest(arg, cubex.FileName); profile != "" {
			return "", fmt.Errorf(
				"%s was recorded in profile mode, without events: its figures are in %s (print --cube, CUBE "+
					"tools) and %s", arg, profile, cubex.SummaryName)
		}
		return "",
			fmt.Errorf("%s was recorded in profile mode, without events: make its profile with `nccl-otf2 unify %s`",
				arg, arg)
	case recordedForReplay(arg) != "":
		return "", errors.New(recordedForReplay(arg))
	case isDir(filepath.Join(arg, experiment.Folder)):
		return "", fmt.Errorf("%s has no archive yet: make it with `nccl-otf2 unify %s`", arg, arg)
	}
	return "", fmt.Errorf("%s holds no archive (no %s) and no recording (no shards)", arg, anchorName)
}

// othersNamed holds the directories whose other jobs have been reported.
var othersNamed = make(map[string]bool)

// findNewest returns the newest of the files that each job of an experiment directory has (see jobfolder.FindNewest),
// and reports those of other jobs; "" if there is none.
func findNewest(dir, name string) string {
	newest, others := jobfolder.FindNewest(dir, name)
	if len(others) > 0 && !othersNamed[dir] {
		othersNamed[dir] = true
		printable.Fprintln(os.Stderr, "nccl-otf2:", jobfolder.DescribeOthers(dir, newest, others))
	}
	return newest
}

// recordedForReplay explains how to use a recording of NCCL's calls, or the directory of a job in record mode, because
// neither has a timeline; "" for other paths.
func recordedForReplay(dir string) string {
	const what = " was recorded for replay (NCCL_OTF2_MODE=record), without a timeline: "
	if found := recordingFolders(dir); len(found) > 0 {
		return fmt.Sprintf("%s%s`nccl-otf2 replay %s --clock recorded` plays it and makes its archive", dir, what,
			found[0])
	}
	if found, err := findModes(dir); err == nil && found.recorded > 0 && !found.traces && !found.profiles {
		return fmt.Sprintf("%s%s`nccl-otf2 unify %s` makes the recording when the job has ended", dir,
			strings.Replace(what, " was ", " is being ", 1), dir)
	}
	return ""
}

// recordingFolders lists the folders with recordings in a directory: the directory itself, or those of a job in record
// mode.
func recordingFolders(dir string) (folders []string) {
	for _, pattern := range []string{recording.RunFile, filepath.Join(record.Folder, recording.RunFile),
		filepath.Join(record.Folder, "*", recording.RunFile)} {
		for _, file := range regular.Matches(dir, pattern) {
			folders = append(folders, filepath.Dir(file))
		}
	}
	return folders
}

// inProfileMode reports whether all processes of an experiment directory were in profile mode.
func inProfileMode(dir string) bool {
	found, err := findModes(dir)
	return err == nil && found.profiles && !found.traces
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// waitForCollectors waits for the collectors of ended processes as long as they make progress and ctx is not done, and
// shows how much is left. It returns the shards that are not complete.
func waitForCollectors(ctx context.Context, dir string, a experiment.Await, p *progressLine) (late []string) {
	a.Progress = func(shards []string) {
		p.showLine("waiting for %s to write what the job left%s", count(len(shards), "collector", "collectors"),
			formatBacklog(shards))
	}
	return a.Collectors(ctx, dir)
}

// formatBacklog describes how much data the collectors still have to convert, by their own reports.
func formatBacklog(shards []string) string {
	bytes := uint64(0)
	for _, path := range shards {
		if s, err := control.ReadStatus(path); err == nil && s != nil {
			bytes += s.Backlog
		}
	}
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s of records)", units.Bytes(bytes))
}

// archiveState reports whether all shards of a job are complete, and whether an archive or a profile was made since
// then; with tables, also whether the archive's tables were written.
func archiveState(dir string, tables bool) (complete, made bool) {
	entries, ended, err := experiment.ListIfEnded(dir)
	if err != nil || !ended || !experiment.Complete(entries) {
		return false, false
	}
	var newest time.Time
	for _, e := range entries {
		if st, err := os.Stat(filepath.Join(e.Path, "done")); err == nil && st.ModTime().After(newest) {
			newest = st.ModTime()
		}
	}
	product, _ := jobfolder.FindNewest(dir, anchorName)
	if product == "" { // a job in profile mode
		tables = false
		product, _ = jobfolder.FindNewest(dir, cubex.FileName)
	}
	st, err := os.Stat(product)
	if err == nil && tables && !st.ModTime().Before(newest) {
		newest = st.ModTime()
		st, err = os.Stat(lastTable(filepath.Dir(product)))
	}
	return true, err == nil && !st.ModTime().Before(newest)
}
