// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// This file decides, for all users of a directory (unify, package scorep, run, replay, report --hang), whether a
// collector still writes the data of a process that has ended, and whether it makes progress.
//
// A process has ended if its collector says so (Process.Ended), wherever that runs, or if this machine has no such
// process although its collector can be seen from here. One that runs is never waited for: it may run for weeks. A
// collector that has died is not waited for either: its lock is free. A collector makes progress as long as files of
// its shard change.

// Patience is how long collectors without progress are awaited by default.
const Patience = 10 * time.Second

// Await says which collectors to wait for, and for how long. Its zero value is for callers that know nothing of the
// job.
type Await struct {
	Patience time.Duration // while nothing changes in any of their shards; 0: Patience
	// Over is set if all processes of the caller's job have ended. Processes whose end cannot be seen from here are
	// then awaited, too, but only during the time of patience, whatever they write: they may be another job's.
	Over bool
	// Here: collectors of other machines are not waited for.
	Here bool
	// Progress, if set, is called now and then with the shards (paths) that are waited for.
	Progress func(shards []string)

	now   func() time.Time                              // of tests
	sleep func(ctx context.Context, time time.Duration) // of tests
}

// Pauses between two looks.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 200 * time.Millisecond
)

// Collectors waits until no shard of the experiment directory is being written whose process has ended. It returns the
// names of the unfinished shards early when none of their collectors has made progress for the time of patience, or
// when ctx ends.
func (a *Await) Collectors(ctx context.Context, directory string) (late []string) {
	patience, clock, sleep := a.Patience, a.now, a.sleep
	patience = cmp.Or(patience, Patience)
	if clock == nil {
		clock, sleep = time.Now, sleepFor
	}
	settled := make(map[string]bool) // shards that need not be checked again
	var before standing
	progress := clock()
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		known, others := a.findUnfinished(directory, settled)
		shards := slices.Concat(known, others)
		if len(shards) == 0 {
			return nil
		}
		if now := standingOf(known); now != before {
			before, progress = now, clock()
		}
		if a.Progress != nil {
			a.Progress(shards)
		}
		if clock().Sub(progress) >= patience || ctx.Err() != nil {
			for _, path := range shards {
				late = append(late, filepath.Base(path))
			}
			return late
		}
		sleep(ctx, pause)
	}
}

func sleepFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// findUnfinished returns the shards to wait for, of processes that are known to have ended and of others, and records
// those that are settled.
func (a *Await) findUnfinished(directory string, settled map[string]bool) (known, others []string) {
	names, err := Names(directory)
	if err != nil {
		return nil, nil // readers of the directory report it
	}
	for _, name := range names {
		path := filepath.Join(directory, Folder, name)
		if settled[name] {
			continue
		}
		// most of them, and their descriptions are long
		if _, err := os.Lstat(filepath.Join(path, doneFile)); err == nil {
			settled[name] = true
			continue
		}
		e := At(path, time.Now())
		switch {
		case e.State == Done, a.Here && e.Process != nil && e.Process.BootID != BootID():
			settled[name] = true
		case e.State != Writing && e.State != Starting, e.Guess:
		case e.isLeft():
			known = append(known, path)
		case a.Over && !e.ProcessLives():
			others = append(others, path)
		}
	}
	return known, others
}

// isLeft reports whether the process of a shard that is being written is known to have ended.
func (e *Entry) isLeft() bool {
	switch p := e.Process; {
	case p == nil: // its description comes at any moment
		return e.WriterLives()
	case p.Ended:
		return true
	default:
		return p.BootID == BootID() && !e.ProcessLives() && e.WriterLives()
	}
}

// standing is the progress of collectors, as far as their files show.
type standing struct {
	shards, files int
	bytes         int64
	changed       time.Time
}

func standingOf(shards []string) standing {
	s := standing{shards: len(shards)}
	for _, path := range shards {
		files, _ := os.ReadDir(path)
		for _, f := range files {
			info, err := f.Info()
			if err != nil {
				continue
			}
			s.files++
			s.bytes += info.Size()
			if t := info.ModTime(); t.After(s.changed) {
				s.changed = t
			}
		}
	}
	return s
}
