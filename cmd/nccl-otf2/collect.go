// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/collector"
	"github.com/nccl-otf2/nccl-otf2/scorep"
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
		_, err = scorep.Unify(dir, unifyOptions(true, nil))
	}
	return err
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
			return collector.Run(cmd.Context(), collector.Options{
				FD:    fd,
				Unify: finishJob,
			})
		},
	}
	cmd.Flags().IntVar(&fd, "fd", fd, "descriptor of the shared memory")
	return cmd
}
