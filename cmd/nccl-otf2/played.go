// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobfolder"
	"github.com/nccl-otf2/nccl-otf2/internal/ingest"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/rawfile"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
)

// scratch holds the temporary folders with archives and tables that were made from recordings, and from the files of
// other profilers. They are removed when the command ends.
var scratch = make(map[string]*atomicfile.Pending)

// importedAnchors has the anchors of archives in scratch, by the path of the other profiler's files, or the name that
// importSeveral gave several of them.
var importedAnchors = make(map[string]string)

func removeScratch() {
	for dir, pending := range scratch {
		_ = os.RemoveAll(dir)
		pending.Forget()
	}
	clear(scratch)
	clear(importedAnchors)
}

// findArchive returns the anchor file of the archive that a path argument means, and the file to name in messages: the
// anchor itself, the description of a recording of NCCL's calls, or files of another profiler. From a recording it
// makes an archive in a temporary folder, as the plugin and the collector would, without starting a program; from files
// of another profiler as the command import does, whose remarks it prints.
func findArchive(arg string) (anchor, name string, err error) {
	if anchor := importedAnchors[arg]; anchor != "" {
		return anchor, arg, nil
	}
	if found := recordingFolders(arg); len(found) > 0 && !hasArchive(arg) {
		if len(found) > 1 {
			return "", "", fmt.Errorf("%s holds %d recordings: name one of %s", arg, len(found),
				strings.Join(found, ", "))
		}
		anchor, err = replayedAnchor(found[0])
		return anchor, filepath.Join(found[0], recording.RunFile), err
	}
	anchor, err = anchorPath(arg)
	if err == nil || !mayImport(arg) {
		return anchor, anchor, err
	}
	anchor, importErr := importedAnchor(arg, arg)
	switch {
	case importErr == nil:
		return anchor, arg, nil
	case errors.Is(importErr, ingest.ErrNoFiles):
		return "", "", err
	}
	return "", "", fmt.Errorf("%w; and `nccl-otf2 import` says: %w", err, importErr)
}

// mayImport reports whether a path may be that of another profiler's files: a file that is no anchor, or a folder that
// no process of ours has written to.
func mayImport(path string) bool {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return false
	case !info.IsDir():
		return info.Mode().IsRegular() && filepath.Ext(path) != ".otf2"
	}
	return !isDir(filepath.Join(path, experiment.Folder)) && len(regular.Matches(path, "*.otf2")) == 0 &&
		recordedForReplay(path) == "" && !inProfileMode(path)
}

// importSeveral makes an archive of several files of other profilers and returns the name by which findArchive finds
// it. A single path is its own name.
func importSeveral(paths []string) (name string, err error) {
	if len(paths) == 1 {
		return paths[0], nil
	}
	for _, path := range paths {
		if err := requirePath(path, "what another profiler wrote"); err != nil {
			return "", err
		}
		if !mayImport(path) || len(recordingFolders(path)) > 0 {
			return "", usagef("%s cannot be read together with others: only files of other profilers can; a report is "+
				"of one archive, and nccl-otf2 diff compares two", path)
		}
	}
	name = fmt.Sprintf("%s and %d more", paths[0], len(paths)-1)
	_, err = importedAnchor(name, paths...)
	return name, err
}

// importedAnchor makes an archive from another profiler's files, which messages call by the name.
func importedAnchor(name string, paths ...string) (string, error) {
	dir, err := newScratch("nccl-otf2-imported-")
	if err != nil {
		return "", err
	}
	p := newProgress()
	defer p.clearLine()
	read, err := ingest.Import(paths, dir, &ingest.Options{
		Progress: func(what string, done, total int) { p.showLine("%s (%d of %d)", what, done, total) }})
	if err != nil {
		return "", err
	}
	if read.Malformed > 0 { // products do not say what is missing in them
		return "", fmt.Errorf("%s could not be read, the first: %s; with `nccl-otf2 import %s` there is an archive of "+
			"the rest", count(read.Malformed, "line", "lines"), read.First, strings.Join(paths, " "))
	}
	if _, err := makeArchives(dir, p); err != nil {
		return "", err
	}
	p.clearLine()
	printRemarks(os.Stderr, read)
	anchor := filepath.Join(dir, anchorName)
	if !isFile(anchor) {
		return "", errors.New(name + " is of several jobs, or has no communicator: import it")
	}
	importedAnchors[name] = anchor
	return anchor, nil
}

func hasArchive(dir string) bool {
	newest, _ := jobfolder.FindNewest(dir, anchorName)
	return newest != "" || len(regular.Matches(dir, "*.otf2")) > 0
}

// newScratch makes a folder that is removed when the command ends.
func newScratch(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err == nil {
		scratch[dir] = atomicfile.Temporary(dir)
	}
	return dir, err
}

func replayedAnchor(folder string) (string, error) {
	dir, err := newScratch("nccl-otf2-played-")
	if err != nil {
		return "", err
	}
	p := newProgress()
	defer p.clearLine()
	if err := replayInto(dir, folder, p); err != nil {
		return "", err
	}
	if _, err := makeArchives(dir, p); err != nil {
		return "", err
	}
	anchor := filepath.Join(dir, anchorName)
	if !isFile(anchor) {
		return "", errors.New(folder + " is of several jobs, or has no communicator: play it with `nccl-otf2 replay`")
	}
	return anchor, nil
}

// replayInto writes the shards of a recording's processes, with the events that the settings select.
func replayInto(dir, folder string, p *progressLine) error {
	settings, err := jobSettings(newEnvironment(os.Environ()))
	if err != nil {
		return err
	}
	loaded, err := replay.Load(folder)
	if err != nil {
		return err
	}
	rec, err := rawfile.New(loaded)
	if err != nil {
		return err
	}
	for k := range rec.Processes {
		p.showLine("playing %s: %d of %d processes", folder, k, len(rec.Processes))
		var raw bytes.Buffer
		if err := rec.Write(&raw, k); err != nil {
			return err
		}
		of := collector.Played{
			Launcher: config.Launcher{Name: "recording", Rank: k, Size: len(rec.Processes)}, Settings: settings,
			Environment: rec.Run.Env,
		}
		if err := collector.Play(&raw, int64(raw.Len()), dir, &of); err != nil {
			return fmt.Errorf("recording %s: %w", folder, err)
		}
	}
	return nil
}
