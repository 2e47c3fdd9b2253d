// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/collector"
	"github.com/nccl-otf2/nccl-otf2/internal/installed"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/record"
)

// finishJob writes the product of a job's mode, with tables if requested, and the interim profile of a running job.
func finishJob(dir string, recorded, tables bool) error {
	if recorded {
		_, err := record.Assemble(dir)
		return err
	}
	found, err := findModes(dir)
	if err != nil {
		return err
	}
	if found.profiles {
		if _, err := makeProfiles(dir); err != nil {
			return err
		}
	}
	if found.traces {
		var made madeTables
		_, err = made.makeArchives(dir, wanted{sync: true, tables: tables}, nil)
		err = errors.Join(err, made.tablesError())
	}
	return err
}

// collectCommand runs the collector if the program that the plugin prefers (cmd/nccl-otf2-collector) is missing; with
// --finish it writes the job's product, for both.
func collectCommand() *cobra.Command {
	fd, dir, recorded, tables := -1, "", false, false
	cmd := &cobra.Command{
		Use:    "collect --fd N|--finish DIR",
		Short:  "Write what the plugin records in one process (started by the plugin)",
		Hidden: true,
		Args:   exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir != "" {
				signal.Notify(make(chan os.Signal, 1), unix.SIGTERM) // as collector.Beside
				return finishJob(dir, recorded, tables)
			}
			var st unix.Stat_t
			if fd < 0 || unix.Fstat(fd, &st) != nil {
				return usagef("collect is started by the plugin, with the shared memory as --fd")
			}
			tool, err := installed.Tool()
			if err != nil { // no /proc
				tool = os.Args[0]
			}
			path := make(chan string, 1)
			path <- tool
			return collector.RecordProcess(cmd.Context(), fd, path)
		},
	}
	cmd.Flags().IntVar(&fd, "fd", fd, "descriptor of the shared memory")
	cmd.Flags().StringVar(&dir, "finish", "", "experiment directory of which to make what its mode asks for")
	cmd.Flags().BoolVar(&recorded, "record", false, "with --finish: the mode is record")
	cmd.Flags().BoolVar(&tables, "tables", false, "with --finish: write the archive's tables, too")
	return cmd
}
