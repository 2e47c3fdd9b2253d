// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
)

// addSelection adds the flags that select a part of an archive.
func addSelection(cmd *cobra.Command, spec *selection.Spec) {
	cmd.Flags().StringVar(&spec.From, "from", "",
		"only what begins at this time or later: 1.5s after the beginning of the run, 10:38:05.5 or '2026-11-20 "+
			"10:38:05.5' (UTC), @12.5s on the archive's clock")
	cmd.Flags().StringVar(&spec.To, "to", "", "only what begins before this time, given as for --from")
	cmd.Flags().StringVar(&spec.Ranks, "rank", "", "only operations and rows of these ranks of the job, such as 3,5-7")
	cmd.Flags().StringVar(&spec.Comm, "comm", "",
		"only operations of this communicator: its name, a pattern ('tp*'), or its id")
	cmd.Flags().StringVar(&spec.Phase, "phase", "",
		"only what begins in this phase of the application: its name, a pattern, or NAME:N for each rank's N-th")
}
