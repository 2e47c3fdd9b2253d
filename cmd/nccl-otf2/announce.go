// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
)

// Messages of `nccl-otf2 run` if a launcher starts it once per rank: only one process reports the result of the job's
// recording.

// firstToAnnounce reports whether this process is the one that reports the result.
func firstToAnnounce(dir string, env *environment) bool {
	return experiment.FirstToAnnounce(dir, cmp.Or(config.StepID(env.lookup), "job"))
}

// announceMade reports where another process of the job has written the archive.
func announceMade(dir string, env *environment, say func(format string, args ...any)) {
	if !firstToAnnounce(dir, env) {
		return
	}
	if isFile(filepath.Join(dir, anchorName)) {
		say("the archive is in %s: nccl-otf2 report %s", relativePath(dir), relativePath(dir))
	} else {
		say("the profile is %s", relativePath(filepath.Join(dir, cubex.FileName)))
	}
}

// announceSilent reports a task of the job that has recorded nothing: the archive of the other tasks waits for it.
func announceSilent(ctx context.Context, dir, command string, env *environment, say func(format string, args ...any)) {
	own := config.FindLauncher(env.lookup)
	entries, err := listShards(ctx, dir)
	if err != nil || recordedByTask(entries, own, experiment.BootID()) || !firstToAnnounce(dir, env) {
		return
	}
	say("rank %d has recorded nothing: %s. When all ranks have ended `nccl-otf2 unify %s` makes the archive of those that have",
		own.Rank, explainNothing(command), relativePath(dir))
}

// listShards lists the shards of a directory once each one identifies its process; those of ranks that are just
// starting do not.
func listShards(ctx context.Context, dir string) (entries []experiment.Entry, err error) {
	for {
		entries, err = experiment.List(dir)
		if err != nil || !slices.ContainsFunc(entries,
			func(e experiment.Entry) bool { return e.State == experiment.Starting }) {
			return entries, err
		}
		select {
		case <-ctx.Done():
			return entries, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// explainNothing suggests why a command may have recorded nothing.
func explainNothing(command string) string {
	return command +
		" did not load the plugin (no NCCL, no GPU, NCCL older than 2.23, another backend such as gloo, one rank only, workers that did not inherit the environment, or another plugin in force); `nccl-otf2 doctor` looks for the reason"
}

// recordedByTask reports whether a process of a launcher's task has left a shard, on the machine with a boot ID.
// Processes with ranks of another launcher (torchrun under Slurm) may belong to any task on the machine.
func recordedByTask(entries []experiment.Entry, task config.Launcher, boot string) bool {
	for _, e := range entries {
		switch p := e.Process; {
		case p == nil:
			return true // the task of the process is not known
		case p.BootID == boot && (p.Launcher.Name != task.Name || p.Launcher.Rank == task.Rank):
			return true
		}
	}
	return false
}
