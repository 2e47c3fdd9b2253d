// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/collector"
	"github.com/nccl-otf2/nccl-otf2/collector/record"
)

// finishJob makes what a job's mode asks for, and the profile of a job that still runs.
func finishJob(dir string) error {
	found, err := modes(dir)
	if err != nil {
		return err
	}
	if found.profiles {
		if _, err := makeProfiles(dir); err != nil {
			return err
		}
	}
	if found.traces {
		_, err = makeArchives(dir, true, nil)
	}
	return err
}

// collect records a process, makes profiles of the running job when they are due, and, as the job's last collector, what its
// mode asks for.
func collect(ctx context.Context, fd int) error {
	// Launchers send SIGTERM to what is left when their processes have ended: the collector heeds it, the archive is made all the same.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM)
	due, made := make(chan string), make(chan error, 1)
	go func() {
		var failed error
		for dir := range due {
			if err := finishJob(dir); err != nil {
				failed = fmt.Errorf("profile of %s: %w", dir, err)
			}
		}
		made <- failed
	}()
	all := runtime.GOMAXPROCS(0)
	out, err := collector.Run(ctx, collector.Options{FD: fd, Profiles: due, Processors: func(n int) { runtime.GOMAXPROCS(min(n, all)) }})
	close(due)
	if failed := <-made; failed != nil && out.Debug {
		fmt.Fprintf(os.Stderr, "nccl-otf2 collect[%d]: %v\n", os.Getpid(), failed)
	}
	switch {
	case err != nil || !out.Unify:
		return err
	case out.Record:
		_, err = record.Assemble(out.Experiment)
		return err
	}
	if err := finishJob(out.Experiment); err != nil {
		return fmt.Errorf("unify %s: %w", out.Experiment, err)
	}
	return nil
}

// collectCommand is what the plugin starts beside each job process.
func collectCommand() *cobra.Command {
	fd := -1
	cmd := &cobra.Command{
		Use:    "collect --fd N",
		Short:  "Write what the plugin records in one process (the plugin starts this)",
		Hidden: true,
		Args:   exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var st unix.Stat_t
			if fd < 0 || unix.Fstat(fd, &st) != nil {
				return usagef("collect is started by the plugin, with the shared memory as --fd")
			}
			return collect(cmd.Context(), fd)
		},
	}
	cmd.Flags().IntVar(&fd, "fd", fd, "descriptor of the shared memory")
	return cmd
}
