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

// `nccl-otf2 run` that a launcher starts once per rank: what became of the job's recording is said by one of them, and
// not by each.

// firstToAnnounce reports whether this process is the one that says it.
func firstToAnnounce(dir string, env *environment) bool {
	return experiment.FirstToAnnounce(dir, cmp.Or(config.StepID(env.lookup), "job"))
}

// announceMade says where the archive is that another process of the job has made.
func announceMade(dir string, env *environment, say func(format string, args ...any)) {
	if !firstToAnnounce(dir, env) {
		return
	}
	if isFile(filepath.Join(dir, anchorName)) {
		say("the archive is in %s: nccl-otf2 report %s", relative(dir), relative(dir))
	} else {
		say("the profile is %s", relative(filepath.Join(dir, cubex.FileName)))
	}
}

// announceSilent says that a task of the job has recorded nothing, if that is so: the archive of the others waits for
// it.
func announceSilent(ctx context.Context, dir, command string, env *environment, say func(format string, args ...any)) {
	own := config.FindLauncher(env.lookup)
	entries, err := described(ctx, dir)
	if err != nil || recordedByTask(entries, own, experiment.BootID()) || !firstToAnnounce(dir, env) {
		return
	}
	say("rank %d has recorded nothing: %s. When all ranks have ended `nccl-otf2 unify %s` makes the archive of those that have",
		own.Rank, whyNothing(command), relative(dir))
}

// described lists the shards of a directory when each has said whose it is, which those of ranks that are just
// beginning have not.
func described(ctx context.Context, dir string) (entries []experiment.Entry, err error) {
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

// whyNothing says why a command may have recorded nothing.
func whyNothing(command string) string {
	return command +
		" did not load the plugin (no NCCL, no GPU, NCCL older than 2.23, another backend such as gloo, one rank only, workers that did not inherit the environment, or another plugin in force); `nccl-otf2 doctor` looks for the reason"
}

// recordedByTask reports whether a process of a launcher's task, on a machine of some boot, is among those that left
// something. Processes that have ranks of another launcher's, torchrun's under Slurm, may be anybody's on the machine.
func recordedByTask(entries []experiment.Entry, task config.Launcher, boot string) bool {
	for _, e := range entries {
		switch p := e.Process; {
		case p == nil:
			return true // whose it is is not known
		case p.BootID == boot && (p.Launcher.Name != task.Name || p.Launcher.Rank == task.Rank):
			return true
		}
	}
	return false
}
