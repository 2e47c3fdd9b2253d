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
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobfolder"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/rawfile"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
)

// scratch holds the temporary folders with archives and tables that were made from recordings. They are removed when
// the command ends.
var scratch = make(map[string]*atomicfile.Pending)

func removeScratch() {
	for dir, pending := range scratch {
		_ = os.RemoveAll(dir)
		pending.Forget()
	}
	clear(scratch)
}

// findArchive returns the anchor file of the archive that a path argument means, and the file to name in messages: the
// anchor itself, or the description of a recording of NCCL's calls. From a recording it makes an archive in a temporary
// folder, as the plugin and the collector would, without starting a program.
func findArchive(arg string) (anchor, name string, err error) {
	if found := recordingFolders(arg); len(found) > 0 && !hasArchive(arg) {
		if len(found) > 1 {
			return "", "", fmt.Errorf("%s holds %d recordings: name one of %s", arg, len(found),
				strings.Join(found, ", "))
		}
		anchor, err = replayedAnchor(found[0])
		return anchor, filepath.Join(found[0], recording.RunFile), err
	}
	anchor, err = anchorPath(arg)
	return anchor, anchor, err
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
